//! The time, as drivers report it. Nothing in this crate reads a clock.

use std::time::Instant;

/// The time at which a turn of a loop began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For deadlines.
    pub instant: Instant,
    /// For dates: whole seconds since the beginning of 1970, UTC.
    pub unix_s: u64,
}
