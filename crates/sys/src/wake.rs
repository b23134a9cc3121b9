//! A latch that makes a descriptor readable: wakes whatever waits, from any thread.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// Set once; from then on its descriptor is readable for everybody, for ever.
#[derive(Debug)]
pub struct Latch(OwnedFd);

impl Latch {
    /// A latch that is not set. Fails when out of descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Latch(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Sets it. Doing so again changes nothing.
    pub fn set(&self) {
        // The only error is a counter at its maximum, and that is set too.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Blocks until it is set.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
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
        self.0.as_fd()
    }
}
