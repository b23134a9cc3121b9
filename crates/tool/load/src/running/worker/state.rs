//! State of a load thread.

use crate::{
    Plan,
    clock::Nanos,
    counts::tally::Count,
    open_loop::schedule::Part,
    running::{
        held::Holding,
        orders::Slice,
        passing::Passing,
        shared::{Gauge, Phase, Shared},
        source::Sources,
    },
    sockets::{
        connection::{Connection, Times},
        poller::Poller,
    },
};
use regatta_script::Dialect;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Number of connections per thread that stay open to the end although they are no longer used, to
/// detect unsolicited bytes.
pub(super) const KEPT: u32 = 4;

/// A load thread's state.
pub(super) struct Worker<'a, D: Dialect, V> {
    pub plan: &'a Plan,
    pub dialect: &'a D,
    pub shared: &'a Shared,
    pub gauge: &'a Gauge,
    pub poller: Poller,
    pub buffer: Box<[u8]>,
    /// Encrypted bytes as read from the socket; empty without TLS.
    pub sealed: Box<[u8]>,
    /// The dialect's state for all connections of the thread.
    pub desk: D::ThreadState,
    /// The active ones, then the idle ones, then those of members that join and leave.
    pub connections: Vec<Connection<D::ConnectionState>>,
    /// Number of active connections: those that send requests.
    pub active: u32,
    pub times: Times,
    /// Slots without a connection, ordered by the time to open them.
    pub waiting: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Slots whose connection the server closed as announced while connections were being opened. They
    /// count as open, and are reopened when the load begins.
    pub ended: Vec<u32>,
    pub sources: Sources,
    /// Requests whose last byte is held back.
    pub holding: Holding,
    pub passing: Passing,
    /// Decides when to send requests.
    pub drive: V,
    /// The thread's number, of how many: slot `i` is slot `thread + i * threads` of the plan.
    pub part: Part,
    pub phase: Phase,
    /// The slice that runs or ran last, in a lane.
    pub slice: Option<Slice>,
    /// Whether replies are counted: in the window, and in a lane until the slice is drained.
    pub counts: bool,
    /// Whether the thread polls without sleeping in this phase.
    pub polls: bool,
    /// Maximum number of requests outstanding per open connection in this phase.
    pub depth: u32,
    /// Requests that may still be sent.
    pub left: u64,
    /// The last reading of the clock: after each read, in turns without events, and before requests are
    /// sent.
    pub now: Nanos,
    /// Whether nothing was ready in the last turn.
    pub idle: bool,
    /// When the wait of this turn began.
    pub turn_began: Nanos,
    /// What is read in this turn arrived after this moment.
    pub arrives_after: Nanos,
    /// Whether everything that was ready in this turn has been read so far.
    pub reads_all: bool,
    pub next_scan: Nanos,
    /// When connections are next asked for signs of life.
    pub next_sign: Nanos,
    /// See [`Gauge`], where these counters are published.
    pub replies: u64,
    /// Of those: first ones of idle connections and of members that join.
    pub inactive_replies: u64,
    /// Of all: counted for earlier slices of a lane.
    pub replies_before: u64,
    /// Replies on each connection when a slice began after a long rest; empty otherwise.
    pub replies_at_rest: Vec<u64>,
    pub settled: u64,
    pub awaited: u64,
    pub refused: u64,
    pub dropped: u64,
    /// Complete replies that are wrong, if errors are tolerated, or refusals.
    pub unexpected: u64,
    /// Number of replies by status, at the start of the window.
    pub statuses: Vec<u64>,
    /// Open connections that got their first reply, excluding members that join and leave.
    pub open: usize,
    /// Connections that stay open although they are no longer used.
    pub kept: u32,
    pub count: Count,
}
