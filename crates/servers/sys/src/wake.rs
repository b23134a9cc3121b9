//! A latch that makes a descriptor readable. It wakes waiters in any thread and in every process
//! forked since.

use crate::shared::SharedCounter;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::Ordering,
};

/// A latch that is set once. From then on its descriptor stays readable.
#[derive(Debug)]
pub struct Latch {
    readable: OwnedFd,
    set: SharedCounter,
}

impl Latch {
    /// Creates a latch that is not set. Fails if out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let readable = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Latch { readable, set: SharedCounter::new()? })
    }

    /// Sets the latch. Idempotent. Safe in a signal handler.
    pub fn set(&self) {
        self.set.store(1, Ordering::SeqCst);
        // The only possible error is a counter at its maximum, which counts as set too.
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
