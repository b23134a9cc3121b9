//! Whether the measured processes of a contender did all of its work, on the CPUs assigned to it.

use crate::cell::observed::CellRounds;
use regatta_record::{Cause, Figure, Kind, NULL, SomeStarts, Verdict};

/// Findings against the figures of a contender, the most serious first; `below_floor` comes from
/// [`crate::cell::took::below_floor`].
pub fn findings(observed: &CellRounds, below_floor: Option<f64>) -> impl Iterator<Item = Verdict> {
    let others = observed.served_by_others.as_ref().map(|finding| {
        let mut verdict = in_starts(Kind::ServerNotObserved, finding, observed.finished);
        verdict.void.push(Figure::Memory);
        verdict
    });
    let below_floor = below_floor.filter(|_| observed.name != NULL).map(|part| {
        Verdict::new(Kind::ServerNotObserved, Cause::BelowNull { of_null: part })
            .with_remedy("start them from its start command")
    });
    let other_cpus = observed.left_its_cpus.as_ref();
    let other_cpus =
        other_cpus.map(|finding| in_starts(Kind::OtherCpus, finding, observed.finished));
    [others, below_floor, other_cpus].into_iter().flatten()
}

/// What was found in some of all starts; the text is of the first.
fn in_starts(kind: Kind, (seen, first): &(u32, String), of: u32) -> Verdict {
    let mut verdict = Verdict::new(kind, first);
    verdict.first_mut().starts = Some(SomeStarts { seen: *seen, of, first: None });
    verdict
}
