//! Periodic checks of the nodes: reply timeouts, and probes of nodes that are down.

use crate::{
    node::{
        loss_reason::Loss,
        nodes::Health,
        upstream::{Upstream, Use},
    },
    peers::Peer,
    proxy::state::{Fx, Proxy},
};
use rand::Rng;
use regatta_engine::Conn;
use std::time::{Duration, Instant};

/// Interval between checks while a node owes a reply, or a client is subscribed.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Proxy {
    pub(crate) fn check_nodes(&mut self, effects: &mut Fx) {
        let now = effects.now().instant;
        let timeout = self.settings.node_timeout;
        let late = |upstream: &&Upstream| {
            let deadline = || upstream.deadline(timeout, &self.peers);
            !upstream.waiting.is_empty() && deadline().is_some_and(|at| now >= at)
        };
        let late: Vec<Conn> = self.peers.upstreams().filter(late).map(|one| one.conn).collect();
        for conn in late {
            if let Some(Peer::Upstream(upstream)) = self.peers.take(conn) {
                self.shared.counts.timeouts.add(1);
                self.lose(*upstream, Loss::TimedOut, effects);
            }
        }
        for node in 0..self.health.len() {
            if self.health[node].probes(now) {
                self.connect(0, node, Use::Probe, effects);
            }
        }
        self.release_stranded();
        let logins_due = self.close_unused_logins(effects);
        // Subscribers send nothing, but must also learn of a new map.
        let is_busy = self
            .peers
            .upstreams()
            .any(|one| !one.waiting.is_empty() || matches!(one.use_, Use::Subscribed(_)));
        self.close_retired(effects);
        let slots_due = self.ask_for_slots(effects);
        let masters_due = self.ask_for_masters(effects);
        for conn in self.pools.expired(now) {
            self.close_unused(conn, effects);
        }
        let due = self.health.iter().filter_map(Health::due).chain(self.pools.due());
        let due = due.chain(logins_due).chain(slots_due).chain(masters_due).min();
        self.tick_at = due.into_iter().chain(is_busy.then_some(now + CHECK_INTERVAL)).min();
    }

    /// Schedules a check of the nodes, because one of them now owes a reply.
    #[inline]
    pub(crate) fn check_soon(&mut self, now: Instant) {
        let soon = now + CHECK_INTERVAL;
        if self.tick_at.is_none_or(|at| at > soon) {
            self.tick_at = Some(soon);
        }
    }

    /// Records that a node could not be reached, or did not answer in time.
    pub(crate) fn fails(&mut self, node: usize, why: &str, effects: &mut Fx) {
        let jitter = self.random.random();
        self.tally.set_down(node, true);
        self.shared.report(&self.settings.nodes, node, Some(why));
        self.health[node].failed(effects.now().instant, why.to_string(), jitter);
        let due = self.health[node].due();
        self.tick_at = self.tick_at.into_iter().chain(due).min();
    }

    /// The error for a request to a node that is down, without the leading `-`.
    pub(crate) fn down(&self, node: usize) -> Vec<u8> {
        let name = self.settings.nodes.name(node);
        let why = self.health[node].why_down().unwrap_or("the connection was just lost");
        format!("SHARDDOWN node {name}: {why}").into_bytes()
    }
}
