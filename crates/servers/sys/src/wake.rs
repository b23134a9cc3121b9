//! A latch that makes a descriptor readable. It wakes waiters in any thread and in every process
//! forked since.

use crate::shared::SharedCounter;
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::Ordering::SeqCst,
    time::Duration,
};

/// The states of a latch: not requested, requested with a delay that may be over, and set.
const OPEN: usize = 0;
const DELAYED: usize = 1;
const SET: usize = 2;

/// A latch that is set once, at once or after a delay. From then on its descriptor stays readable.
///
/// The descriptor is a timer (timerfd_create(2)), so that the delay needs no thread: a server that has one
/// must not fork.
#[derive(Debug)]
pub struct Latch {
    timer: OwnedFd,
    state: SharedCounter,
}

impl Latch {
    /// Creates a latch that is not set. Fails if out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Latch { timer, state: SharedCounter::new()? })
    }

    /// Sets the latch. Idempotent. Safe in a signal handler.
    pub fn set(&self) {
        if self.state.swap(SET, SeqCst) != SET {
            self.start(Duration::ZERO);
        }
    }

    /// Sets the latch after this time. Does nothing if it is set, or requested already. Safe in a signal
    /// handler.
    pub fn set_after(&self, delay: Duration) {
        if delay.is_zero() {
            self.set();
        } else if self.state.compare_exchange(OPEN, DELAYED, SeqCst, SeqCst).is_ok() {
            self.start(delay);
            if self.state.load(SeqCst) == SET {
                self.start(Duration::ZERO); // another thread has set it meanwhile
            }
        }
    }

    fn start(&self, delay: Duration) {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would stop the timer.
        let delay = delay.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: delay.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: delay.subsec_nanos().into(),
        };
        let timer = Itimerspec { it_interval: none, it_value };
        // The descriptor and the time are valid, so this cannot fail.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer);
    }

    /// Whether it is set, or will be after its delay.
    pub fn is_requested(&self) -> bool {
        self.state.load(SeqCst) != OPEN
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        match self.state.load(SeqCst) {
            OPEN => false,
            SET => true,
            _ => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                let mut fds = [PollFd::new(&self.timer, PollFlags::IN)];
                let is_over = poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0);
                if is_over {
                    self.state.store(SET, SeqCst);
                }
                is_over
            }
        }
    }

    /// Blocks until it is set.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            let mut fds = [PollFd::new(&self.timer, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Latch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_latch_that_is_set_stays_readable() {
        let latch = Latch::new().unwrap();
        assert!(!latch.is_requested() && !latch.is_set());
        latch.set();
        latch.set();
        for _ in 0..3 {
            latch.wait().unwrap();
            assert!(latch.is_requested() && latch.is_set());
        }
    }

    #[test]
    fn a_delayed_latch_is_requested_at_once_and_set_later() {
        let latch = Latch::new().unwrap();
        let (start, delay) = (Instant::now(), Duration::from_millis(300));
        latch.set_after(delay);
        latch.set_after(Duration::from_secs(3600));
        assert!(latch.is_requested());
        assert!(!latch.is_set() || start.elapsed() >= delay);
        latch.wait().unwrap();
        assert!(start.elapsed() >= delay);
        assert!(latch.is_set() && latch.is_set());
    }

    #[test]
    fn a_delay_ends_when_the_latch_is_set() {
        let latch = Latch::new().unwrap();
        latch.set_after(Duration::from_secs(3600));
        assert!(latch.is_requested() && !latch.is_set());
        latch.set();
        assert!(latch.is_set());
        latch.wait().unwrap();
        let none = Latch::new().unwrap();
        none.set_after(Duration::ZERO);
        assert!(none.is_set());
    }
}
