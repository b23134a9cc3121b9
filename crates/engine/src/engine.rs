//! What one core serves.

use crate::{Conn, Effects, Flow, Job, JobId};
use std::time::Instant;

/// What one core serves: bytes and events of its connections in, effects out.
///
/// The driver calls it for one connection at a time. What it writes to that connection leaves at
/// once; what it writes to others leaves at the end of the turn, in one write for each of them.
pub trait Engine: Sized {
    /// What its replies may need; [`Never`](crate::Never) if nothing.
    type Job: Job;

    /// What it posts to the engines of the other cores; [`Never`](crate::Never) if nothing.
    type Letter: Clone + Send + 'static;

    /// Whether it has other cores to post to.
    const POSTS: bool = false;

    /// Whether it opens connections of its own.
    const CONNECTS: bool = false;

    /// A client has connected, or a connection to another server is open.
    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// Bytes came. The engine takes all of them, and may change them in place. It bounds what it
    /// keeps by [`Status::reads`](crate::Status::reads); some bytes may still come after that.
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>);

    /// All output of a connection has been written, and [`Status::wants_room`](crate::Status::wants_room) asked for this.
    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// The peer sends nothing more; it may still read. The engine closes the connection once it has
    /// nothing more to say.
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// The connection is gone, or could not be opened. Its name names nothing from now on.
    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// The alarm of [`Status::alarm`](crate::Status::alarm) is due.
    fn alarm(&mut self, _conn: Conn, _effects: &mut Effects<Self>) {}

    /// A job is done: `finish` appends its reply and says what the connection does after it.
    fn done(
        &mut self,
        _conn: Conn,
        _job: JobId,
        _finish: impl FnOnce(&mut Vec<u8>) -> Flow,
        _effects: &mut Effects<Self>,
    ) {
    }

    /// When [`Engine::tick`] is called at the latest.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// The deadline of [`Engine::due`] has passed.
    fn tick(&mut self, _effects: &mut Effects<Self>) {}

    /// The engine of another core has posted this.
    fn heard(&mut self, _letter: Self::Letter, _effects: &mut Effects<Self>) {}
}
