//! The interface of a drive: only what drives differ in. The worker does what all drives share
//! (connecting, reading, checking, losing connections, phases). It calls the drive when connections
//! open, are answered and close, and is compiled once per drive.

use super::state::Worker;
use crate::{
    Plan,
    clock::Nanos,
    counts::tally::Count,
    open_loop::schedule::Part,
    sockets::connection::{Connection, Times},
};
use regatta_script::Dialect;
use std::cmp::Reverse;

/// One thread's share of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// This thread's number, and the number of threads.
    pub part: Part,
    /// Number of active connections: those that send requests.
    pub active: usize,
    /// Places for outstanding requests, as in [`Times`].
    pub places: usize,
}

/// Decides when one load thread sends requests.
pub(super) trait Driver: Sized {
    /// Every request has a due time that does not depend on replies. It is sent even if the window is
    /// over by then, and lost if its connection closes.
    const SCHEDULED: bool = false;
    /// Every request, or every conversation, has its own connection.
    const CHURNS: bool = false;
    /// Connections without further requests are closed, or kept open to detect unsolicited bytes. If the
    /// server closes them, that is not an error.
    const ENDS_CONNECTIONS: bool = false;
    /// Whether a connection that was lost after its first request was written is reopened.
    const REOPENS_LOST: bool = true;

    /// Creates the drive of one thread.
    fn new(plan: &Plan, share: Share) -> Self;

    /// The warm-up or the window begins: sends as many requests as may be outstanding.
    fn begins<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        worker.load_all();
    }

    /// A turn of the loop is over: sends the requests that are due.
    #[inline]
    fn turns<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// Some replies of a turn are handled, others not yet: sends the requests that cannot wait.
    #[inline]
    fn between<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// The window is over, for this thread.
    fn closes_window<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// The run is over.
    fn ends<D: Dialect>(_worker: &mut Worker<'_, D, Self>) {}

    /// Replies to the oldest requests of this connection were received: records those that count.
    #[inline]
    fn answered<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32, replies: u32) {
        worker.record(slot, replies);
    }

    /// An active connection was answered: continues with it.
    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32);

    /// An active connection must be reopened, without urgency, because the server announced its close.
    fn reopens<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.waiting.push(Reverse((worker.now, slot)));
    }

    /// A connection got its first reply.
    fn opened<D: Dialect>(_worker: &mut Worker<'_, D, Self>, _slot: u32) {}

    /// Whether the replies to the requests outstanding on a connection count. An extra first request may
    /// not.
    #[inline]
    fn is_counted<T>(&self, _connection: &Connection<T>) -> bool {
        true
    }

    /// When the thread must wake up to send or give up a request; `None` if only an event can permit
    /// that.
    #[inline]
    fn wakes_at(&self) -> Option<Nanos> {
        None
    }

    /// Whether there are scheduled requests that were neither sent nor given up yet.
    #[inline]
    fn has_due(&self) -> bool {
        false
    }

    /// The intended send time of the request at this place of [`Times`], if it counts and that is not
    /// the time at which it is added.
    #[inline]
    fn intended(&self, _place: usize) -> Option<Nanos> {
        None
    }

    /// A connection is being opened, and its first request will be sent.
    fn connects<T>(&mut self, _slot: u32, _connection: &Connection<T>, _times: &Times) {}

    /// A connection is closed now: its outstanding requests get no reply.
    fn closes<T>(&mut self, _slot: u32, _connection: &Connection<T>, _times: &Times) {}

    /// The outstanding requests of a connection timed out. Its close follows.
    fn timed_out<T>(&mut self, _connection: &Connection<T>, _times: &Times) {}

    /// The last `requests` of a closed connection must be sent again.
    fn takes_back(&mut self, _slot: u32, _requests: u32) {}

    /// A connection is lost after its first request was written. Returns the number of requests that it
    /// had still to send and that will not be sent.
    fn gives_up(&mut self, _slot: u32) -> u32 {
        0
    }

    /// Whether a connection has more requests to send. True for drives that do not count requests per
    /// connection.
    fn has_more(&self, _slot: u32) -> bool {
        true
    }

    /// The oldest request of a connection got a wrong reply that is tolerated.
    fn answered_wrong<T>(&mut self, _slot: u32, _of: &Connection<T>, _times: &Times, _now: Nanos) {}

    /// The oldest request of a connection was refused.
    fn refused<T>(&mut self, slot: u32, of: &Connection<T>, times: &Times, now: Nanos) {
        self.answered_wrong(slot, of, times, now);
    }

    /// The oldest request of a connection timed out, and the connection continues.
    fn one_timed_out<T>(&mut self, slot: u32, of: &Connection<T>, times: &Times, now: Nanos) {
        self.answered_wrong(slot, of, times, now);
    }

    /// The oldest request of a connection was not processed, and must be sent again. Returns whether it
    /// will be, while the load sends requests.
    fn not_processed<T>(
        &mut self,
        slot: u32,
        _of: &Connection<T>,
        _times: &Times,
        _now: Nanos,
    ) -> bool {
        self.takes_back(slot, 1);
        true
    }

    /// Two places of [`Times`] exchange their requests.
    fn exchanges_places(&mut self, _one: usize, _other: usize) {}

    /// A slice of a lane is over: moves the counts that only this drive keeps.
    fn count_slice(&mut self, _count: &mut Count) {}

    /// Adds the counts that only this drive keeps.
    fn count(self, _count: &mut Count) {}
}
