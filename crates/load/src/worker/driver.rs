//! What a drive is asked: only what drives differ in. What all share (connecting, reading, checking,
//! losing connections, phases) is the worker's, which calls a drive where connections open, are answered
//! and close, and is compiled for each.

use super::state::Worker;
use crate::{
    Plan,
    clock::Nanos,
    connection::{Connection, Times},
    schedule::Part,
    tally::Count,
};
use regatta_script::Dialect;
use std::cmp::Reverse;

/// What one thread has of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Which thread of how many.
    pub part: Part,
    /// Connections that ask.
    pub active: usize,
    /// Places for outstanding requests, as in [`Times`].
    pub places: usize,
}

/// When one load thread asks.
pub(super) trait Driver: Sized {
    /// Every request has its moment, which does not depend on replies: it is sent even if the window
    /// is over meanwhile, and lost if its connection ends.
    const SCHEDULED: bool = false;
    /// Every request, or every conversation, has a connection of its own.
    const CHURNS: bool = false;
    /// Connections that have nothing more to ask are closed, or kept to see whether more comes than
    /// was asked for: their end is no loss.
    const ENDS_CONNECTIONS: bool = false;
    /// Whether a connection that was lost after its first request was written is opened again.
    const REOPENS_LOST: bool = true;

    /// The drive of one thread.
    fn new(plan: &Plan, share: Share) -> Self;

    /// The load begins, or the window: asks for as much as may be outstanding.
    fn begins<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        worker.load_all();
    }

    /// A turn of the loop is over: asks for what is to be asked now.
    #[inline]
    fn turns<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// Some replies of a turn are handled, others not yet: asks for what cannot wait for these.
    #[inline]
    fn between<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// The window is over, for this thread.
    fn closes_window<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// The run is over.
    fn ends<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// Replies to the oldest requests of this connection came: records those that count.
    #[inline]
    fn answered<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32, replies: u32) {
        worker.record(slot, replies);
    }

    /// An answered connection of those that ask goes on.
    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32);

    /// A connection that asks is to be opened again, without haste, since the server ended it as it
    /// had said.
    fn reopens<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.waiting.push(Reverse((worker.now, slot)));
    }

    /// The first reply came on a connection.
    fn opened<D: Dialect>(_worker: &mut Worker<'_, D, Self>, _slot: u32) {}

    /// When the next request is due, where one can be sent then.
    #[inline]
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }

    /// Whether requests that are due were not sent yet.
    #[inline]
    fn has_due(&self) -> bool {
        false
    }

    /// When the request at this place of [`Times`] was to be sent, where that is not when it is asked.
    #[inline]
    fn intended(&self, _place: usize) -> Option<Nanos> {
        None
    }

    /// A connection is opened, and its first request will be sent.
    fn connects<T>(&mut self, _slot: u32, _connection: &Connection<T>, _times: &Times) {}

    /// A connection that is not closed yet is closed: its outstanding requests get no reply.
    fn closes<T>(&mut self, _slot: u32, _connection: &Connection<T>, _times: &Times) {}

    /// The outstanding requests of a connection timed out. It is closed next.
    fn timed_out<T>(&mut self, _connection: &Connection<T>, _times: &Times) {}

    /// The last `requests` of a connection that was closed are to be asked again.
    fn takes_back(&mut self, _slot: u32, _requests: u32) {}

    /// A connection is lost after its first request was written: what it had still to send and will
    /// not send any more.
    fn gives_up(&mut self, _slot: u32) -> u32 {
        0
    }

    /// Whether a connection has more to ask, as far as this connection's own requests are counted.
    fn has_more(&self, _slot: u32) -> bool {
        true
    }

    /// The oldest request of a connection got a reply that was wrong and is tolerated.
    fn answered_wrong<T>(&mut self, _slot: u32, _of: &Connection<T>, _times: &Times, _now: Nanos) {}

    /// Hands over what only this drive counts.
    fn count(self, _count: &mut Count) {}
}
