//! A latch that makes a descriptor readable: wakes whatever waits, in any thread, and in every
//! process that was forked since.

use crate::shared::SharedCounter;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::Ordering,
};

/// Set once; from then on its descriptor is readable for everybody, for ever.
#[derive(Debug)]
pub struct Latch {
    readable: OwnedFd,
    set: SharedCounter,
}

impl Latch {
    /// A latch that is not set. Fails when out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let readable = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Latch { readable, set: SharedCounter::new()? })
    }

    /// Sets it. Doing so again changes nothing. Permitted in a signal handler.
    pub fn set(&self) {
        self.set.store(1, Ordering::SeqCst);
        // The only error is a counter at its maximum, and that is set too.
        let _ = rustix::io::write(&self.readable, &1u64.to_ne_bytes());
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst) != 0
    }

    /// Blocks until it is set.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            let mut fds = [PollFd::new(&self.readable, PollFlags::IN)];
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
        self.readable.as_fd()
    }
}
