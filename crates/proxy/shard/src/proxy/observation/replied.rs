//! The reply of a node to a request of a client, as the metrics and the slow log count it.
//!
//! Its duration is measured from the turn of the loop in which the request was given to the connection, to the turn in
//! which its first bytes arrived. So it contains what the request waited for: for the connection to be opened, in
//! queues of the kernel and of the network, behind other requests at the node, and for the node's work. It contains
//! neither what the proxy does before and after, nor the transfer of a long reply. The clock is read once per turn, at its
//! start, so a duration may be wrong by the length of a turn.

use crate::{
    clients::{client::Client, identity::Identity},
    node::upstream::{Upstream, Waiter},
    observe::{
        class::Class,
        slow_log::{LONGEST_NAME, SlowEntry, arguments},
    },
    proxy::state::Proxy,
};
use regatta_engine::{Conn, Now};
use std::time::Instant;

impl Proxy {
    /// Counts the reply to a request of a client, or to a part of one.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        upstream: &mut Upstream,
        waiter: Waiter,
        is_error: bool,
        now: Now,
    ) {
        let begun_us = upstream.begun_us.unwrap_or_else(|| self.clock.at_us(now.instant));
        let mut duration_us = u64::from(begun_us.wrapping_sub(waiter.sent_us));
        if waiter.class == Class::Blocking
            && let Some(blocked_us) = self.blocked_us(waiter.client, now.instant)
        {
            duration_us = blocked_us;
        }
        self.tally.reply(upstream.node, waiter.class, duration_us, is_error);
        let head = upstream.heads.take(waiter.head);
        if duration_us >= self.slow_us && waiter.class != Class::Blocking {
            self.log_slow(waiter.client, head, duration_us, now);
        }
    }

    /// Adds a request to the slow log. `head`: its first bytes.
    #[cold]
    fn log_slow(&self, client: Conn, head: &[u8], duration_us: u64, now: Now) {
        let client = self.peers.peek(client).map(|client| &client.identity);
        let name = client.map_or(&b""[..], Identity::name);
        self.shared.slow_log.add(SlowEntry {
            id: 0,
            unix_s: now.unix_s,
            duration_us,
            arguments: arguments(head),
            client: client.map_or(0, |identity| identity.id),
            client_name: name[..name.len().min(LONGEST_NAME)].to_vec(),
        });
    }

    /// How long the blocking command of a client has taken, in microseconds. This may be too long for the number of a
    /// waiter.
    fn blocked_us(&self, client: Conn, now: Instant) -> Option<u64> {
        let blocking = self.peers.peek(client).and_then(Client::blocking)?;
        Some(now.saturating_duration_since(blocking.since).as_micros() as u64)
    }
}
