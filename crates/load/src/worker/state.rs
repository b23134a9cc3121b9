//! What a load thread keeps.

use crate::{
    Plan,
    clock::Nanos,
    connection::{Connection, Times},
    held::Holding,
    passing::Passing,
    poller::Poller,
    schedule::Part,
    shared::{Gauge, Phase, Shared},
    source::Sources,
    tally::Count,
};
use regatta_script::Dialect;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Connections of a thread that stay open to the end though they are not used any more, to see
/// whether more comes than was asked for.
pub(super) const KEPT: u32 = 4;

/// A load thread's state.
pub(super) struct Worker<'a, D: Dialect, V> {
    pub plan: &'a Plan,
    pub dialect: &'a D,
    pub shared: &'a Shared,
    pub gauge: &'a Gauge,
    pub poller: Poller,
    pub buffer: Box<[u8]>,
    /// What comes before it is opened; empty without TLS.
    pub sealed: Box<[u8]>,
    /// What the dialect keeps for all connections of the thread.
    pub desk: D::Desk,
    /// The active ones, then the idle ones, then those of members that come and go.
    pub connections: Vec<Connection<D::Talk>>,
    /// How many of them are active.
    pub active: u32,
    pub times: Times,
    /// Slots without a connection, by when to open them.
    pub waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Slots that the server answered while connections were being opened, and whose connection it
    /// then ended as it had said. They count as open, and are opened again when the load begins.
    pub ended: Vec<u32>,
    pub sources: Sources,
    /// Of which requests the last byte is held back.
    pub holding: Holding,
    pub passing: Passing,
    /// When it asks.
    pub drive: V,
    /// The thread's number, of how many: slot `i` is slot `thread + i * threads` of the plan.
    pub part: Part,
    pub phase: Phase,
    /// Requests that each open connection is to have outstanding in this phase.
    pub depth: u32,
    /// Requests that may still be sent.
    pub left: u64,
    /// The moment of the last readiness, or of the turn if there was none.
    pub now: Nanos,
    /// In the last turn nothing was ready.
    pub idle: bool,
    pub next_scan: Nanos,
    /// See [`Gauge`], where these are told.
    pub replies: u64,
    pub settled: u64,
    pub awaited: u64,
    pub refused: u64,
    pub dropped: u64,
    /// Wrong replies that were whole, where errors are tolerated.
    pub unexpected: u64,
    /// Replies by their status, when the window opened.
    pub statuses: Vec<u64>,
    /// Connections whose first reply came and that stand, those of members that come and go left out.
    pub open: usize,
    /// Connections that stay open though they are not used any more.
    pub kept: u32,
    pub count: Count,
}
