//! Callbacks during a load.

use std::time::Duration;

/// Callbacks before, at and after the edges of the measured window, in this order, except that
/// [`Edges::connected`] precedes [`Edges::is_warm`]. They run inline on the first load thread, which
/// sends nothing meanwhile; with several load processes, they run on the leader's thread.
pub trait Edges: Send {
    /// Returns whether the server is warm. Called about ten times a second during a warm-up that the
    /// caller decides ([`crate::WarmUp::Judged`]), until it returns true or the maximum duration is
    /// over.
    fn is_warm(&mut self, _so_far: &WarmUpProgress) -> bool {
        true
    }

    /// Called when all connections are open, one exchange on each was checked, and the load has not
    /// started: the caller can read the cost of the connections alone. Not called if connections are
    /// opened inside the window (bursts and most counted loads) or for each request.
    fn connected(&mut self) {}

    /// Called before the window opens, for slow readings. If they take a while, a load with a warm-up
    /// continues for longer than that before the window opens, so that the backlog is worked off outside
    /// the window.
    fn before_window(&mut self) {}

    /// Called when the measured window opens: read the server's usage so far. The time this takes falls
    /// between the requests of the load, and must not grow with the server.
    fn window_opens(&mut self);

    /// Called at the end of each stage of the window but the last: read the server's usage so far, as in
    /// [`Edges::window_opens`].
    fn stage_ends(&mut self) {}

    /// Called when the window closes: read the same again. Always follows [`Edges::window_opens`], also
    /// when the run ends early.
    fn window_closes(&mut self);

    /// Called when sending has stopped and every pending reply came or was given up, for slow readings.
    /// Always follows [`Edges::window_closes`].
    fn load_over(&mut self) {}

    /// Called when all requests are answered or given up, and the connections are still open and idle
    /// (with a connection per request, all but a few are closed). Follows [`Edges::load_over`], except
    /// when the run ends early, and in a burst, in which connections close when they are finished.
    fn connections_open(&mut self);
}

/// Progress of a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUpProgress {
    /// Time since the warm-up began.
    pub lasted: Duration,
    /// Replies since the warm-up began.
    pub replies: u64,
}
