//! The reply of a node to a request of a client, as the metrics and the slow log count it.
//!
//! Its duration is measured from the turn of the loop in which the request was given to the connection, to the turn in
//! which its first bytes arrived. So it contains what the request waited for: for the connection to be opened, in
//! queues of the kernel and of the network, behind other requests at the node, and for the node's work. It contains
//! neither what the proxy does before and after, nor the transfer of a long reply. The clock is read once per turn, at its
//! start, so a duration may be wrong by the length of a turn.
//!
//! For the slow log, the time in the proxy is measured, too: from the turn in which the last bytes of the request arrived
//! to the one in which it was given to the connection, and from the first bytes of the reply to the turn in which the
//! whole reply was in the client's output, e.g. after earlier replies of a pipeline.

use crate::{
    clients::{client::Client, identity::Identity, ring::SlowReply},
    node::{
        kept::Request,
        upstream::{Upstream, Waiter},
    },
    observe::{
        class::Class,
        slow_log::{LONGEST_NAME, SlowEntry, arguments},
    },
    proxy::state::Proxy,
};
use regatta_engine::{Conn, Now};
use std::time::Instant;

impl Proxy {
    /// Counts the reply to a request of a client, or to a part of one. Returns it if it is in the slow log.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        upstream: &Upstream,
        waiter: Waiter,
        is_error: bool,
        now: Now,
    ) -> Option<SlowReply> {
        let begun_us = upstream.begun_us.unwrap_or_else(|| self.clock.at_us(now.instant));
        let mut duration_us = u64::from(begun_us.wrapping_sub(waiter.sent_us));
        if waiter.class == Class::Blocking
            && let Some(blocked_us) = self.blocked_us(waiter.client, now.instant)
        {
            duration_us = blocked_us;
        }
        self.tally.reply(upstream.node, waiter.class, duration_us, is_error);
        if duration_us < self.slow_us || waiter.class == Class::Blocking {
            return None;
        }
        let request = if waiter.is_kept { upstream.kept.last() } else { Request::default() };
        let id = self.log_slow(waiter, request, duration_us, now);
        Some(SlowReply { slot: waiter.slot, id, begun_us })
    }

    /// Adds a request to the slow log. `request`: what is kept of it; `duration_us`: its time at the node. Returns the number
    /// of the entry.
    #[cold]
    fn log_slow(&self, waiter: Waiter, request: Request<'_>, duration_us: u64, now: Now) -> u64 {
        let client = self.peers.peek(waiter.client).map(|client| &client.identity);
        let name = client.map_or(&b""[..], Identity::name);
        // Of a request of which nothing was kept, the time is unknown.
        let arrived_us = if waiter.is_kept { request.entry.arrived_us } else { waiter.sent_us };
        let proxy_us = waiter.sent_us.wrapping_sub(arrived_us).into();
        self.shared.slow_log.add(SlowEntry {
            id: 0,
            unix_s: now.unix_s,
            duration_us,
            proxy_us,
            arguments: arguments(request.head()),
            client: client.map_or(0, |identity| identity.id),
            client_name: name[..name.len().min(LONGEST_NAME)].to_vec(),
        })
    }

    /// Adds the time of a reply in the proxy to the slow log: now, if it is in the client's output, otherwise once it
    /// is.
    #[cold]
    pub(crate) fn note_slow(&mut self, client: Conn, reply: SlowReply, now: Instant) {
        if self.peers.client(client).is_none_or(|client| client.ring.note_slow(reply)) {
            let now_us = self.clock.at_us(now);
            let more_us = now_us.wrapping_sub(reply.begun_us);
            self.shared.slow_log.add_proxy_time(reply.id, more_us.into());
        }
    }

    /// Adds the times of the replies to the slow log that are now in the client's output.
    #[cold]
    pub(crate) fn note_written(&mut self, client: Conn, now: Instant) {
        let now_us = self.clock.at_us(now);
        let Some(client) = self.peers.client(client) else { return };
        let log = &self.shared.slow_log;
        client.ring.written_slow(|reply| {
            log.add_proxy_time(reply.id, now_us.wrapping_sub(reply.begun_us).into());
        });
    }

    /// How long the blocking command of a client has taken, in microseconds. This may be too long for the number of a
    /// waiter.
    fn blocked_us(&self, client: Conn, now: Instant) -> Option<u64> {
        let blocking = self.peers.peek(client).and_then(Client::blocking)?;
        Some(now.saturating_duration_since(blocking.since).as_micros() as u64)
    }
}
