//! What is found out: cells, verdicts, findings, gates and curves.

pub(crate) mod capacity;
pub(crate) mod cause;
pub(crate) mod curve;
pub(crate) mod estimate;
pub(crate) mod finding;
pub(crate) mod gate;
pub(crate) mod regimes;
pub(crate) mod shown;
pub(crate) mod summary;
pub(crate) mod unknown;
pub(crate) mod verdict;
