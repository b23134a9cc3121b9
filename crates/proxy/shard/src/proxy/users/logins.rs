//! The connections over which users are tried: one for each node, over which only AUTH is sent.
//!
//! Each AUTH replaces the user of the connection, so one serves all clients. A connection for each would let a flood of
//! wrong passwords use up the ports.
//!
//! A node closes a connection that has not authenticated once more replies are pending than fit in its reply buffer, and
//! then answers none of the pending requests (the fix of CVE-2025-21605 in Redis). So only a few are in flight. The other
//! clients wait, and are tried in the order in which they came.

use crate::{
    clients::client::Client,
    node::upstream::{Upstream, Use},
    peers::Peer,
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use std::time::{Duration, Instant};

/// Maximum number of logins in flight over a connection. The reply buffer of a connection that had little to do has 1 KiB
/// (`PROTO_REPLY_MIN_BYTES` of Redis 7), and WRONGPASS has 64 bytes: Redis 7.0.15 answers 16 at once, and none of 17.
const MOST: usize = 8;

/// How long a connection is kept over which nobody is tried.
const KEPT_FOR: Duration = Duration::from_secs(60);

impl Proxy {
    /// Returns the connection over which users are tried at a node, and opens it if necessary. `None` if the node is
    /// down.
    pub(super) fn login_to(&mut self, node: usize, effects: &mut Fx) -> Option<Conn> {
        // One that has failed may not have been reported yet.
        if let Some(conn) = self.logins[node]
            && effects.out(conn).is_some()
        {
            return Some(conn);
        }
        let conn = self.connect(0, node, Use::Login, effects)?;
        self.logins[node] = Some(conn);
        Some(conn)
    }

    /// Returns whether too many logins are in flight over a connection. The client then waits.
    pub(super) fn has_many_logins(&mut self, client: &mut Client, conn: Conn) -> bool {
        let Some(upstream) = self.peers.upstream(conn) else { return false };
        if upstream.waiting.len() < MOST {
            return false;
        }
        upstream.held.push(client.conn);
        client.node_is_full = true;
        true
    }

    /// Lets clients continue that wait to be tried over a connection: as many as there is room for, the first ones
    /// first.
    pub(crate) fn admit_held(&mut self, upstream: &mut Upstream, now: Instant) {
        let mut room = MOST.saturating_sub(upstream.waiting.len());
        let held = &mut upstream.held;
        let waits = |conn: Conn| self.peers.peek(conn).is_some_and(|client| client.node_is_full);
        let count = held.iter().take_while(|conn| {
            let has_room = room > 0;
            // Those that have disconnected need none.
            room -= usize::from(has_room && waits(**conn));
            has_room
        });
        let count = count.count();
        let admitted = held.drain(..count).collect();
        if !held.is_empty() {
            // Should these not use it, e.g. because of unread replies, then the next ones continue at the next check.
            self.check_soon(now);
        }
        self.release(admitted);
    }

    /// Lets clients continue whose turn it is, and closes connections over which nobody was tried for long. Returns when
    /// this is due again.
    pub(crate) fn check_logins(&mut self, effects: &mut Fx) -> Option<Instant> {
        let now = effects.now().instant;
        let mut due = None;
        for node in 0..self.logins.len() {
            let Some(conn) = self.logins[node] else { continue };
            let Some(Peer::Upstream(mut upstream)) = self.peers.take(conn) else { continue };
            let until = upstream.since + KEPT_FOR;
            // Otherwise, a reply or its loss continues.
            let is_idle = upstream.waiting.is_empty();
            if is_idle && !upstream.held.is_empty() {
                self.admit_held(&mut upstream, now);
                due = Some(now);
            } else if is_idle && until <= now {
                self.logins[node] = None;
                effects.abort(conn);
                continue;
            } else if is_idle {
                due = due.into_iter().chain([until]).min();
            }
            self.peers.put(conn, Peer::Upstream(upstream));
        }
        due
    }
}
