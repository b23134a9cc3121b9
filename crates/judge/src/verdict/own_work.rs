//! Whether the measured processes of a contender did all of its work, on the CPUs assigned to it.

use crate::observed::Observed;
use regatta_record::{Figure, Kind, NULL, Verdict};

/// Findings against the figures of a contender, the most serious first; `below_floor` comes from
/// [`crate::took::below_floor`].
pub fn findings(observed: &Observed, below_floor: Option<f64>) -> impl Iterator<Item = Verdict> {
    let others = observed.served_by_others.as_ref().map(|finding| {
        let because = in_starts(finding, observed.finished);
        let mut verdict = Verdict::new(Kind::ServerNotObserved, because);
        verdict.void.push(Figure::Memory);
        verdict
    });
    let below_floor = below_floor.filter(|_| observed.name != NULL).map(|part| {
        let because = format!(
            "its processes took {:.1}% of the CPU time that the null server takes for the same \
             requests, which is less than TCP itself takes: processes outside the contender did the \
             work; start them from its start command",
            part * 100.0
        );
        Verdict::new(Kind::ServerNotObserved, because)
    });
    let other_cpus = observed.left_its_cpus.as_ref().map(|finding| {
        let because = in_starts(finding, observed.finished);
        Verdict::new(Kind::OtherCpus, because)
    });
    [others, below_floor, other_cpus].into_iter().flatten()
}

fn in_starts((rounds, first): &(u32, String), all: u32) -> String {
    match (*rounds, all) {
        (1, 1) => first.clone(),
        (rounds, all) => format!("in {rounds} of {all} starts {first}"),
    }
}
