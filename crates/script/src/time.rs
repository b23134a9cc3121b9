//! Time as an argument: whoever calls has the clock.

/// A moment or a length of time, in nanoseconds.
pub type Nanos = u64;

/// Nanoseconds of a second.
pub const SECOND: Nanos = 1_000_000_000;
