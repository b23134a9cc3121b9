//! Processes as `/proc` describes them: their trees, clocks and ends. Their memory is in `usage`.

pub(crate) mod clock;
pub(crate) mod held;
pub(crate) mod kill;
pub(crate) mod listed;
pub(crate) mod orphans;
pub(crate) mod scheduled;
pub(crate) mod status;
pub(crate) mod tree;
