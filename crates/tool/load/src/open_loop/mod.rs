//! Open loop: when requests are due, whether they were sent then, and what became of each.
//!
//! - `schedule`: generates the arrival times, Poisson or evenly spaced; `stages`: parts with rates of their own.
//! - `arrival_check`: whether requests were sent at these times; `sends`: which of them count.
//! - `open_tally`: what became of each request that was due.

pub(crate) mod arrival_check;
pub(crate) mod open_tally;
pub(crate) mod schedule;
pub(crate) mod sends;
pub(crate) mod stages;
