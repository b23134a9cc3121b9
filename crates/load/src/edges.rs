//! What the caller does while a load runs.

use std::time::Duration;

/// What the caller does before, at and after the edges of the measured window, in this order. Called
/// inline on the first load thread, whose load rests meanwhile.
pub trait Edges: Send {
    /// One more slice of the warm-up is over: whether the server is warm. Asked ten times a second
    /// during a warm-up until then ([`crate::WarmUp::Judged`]), and in no other.
    fn is_warm(&mut self, _so_far: &SoFar) -> bool {
        true
    }

    /// All connections are open, one exchange on each was checked, and the load has not begun: what
    /// connections take can be read by itself. Not called where connections are opened inside the window
    /// (counted loads and bursts) or for each request.
    fn connected(&mut self) {}

    /// The window opens soon: read what takes long. Where this took a while, the load goes on for
    /// longer than that before the window opens, so that what piled up meanwhile is worked off
    /// outside of it.
    fn before_window(&mut self) {}

    /// The measured window begins: read what the server has used so far. What this takes falls
    /// between the requests of the load and must not grow with the server.
    fn window_opens(&mut self);

    /// It ends: read the same again. Always follows [`Edges::window_opens`], also when the run ends
    /// early.
    fn window_closes(&mut self);

    /// Nothing is sent any more, and what was owed has come or was given up: read what takes long.
    /// Always follows [`Edges::window_closes`].
    fn load_over(&mut self) {}

    /// Everything is answered, and all connections are still open and idle (with a connection per
    /// request, closed). Follows [`Edges::load_over`], but not when the run ends early, nor in a burst,
    /// whose connections are closed one by one as they are through.
    fn connections_open(&mut self);
}

/// How far a warm-up is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoFar {
    /// Since it began.
    pub lasted: Duration,
    /// Right replies since it began.
    pub replies: u64,
}
