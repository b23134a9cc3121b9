//! The memory that the proxy of a core holds for its clients, and its limit.
//!
//! One budget covers everything whose size clients choose: requests that are incomplete or must wait,
//! replies that are unread, stashed or being merged, commands of a transaction that the node has not
//! yet accepted, and names of subscriptions. When it is exceeded, the client that holds the most is
//! disconnected, as with `maxmemory-clients` of Redis. Clients that have not authenticated go first.

use crate::{
    clients::client::{Client, Input, Mode, OWED},
    node::upstream::{Upstream, Use},
    peers::Peer,
    proxy::{
        forward::FULL,
        replies::SHORT,
        state::{Fx, Proxy},
    },
};
use regatta_proto::resp::Command;
use std::time::{Duration, Instant};

/// Bytes of replies from which on they count. Fewer are held only for a moment: the kernel's send
/// buffer is larger. Requests always count.
pub(super) const COUNTED: usize = 16 * 1024;

/// Bytes that a client may leave unread beyond its limit: short replies, which are sent in any case.
const MARGIN: usize = OWED * SHORT;

/// A byte of a client that has not authenticated weighs as much as this many of one that has.
const STRANGER: usize = 256;

/// Minimum rate of a request that takes longer than the request timeout, in bytes per second.
const REQUEST_RATE: usize = 16 * 1024;

impl Proxy {
    /// Counts what is held for a client. Disconnects it if it leaves too many bytes unread, or the
    /// clients with the most if all together hold too much.
    pub(super) fn count_memory(&mut self, client: &mut Client, effects: &mut Fx) {
        if client.is_cut {
            return;
        }
        let unread = effects.pending(client.conn) + client.ring.held() + client.arriving;
        let to_node = match &client.mode {
            Mode::Leased(transaction) => {
                transaction.lease().map_or(0, |(_, conn)| effects.pending(conn))
            }
            _ => 0,
        };
        let (requests, replies) = (client.requests(), unread + to_node);
        if requests == client.requests && replies < COUNTED && client.counted == 0 {
            return;
        }
        let counted = if replies < COUNTED { 0 } else { replies };
        self.held = self.held - client.held() + requests + counted;
        (client.requests, client.counted) = (requests, counted);
        if unread > self.settings.client_bytes + MARGIN {
            self.shared.counts.unread.add(1);
            return self.disconnect(client, effects);
        }
        while self.held > self.settings.all_bytes {
            let most = self.peers.clients().max_by_key(|other| other.weight());
            let most = most.filter(|most| most.weight() > client.weight()).map(|most| most.conn);
            self.shared.counts.evicted.add(1);
            let Some(Peer::Client(mut most)) = most.and_then(|conn| self.peers.take(conn)) else {
                return self.disconnect(client, effects);
            };
            self.disconnect(&mut most, effects);
            self.peers.put(most.conn, Peer::Client(most));
        }
    }

    /// Disconnects a client at once. What was held for it is freed.
    pub(super) fn disconnect(&mut self, client: &mut Client, effects: &mut Fx) {
        self.forget_memory(client);
        client.ring = Default::default();
        client.rest = None;
        client.input = Input::Ended;
        client.is_cut = true;
        effects.abort(client.conn);
    }

    /// Subtracts a client that is disconnected.
    pub(super) fn forget_memory(&mut self, client: &mut Client) {
        self.held -= client.held();
        (client.requests, client.counted) = (0, 0);
    }

    /// Charges the incomplete reply of a node to the client that waits for it, if it is large.
    pub(super) fn charge(&mut self, upstream: &mut Upstream, bytes: usize) {
        let owner = upstream.waiting.front().map(|waiter| waiter.client);
        let now = owner.filter(|_| bytes >= COUNTED).map(|owner| (owner, bytes));
        let before = std::mem::replace(&mut upstream.charged, now);
        if before == now {
            return;
        }
        if let Some((conn, bytes)) = before
            && let Some(client) = self.peers.client(conn)
        {
            client.arriving = client.arriving.saturating_sub(bytes);
            self.resume_later(conn);
        }
        if let Some((conn, bytes)) = now
            && let Some(client) = self.peers.client(conn)
        {
            client.arriving += bytes;
            self.resume_later(conn);
        }
    }

