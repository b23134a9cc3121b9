//! What select, poll and epoll have in common: they report which descriptors are ready.

use std::{io, os::fd::BorrowedFd, time::Duration};

/// What to wait for on a descriptor. Hang-ups and errors are always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Input, a new connection, or the end of input.
    pub read: bool,
    /// Room for output.
    pub write: bool,
}

impl Interest {
    /// Input alone.
    pub const READ: Interest = Interest { read: true, write: false };
    /// Both directions.
    pub const BOTH: Interest = Interest { read: true, write: true };
}

/// What is known of a descriptor. Errors and hang-ups count as ready in both directions, so that the
/// next call on the descriptor reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token under which it was added.
    pub token: u64,
    /// A read would not block.
    pub readable: bool,
    /// A write would not block.
    pub writable: bool,
    /// The peer has ended its direction, or the connection is gone: once all input is read, a read
    /// reports it. Only an edge-triggered call reports this; there, no further event may follow.
    pub ended: bool,
}

/// A readiness call.
pub trait Readiness {
    /// Whether an event is reported once, when a descriptor becomes ready, rather than at every wait
    /// while it is.
    fn is_edge_triggered(&self) -> bool {
        false
    }

    /// Why `fd` cannot be watched, however few others are: a limit of the call itself.
    fn refusal(&self, _fd: BorrowedFd<'_>) -> Option<&'static str> {
        None
    }

    /// Starts to watch `fd`; events carry `token`.
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;

    /// Changes what is waited for on a watched descriptor.
    fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;

    /// Stops to watch `fd`, which stays open.
    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Stops to watch `fd`, which the caller closes next.
    fn closing(&mut self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Replaces `events` by those that are ready. Waits for the first of them up to `timeout`
    /// (`None`: forever). May return none early, after a signal.
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;
}
