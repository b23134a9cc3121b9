//! The time, as drivers report it. Nothing in this crate reads a clock.

use std::time::Instant;

/// The start time of a turn of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For deadlines.
    pub instant: Instant,
    /// For dates: Unix time in whole seconds.
    pub unix_s: u64,
}
