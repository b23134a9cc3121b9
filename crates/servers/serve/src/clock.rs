//! The machine's clocks.

use regatta_service::Now;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// The current time. The seconds are accurate to the kernel's tick (some milliseconds), which is
/// cheaper to read than the exact time.
#[inline]
pub(crate) fn now() -> Now {
    at(Instant::now())
}

/// The time at a known instant.
#[inline]
pub(crate) fn at(instant: Instant) -> Now {
    let unix_s = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
    Now { instant, unix_s: u64::try_from(unix_s).unwrap_or(0) }
}
