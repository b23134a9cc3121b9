//! The machine's clocks.

use regatta_service::Now;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// The time. The seconds are read to the tick of the kernel (some milliseconds), which is cheaper
/// than reading them exactly.
#[inline]
pub(crate) fn now() -> Now {
    at(Instant::now())
}

/// The time, of which the instant is known.
#[inline]
pub(crate) fn at(instant: Instant) -> Now {
    let unix_s = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
    Now { instant, unix_s: u64::try_from(unix_s).unwrap_or(0) }
}
