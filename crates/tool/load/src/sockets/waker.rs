//! Wakes a load thread of a lane that waits for events, so that it enters the next phase at once.

use crate::sockets::poller::Poller;
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

/// Both ends of a socket pair.
pub(crate) struct Waker {
    writes: UnixStream,
    reads: UnixStream,
}

impl Waker {
    /// For the thread that waits with this poller.
    pub fn new(poller: &Poller) -> io::Result<Waker> {
        let (writes, reads) = UnixStream::pair()?;
        writes.set_nonblocking(true)?;
        reads.set_nonblocking(true)?;
        poller.woken_by(&reads)?;
        Ok(Waker { writes, reads })
    }

    /// Ends the current wait of the thread, or its next one.
    pub fn wake(&self) {
        // If the socket is full, the thread was woken often enough.
        let _ = (&self.writes).write(&[0]);
    }

    /// Discards the bytes of earlier calls.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while (&self.reads).read(&mut bytes).is_ok_and(|n| n == bytes.len()) {}
    }
}
