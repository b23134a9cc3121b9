//! Time for the load threads: one monotonic clock in nanoseconds, and the CPU of a thread.

use rustix::time::{ClockId, clock_gettime};

/// A moment is in nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) use regatta_script::{Nanos, SECOND};

/// Nanoseconds of a millisecond.
pub(crate) const MS: Nanos = 1_000_000;

/// Now. Comparable between threads.
#[inline]
pub(crate) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// The time of day: since 1970, as this machine's clock has it.
pub(crate) fn wall() -> Nanos {
    read(ClockId::Realtime)
}

/// CPU that this thread has used so far, user and system.
pub(crate) fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * SECOND + t.tv_nsec as u64
}
