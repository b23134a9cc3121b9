//! The connections over which users are tried: one for each node, over which only AUTH is sent.
//!
//! Each AUTH replaces the user of the connection, so one serves all clients. A connection for each would let a flood of
//! wrong passwords use up the ports.
//!
//! Only a few are in flight ([`LOGINS`](crate::node::upstream::LOGINS)). The other clients wait, and are tried in the
//! order in which they came.

use crate::{
    node::upstream::{Upstream, Use},
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use std::{
    mem,
    time::{Duration, Instant},
};

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

    /// Lets clients continue that wait for a connection with few pending replies: as many as there is room for, the first
    /// ones first.
    pub(crate) fn admit_held(&mut self, upstream: &mut Upstream, now: Instant) {
        let mut room = upstream.most.saturating_sub(upstream.waiting.len());
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
            // If these do not use it, e.g. because another node is asked now, the next ones continue at the next check.
            self.check_soon(now);
        }
        self.release(admitted);
    }

    /// Lets clients continue that wait for a connection over which no reply is pending: those whose turn it was have not
    /// used it.
    pub(crate) fn release_stranded(&mut self) {
        let is_stranded = |one: &&mut Upstream| one.waiting.is_empty() && !one.held.is_empty();
        let stranded = self.peers.upstreams_mut().filter(is_stranded);
        let held: Vec<Conn> = stranded.flat_map(|one| mem::take(&mut one.held)).collect();
        self.release(held);
    }

    /// Closes connections over which nobody was tried for long. Returns when the next one is due.
    pub(crate) fn close_unused_logins(&mut self, effects: &mut Fx) -> Option<Instant> {
        let now = effects.now().instant;
        let mut due = None;
        for node in 0..self.logins.len() {
            let Some(conn) = self.logins[node] else { continue };
            let Some(upstream) = self.peers.upstream(conn) else { continue };
            // Otherwise, the check that waits for the reply comes again.
            if !upstream.waiting.is_empty() {
                continue;
            }
            let until = upstream.since + KEPT_FOR;
            if until <= now {
                self.logins[node] = None;
                self.close_unused(conn, effects);
            } else {
                due = due.into_iter().chain([until]).min();
            }
        }
        due
    }
}
