//! The common interface of select, poll and epoll, which report ready descriptors.

use std::{io, os::fd::BorrowedFd, time::Duration};

/// What to wait for on a descriptor. Hang-ups and errors are always reported, by select only in the
/// directions that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Input, a new connection, or the end of input.
    pub read: bool,
    /// Free space for output.
    pub write: bool,
}

impl Interest {
    /// Input only.
    pub const READ: Interest = Interest { read: true, write: false };
    /// Both directions.
    pub const BOTH: Interest = Interest { read: true, write: true };
}

/// The readiness of a descriptor. Errors and hang-ups count as ready in both directions, so that
/// the next call on the descriptor reports them. select returns one event per direction, and a
/// hang-up only as readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token with which it was added.
    pub token: u64,
    /// A read would not block.
    pub readable: bool,
    /// A write would not block.
    pub writable: bool,
    /// The peer has closed its sending side, or the connection is gone. Once all input is read, a
    /// read reports it. An edge-triggered call always sets this, because no further event may follow
    /// there. The level-triggered epoll sets it only after a hang-up or error, select and poll never.
    pub ended: bool,
}

/// A system call that reports readiness.
pub trait Readiness {
    /// Whether an event is reported only when a descriptor becomes ready, rather than at every wait
    /// while it is ready.
    fn is_edge_triggered(&self) -> bool {
        false
    }

    /// Returns why the call can never watch `fd`, e.g. because of its number; `None` if it can.
    fn refusal(&self, _fd: BorrowedFd<'_>) -> Option<&'static str> {
        None
    }

    /// Starts watching `fd`. Its events carry `token`.
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;

    /// Changes the interest in a watched descriptor.
    fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;

    /// Stops watching `fd`, which stays open.
    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Stops watching `fd`, which the caller closes next.
    fn closing(&mut self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Waits until a descriptor is ready, at most `timeout` (`None`: forever). Replaces the
    /// contents of `events` by the ready descriptors. May return early without events, after a
    /// signal.
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;
}
