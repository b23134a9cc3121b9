//! A connection to a node.

use regatta_engine::Conn;
use regatta_proto::resp::Replies;
use std::{collections::VecDeque, time::Instant};

/// A connection to a node.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) conn: Conn,
    pub(super) node: usize,
    /// The pool that it belongs to.
    pub(super) pool: usize,
    pub(super) use_: Use,
    pub(super) is_open: bool,
    /// Finds the ends of replies.
    pub(super) replies: Replies,
    /// The beginning of a reply that is not whole.
    pub(super) begun: Vec<u8>,
    /// How many bytes of it were looked at.
    pub(super) seen: usize,
    /// The beginning of the reply that is coming went out to its client already.
    pub(super) streams: bool,
    /// What the next replies are for. One whose client has gone keeps its position.
    pub(super) waiting: VecDeque<Waiter>,
    /// Since when the first of them has been the first.
    pub(super) since: Instant,
    /// Clients that are not read until what is pending to the node is written.
    pub(super) held: Vec<Conn>,
}

/// Who uses a connection to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// All clients of its pool.
    Shared,
    /// One client, for commands that others must not come between.
    Leased(Conn),
    /// Nobody, for now: it was leased before.
    Idle,
    /// One client, for its subscriptions.
    Subscribed(Conn),
    /// The proxy, to see whether the node answers.
    Probe,
}

/// What a reply of a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) client: Conn,
    /// The number of the client's slot.
    pub(super) slot: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// It is the client's reply.
    Whole,
    /// It is this part of the client's reply.
    Part(u32),
    /// The proxy asked, to prepare the connection: anything but an error is fine.
    Prepared,
    /// The proxy asked in the client's name within a transaction; the client does not see the reply.
    Queued,
    /// The proxy asked whether the node answers.
    Probed,
}

impl Upstream {
    pub(super) fn new(conn: Conn, node: usize, pool: usize, use_: Use, now: Instant) -> Self {
        Upstream {
            conn,
            node,
            pool,
            use_,
            is_open: false,
            replies: Replies::default(),
            begun: Vec::new(),
            seen: 0,
            streams: false,
            waiting: VecDeque::new(),
            since: now,
            held: Vec::new(),
        }
    }

    /// One more reply is to come.
    #[inline]
    pub(super) fn wait(&mut self, waiter: Waiter, now: Instant) {
        if self.waiting.is_empty() {
            self.since = now;
        }
        self.waiting.push_back(waiter);
    }

    /// One more reply to the proxy itself is to come.
    pub(super) fn wait_for_itself(&mut self, what: What, now: Instant) {
        self.wait(Waiter { client: self.conn, slot: 0, what }, now);
    }
}
