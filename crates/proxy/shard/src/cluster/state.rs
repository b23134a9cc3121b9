//! What a core does for a cluster: its question for the slots, and the requests that are sent again.

use crate::{cluster::renaming::Renaming, node::upstream::Waiter};
use regatta_engine::Conn;
use regatta_keyspace::map::Map;
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Instant,
};

/// What a core does for a cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterState {
    /// The question for the slots in flight, if this core has asked.
    pub(crate) question: Option<Question>,
    /// Clients that wait until the slots are known, and since when one does.
    pub(crate) waiting: Vec<Conn>,
    pub(crate) waits_since: Option<Instant>,
    /// Requests that are to be sent again, in the order in which they are.
    pub(crate) repeated: VecDeque<Repeated>,
    /// Their bytes.
    pub(crate) repeated_bytes: usize,
    /// For each client and slot, the requests that were or will be sent again.
    pub(crate) out: BTreeMap<(Conn, u16), Out>,
    /// Clients whose command needs a view that was asked for after it arrived: the number of the question, and since when
    /// they wait.
    pub(crate) fresh: BTreeMap<Conn, (u64, Instant)>,
    /// Those of them whose input is to resume then.
    pub(crate) fresh_waiting: Vec<Conn>,
    /// Memory for commands that are sent under another name.
    pub(crate) renaming: Renaming,
    /// Merged replies to commands for all nodes and to SCAN that are pending, by their slots in the rings of the clients.
    pub(crate) asked_all: BTreeMap<(Conn, u32), AskedAll>,
}

/// A command for all nodes, or SCAN, whose reply is pending.
#[derive(Debug)]
pub(crate) struct AskedAll {
    /// The slots when it was sent.
    pub(crate) map: Arc<Map>,
    /// The number of the question whose answer the reply waits for, once all parts are there, and since when.
    pub(crate) needed: Option<u64>,
    pub(crate) since: Instant,
}

/// A question for the slots in flight.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) conn: Conn,
    pub(crate) from: SocketAddr,
    /// The replies so far: to CLUSTER INFO, CLUSTER SLOTS and CLUSTER NODES.
    pub(crate) replies: Vec<Vec<u8>>,
}

/// A request that is to be sent again.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub(crate) waiter: Waiter,
    pub(crate) slot: u16,
    pub(crate) hops: u8,
    pub(crate) bytes: Vec<u8>,
    /// When it arrived: see [`Entry`](crate::node::kept::Entry).
    pub(crate) arrived_us: u32,
    pub(crate) to: To,
    /// When it is sent, and when it is too late for that.
    pub(crate) due: Instant,
    pub(crate) until: Instant,
}

/// Where a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// To the node at this address, which owns the slot.
    Moved(SocketAddr),
    /// To the node at this address, which is getting the slot.
    Ask(SocketAddr),
    /// To the owner of the slot.
    Owner,
    /// To the owner of the slot in a view that was asked for with this number: the last one is a replica now.
    Successor(u64),
}

impl ClusterState {
    pub(crate) fn add(&mut self, repeated: Repeated) {
        self.repeated_bytes += repeated.bytes.len();
        self.repeated.push_back(repeated);
    }

    /// A request of a client for this slot has a reply that is not an error of the cluster.
    pub(crate) fn note_answer(&mut self, waiter: Waiter, slot: Option<u16>) {
        if let Some(slot) = slot
            && let Some(out) = self.out.get_mut(&(waiter.client, slot))
            && out.answered.is_none_or(|answered| is_earlier(answered, waiter.slot))
        {
            out.answered = Some(waiter.slot);
        }
    }

    /// Whether a later request of the client for the slot has such a reply.
    pub(crate) fn is_overtaken(&self, waiter: Waiter, slot: u16) -> bool {
        let out = self.out.get(&(waiter.client, slot));
        let answered = out.and_then(|out| out.answered);
        answered.is_some_and(|answered| is_earlier(waiter.slot, answered))
    }
}

/// Requests of a client for a slot that were or will be sent again.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// The slots of their replies, and the connections over which they were sent. Some may have their replies.
    pub(crate) all: Vec<(u32, Option<Conn>)>,
    /// The last request that has a reply.
    pub(crate) answered: Option<u32>,
}

impl Out {
    /// Notes over which connection a request was sent. `None`: over none yet.
    pub(crate) fn set(&mut self, slot: u32, conn: Option<Conn>) {
        match self.all.iter_mut().find(|(known, _)| *known == slot) {
            Some((_, at)) => *at = conn,
            None => self.all.push((slot, conn)),
        }
    }
}

/// Whether a reply is before another one of its client, by the numbers of their slots, which wrap around.
pub(crate) fn is_earlier(slot: u32, other: u32) -> bool {
    slot != other && other.wrapping_sub(slot) < 1 << 31
}
