//! Whether what was read of a contender's processes is all that its work took.

use crate::observed::Observed;
use regatta_record::{Figure, Kind, Verdict};

/// Somebody else served the contender's port: nothing that was read of its processes is believed.
pub fn served_by_others(observed: &Observed) -> Option<Verdict> {
    let (rounds, first) = observed.served_by_others.as_ref()?;
    let because = match (*rounds, observed.finished) {
        (1, 1) => first.clone(),
        (rounds, all) => format!("in {rounds} of {all} rounds {first}"),
    };
    let mut verdict = Verdict::new(Kind::ServerNotObserved, because);
    verdict.void.push(Figure::Memory);
    Some(verdict)
}
