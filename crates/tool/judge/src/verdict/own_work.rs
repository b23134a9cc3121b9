//! Whether the measured processes of a contender did all of its work, on the CPUs assigned to it, for all members.

use crate::cell::observed::CellRounds;
use regatta_record::{Cause, Figure, Kind, NULL, SomeStarts, Verdict};

/// Findings against the figures of a contender, the most serious first; `below_floor` comes from
/// [`crate::cell::took::below_floor`].
pub fn findings(observed: &CellRounds, below_floor: Option<f64>) -> impl Iterator<Item = Verdict> {
    let of = observed.finished;
    let others = observed.served_by_others.as_ref().map(|(seen, first)| {
        let mut verdict = in_starts(Kind::ServerNotObserved, *seen, first, of);
        verdict.void.push(Figure::Memory);
        verdict
    });
    let below_floor = below_floor.filter(|_| observed.name != NULL).map(|part| {
        Verdict::new(Kind::ServerNotObserved, Cause::BelowNull { of_null: part })
            .with_remedy("start them from its start command")
    });
    let other_cpus = observed.left_its_cpus.as_ref();
    let other_cpus = other_cpus.map(|(seen, first)| in_starts(Kind::OtherCpus, *seen, first, of));
    let away = observed.away.map(|(seen, share)| {
        in_starts(Kind::MembersAway, seen, Cause::OwedToNobody { share }, of)
            .with_remedy("let it keep the connections of its members")
    });
    [others, below_floor, other_cpus, away].into_iter().flatten()
}

/// What was found in some of all starts.
fn in_starts(kind: Kind, seen: u32, cause: impl Into<Cause>, of: u32) -> Verdict {
    let mut verdict = Verdict::new(kind, cause);
    verdict.first_mut().starts = Some(SomeStarts { seen, of, first: None });
    verdict
}
