//! Clocks of the load threads, all in nanoseconds: monotonic time, the time of day, and the CPU time of
//! a thread.

use rustix::time::{ClockId, clock_gettime};

/// A moment is in nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) use regatta_script::{Nanos, SECOND};

/// Nanoseconds per millisecond.
pub(crate) const MS: Nanos = 1_000_000;

/// Returns the current time. Comparable between threads.
#[inline]
pub(crate) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Returns the nanoseconds since 1970 by this machine's clock.
pub(crate) fn wall() -> Nanos {
    read(ClockId::Realtime)
}

/// Returns the CPU time that this thread has used so far, user and system.
pub(crate) fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * SECOND + t.tv_nsec as u64
}
