//! Looks at the nodes once in a while: who takes too long, and who is tried again.

use super::{
    loss::Loss,
    nodes::Health,
    peers::Peer,
    state::{Fx, Proxy},
    upstream::{Upstream, Use},
};
use rand::Rng;
use regatta_engine::Conn;
use std::time::{Duration, Instant};

/// How often the nodes are looked at while one of them owes a reply.
const LOOK: Duration = Duration::from_millis(100);

impl Proxy {
    pub(super) fn look_at_nodes(&mut self, effects: &mut Fx) {
        let now = effects.now().instant;
        let timeout = self.shared.settings.node_timeout;
        let owes =
            |upstream: &Upstream| !upstream.waiting.is_empty() && !upstream.may_block(&self.peers);
        let late = |upstream: &&Upstream| owes(upstream) && now >= upstream.since + timeout;
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
        // Subscribers send nothing, and must hear of a new map, too.
        let is_busy = self
            .peers
            .upstreams()
            .any(|one| !one.waiting.is_empty() || matches!(one.use_, Use::Subscribed(_)));
        let due = self.health.iter().filter_map(Health::due).min();
        self.tick_at = due.into_iter().chain(is_busy.then_some(now + LOOK)).min();
    }

    /// Takes the map of now, if it is another one.
    #[inline]
    pub(super) fn follow_map(&mut self, effects: &mut Fx) {
        if let Some(map) = self.shared.newer_map(self.map.epoch()) {
            self.map = map;
            self.end_leases(effects);
        }
    }

    /// Ends what depends on where keys and channels were.
    #[cold]
    fn end_leases(&mut self, effects: &mut Fx) {
        let is_own = |one: &&Upstream| matches!(one.use_, Use::Leased(_) | Use::Subscribed(_));
        let own: Vec<Conn> = self.peers.upstreams().filter(is_own).map(|one| one.conn).collect();
        for conn in own {
            if let Some(Peer::Upstream(upstream)) = self.peers.take(conn) {
                self.lose(*upstream, Loss::Moved, effects);
            }
        }
    }

    /// A node owes a reply from now on: it is looked at soon.
    #[inline]
    pub(super) fn look_soon(&mut self, now: Instant) {
        let soon = now + LOOK;
        if self.tick_at.is_none_or(|at| at > soon) {
            self.tick_at = Some(soon);
        }
    }

    /// A node could not be reached, or did not answer in time.
    pub(super) fn fails(&mut self, node: usize, why: &str, effects: &mut Fx) {
        let jitter = self.random.random();
        self.health[node].failed(effects.now().instant, why.to_string(), jitter);
        let due = self.health[node].due();
        self.tick_at = self.tick_at.into_iter().chain(due).min();
    }

    /// The error for a request to a node that is down, without the `-` in front.
    pub(super) fn down(&self, node: usize) -> Vec<u8> {
        let name = self.shared.settings.nodes.name(node);
        let why = self.health[node].why_down().unwrap_or("its connection has just been lost");
        format!("SHARDDOWN node {name}: {why}").into_bytes()
    }
}
