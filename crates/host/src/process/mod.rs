//! Processes as `/proc` describes them: their trees, clocks and ends, and how none is left behind.

pub(crate) mod clock;
pub(crate) mod held;
pub(crate) mod kill;
pub(crate) mod listed;
pub(crate) mod orphans;
pub(crate) mod scheduled;
pub(crate) mod status;
pub(crate) mod tree;