    /// Returns whether there is no memory to forward this request. Only large ones are checked: all
    /// others find room for at most [`FULL`] bytes at a node.
    pub(super) fn is_too_large_now(&self, command: &Command<'_>, effects: &Fx) -> bool {
        let bytes = command.bytes.len();
        if bytes < FULL {
            return false;
        }
        let is_shared = |one: &&Upstream| matches!(one.use_, Use::Shared | Use::Retired);
        let shared = self.peers.upstreams().filter(is_shared);
        let to_nodes: usize = shared.map(|one| effects.pending(one.conn)).sum();
        self.held + to_nodes + bytes > self.settings.all_bytes
    }

    /// For tests: the bytes held for clients, added up anew and from other sources than those of the
    /// budget, except output of their connections.
    #[doc(hidden)]
    pub fn held_for_clients(&self) -> usize {
        let clients = self.peers.clients().map(|client| {
            let queued = match &client.mode {
                Mode::Leased(transaction) => {
                    transaction.multi.as_ref().map_or(0, |multi| multi.early.len())
                }
                Mode::Subscribed(subscriptions) => subscriptions.names().map(Vec::len).sum(),
                Mode::Plain => 0,
            };
            client.unparsed() + queued + client.ring.held()
        });
        let partial = self.peers.upstreams().map(|upstream| upstream.partial.len());
        let nodes = partial.filter(|partial| *partial >= COUNTED);
        clients.sum::<usize>() + nodes.sum::<usize>()
    }

    /// For tests: the most bytes held for one client that has not authenticated.
    #[doc(hidden)]
    pub fn held_before_trust(&self) -> usize {
        let strangers = self.peers.clients().filter(|client| !client.identity.is_trusted);
        strangers.map(|client| client.unparsed() + client.ring.held()).max().unwrap_or(0)
    }
}

impl Client {
    /// The bytes of its input that are not yet parsed into commands.
    fn unparsed(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.held())
    }

    /// The bytes of its requests that are held.
    fn requests(&self) -> usize {
        let mode = match &self.mode {
            Mode::Plain => 0,
            Mode::Leased(transaction) => {
                transaction.multi.as_ref().map_or(0, |multi| multi.early.len())
            }
            Mode::Subscribed(subscriptions) => subscriptions.bytes(),
        };
        mode + self.unparsed()
    }

    /// The bytes that count towards the budget.
    fn held(&self) -> usize {
        self.requests + self.counted
    }

    /// How much it matters to disconnect this client when the budget is exceeded.
    fn weight(&self) -> usize {
        if self.identity.may_send_much() {
            self.held()
        } else {
            self.held().saturating_mul(STRANGER)
        }
    }

    /// Notes whether the client is in the middle of a request. `is_next`: it is not the request of the
    /// last call.
    pub(super) fn note_partial(&mut self, is_partial: bool, is_next: bool, now: Instant) {
        self.partial_since = match self.partial_since {
            _ if !is_partial => None,
            Some(since) if !is_next => Some(since),
            _ => Some(now),
        };
    }

    /// The start of the incomplete request, for the request timeout, moved by the time that the bytes
    /// so far have [earned].
    pub(super) fn inside(&self) -> Option<Instant> {
        self.partial_since.map(|since| since + earned(self.unparsed()))
    }

    /// Queues nothing more for a request for which there is no memory.
    pub(super) fn refuse_for_memory(&mut self, effects: &mut Fx) {
        let why = b"SHARDBUSY the proxy's memory for clients is used up; nothing was sent";
        self.fail(&[why], effects);
    }
}

/// The time by which a request may take longer after this many bytes: a large request may arrive
/// slowly, but not below a minimum rate.
pub(crate) fn earned(bytes: usize) -> Duration {
    Duration::from_millis((bytes.saturating_mul(1000) / REQUEST_RATE) as u64)
}
