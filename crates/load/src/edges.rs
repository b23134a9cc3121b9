//! What the caller does while a load runs.

/// What the caller does at the edges of the measured window. Called inline on the first load
/// thread: a call should be short, since the load of that thread rests meanwhile.
pub trait Edges: Send {
    /// The measured window begins: read what the server has used so far.
    fn window_opens(&mut self);
    /// It ends: read again. Always follows [`Edges::window_opens`], also when the run ends early.
    fn window_closes(&mut self);
    /// Everything is answered, and all connections are still open and idle (with a connection per
    /// request, closed). Not called when the run ends early, nor in a burst, whose connections are
    /// closed one by one as they are through.
    fn connections_open(&mut self);
}
