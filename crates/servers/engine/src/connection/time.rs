//! The time, as drivers report it. Only tests and the simulator of this crate read a clock.

use std::time::Instant;

/// A point in time. In a loop, the start time of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For deadlines.
    pub instant: Instant,
    /// For dates: Unix time in whole seconds.
    pub unix_s: u64,
}
