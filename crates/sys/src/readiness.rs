//! What select, poll and epoll have in common: tell which descriptors are ready.

use std::{io, os::fd::BorrowedFd, time::Duration};

/// What to wait for on a descriptor. Hang-ups and errors are always told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Input, a new connection, or the end of input.
    Read,
    /// Room for output.
    Write,
}

/// A descriptor is ready: a call on it will not block. Errors and hang-ups count as ready too,
/// so that the next call on the descriptor tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token under which it was added.
    pub token: usize,
}

/// A level-triggered readiness call.
pub trait Readiness {
    /// Why `fd` cannot be watched, however little else is: a limit of the call itself.
    fn refusal(&self, _fd: BorrowedFd<'_>) -> Option<&'static str> {
        None
    }

    /// Starts to watch `fd`; events carry `token`.
    fn add(&mut self, fd: BorrowedFd<'_>, token: usize, interest: Interest) -> io::Result<()>;

    /// Changes what is waited for on a watched descriptor.
    fn modify(&mut self, fd: BorrowedFd<'_>, token: usize, interest: Interest) -> io::Result<()>;

    /// Stops to watch `fd`, which stays open.
    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Stops to watch `fd`, which the caller closes next.
    fn closing(&mut self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Replaces `events` by those that are ready, waiting for the first of them up to `timeout`
    /// (`None`: for ever). May return none early, after a signal.
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;
}
