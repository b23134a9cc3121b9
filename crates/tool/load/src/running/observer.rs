//! What the caller of a load observes: moments of the load, and its warm-up.

use std::time::Duration;

/// A moment of a load, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// All connections are open, one exchange on each was checked, and the load has not started: the cost of
    /// the connections alone can be read. Absent if connections are opened inside the window (bursts and
    /// most counted loads) or for each request.
    Connected,
    /// The window is about to open: for slow readings. If they take a while, a load with a warm-up continues
    /// for longer than that before the window opens, so that the backlog is worked off outside the window.
    BeforeWindow,
    /// The measured window opens: for the server's usage so far. The time this takes falls between the
    /// requests of the load, and must not grow with the server.
    WindowOpens,
    /// A stage of the window ends, but not the last: like [`Moment::WindowOpens`].
    StageEnds,
    /// The window closes: for the same readings. Always follows [`Moment::WindowOpens`], also when the run
    /// ends early.
    WindowCloses,
    /// Sending has stopped, and every pending reply came or was given up: for slow readings. Always follows
    /// [`Moment::WindowCloses`].
    LoadOver,
    /// All requests are answered or given up, and the connections are still open and idle (with a connection
    /// per request, all but a few are closed). Absent when the run ends early, and in a burst, in which
    /// connections close when they are finished.
    ConnectionsOpen,
}

/// Observes a load. Its methods run inline on the first load thread, which sends nothing meanwhile; with
/// several load processes, on the leader's thread. A closure that takes moments is an observer.
pub trait LoadObserver: Send {
    /// Called at each moment.
    fn at(&mut self, moment: Moment);

    /// Returns whether the server is warm. Called about ten times a second during a warm-up that the caller
    /// decides ([`crate::WarmUp::Judged`]), until it returns true or the maximum duration is over.
    fn is_warm(&mut self, _so_far: &WarmUpProgress) -> bool {
        true
    }
}

impl<F: FnMut(Moment) + Send> LoadObserver for F {
    fn at(&mut self, moment: Moment) {
        self(moment);
    }
}

/// Progress of a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUpProgress {
    /// Time since the warm-up began.
    pub lasted: Duration,
    /// Replies on active connections since the warm-up began.
    pub replies: u64,
}
