//! Open loop: when requests are due, whether they were sent then, and what became of each.

pub(crate) mod arrivals;
pub(crate) mod open_tally;
pub(crate) mod schedule;
pub(crate) mod sends;
pub(crate) mod stages;
