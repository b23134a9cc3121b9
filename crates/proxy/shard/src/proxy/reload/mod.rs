//! A changed configuration, adopted while clients are served.

use crate::{
    node::{
        nodes::{Health, Nodes},
        upstream::{Left, Upstream, Use},
    },
    proxy::state::{Fx, Proxy, slow_us},
    settings::Settings,
};
use rand::Rng;
use regatta_engine::Conn;
use std::{mem, sync::Arc};

impl Proxy {
    /// Adopts the current configuration if it has changed.
    #[inline]
    pub(crate) fn follow_settings(&mut self, effects: &mut Fx) {
        if let Some((settings, changes)) = self.shared.newer(self.changes) {
            self.changes = changes;
            self.adopt(settings, effects);
        }
    }

    #[cold]
    fn adopt(&mut self, settings: Arc<Settings>, effects: &mut Fx) {
        self.slow_us = slow_us(&settings);
        if self.hot_keys.is_some() != settings.hot_keys {
            let sampler = || Box::new(self.shared.hot_keys.sampler(self.random.random()));
            self.hot_keys = settings.hot_keys.then(sampler);
        }
        let before = mem::replace(&mut self.settings, settings);
        if self.settings.auth.clients.is_none() {
            // No password is needed.
            self.peers.clients_mut().for_each(|client| client.identity.is_trusted = true);
        }
        if self.map.epoch() == self.settings.map.epoch() {
            return;
        }
        let differing: Vec<bool> = self.settings.nodes.differing(&before.nodes).collect();
        let map = mem::replace(&mut self.map, Arc::clone(&self.settings.map));
        self.order = self.map.order().into();
        if self.cluster.is_some() {
            return self.adopt_slots(&map, (&before.nodes, &differing), effects);
        }
        let has_other_map = !map.assigns_like(&self.map);
        let moved: Vec<usize> = (0..differing.len()).filter(|node| differing[*node]).collect();
        // First, because the errors below name the server that was left.
        moved.iter().for_each(|node| self.note_left(*node, &before.nodes));
        self.end_leases(|node| has_other_map || differing[node], effects);
        moved.iter().for_each(|node| self.leave_node(*node, effects));
    }

    /// Notes at the connections to a node that it is another server now. `before`: the nodes to which they lead.
    pub(crate) fn note_left(&mut self, node: usize, before: &Nodes) {
        let (name, address) = (before.name(node).to_owned(), before.address(node));
        let since = self.since();
        for upstream in self.peers.upstreams_mut().filter(|one| one.node == node) {
            // After two reloads, the first one counts.
            upstream
                .left
                .get_or_insert_with(|| Box::new(Left { name: name.clone(), address, since }));
        }
    }

    /// What has happened to a server that was a node, for errors.
    pub(crate) fn since(&self) -> &'static str {
        match () {
            () if self.cluster.is_some() => "its slots have moved",
            () if self.sentinel.is_some() => "before a failover",
            () => "before a reload",
        }
    }

    /// Closes connections that depend on where keys and channels were, if they lead to one of these nodes.
    pub(crate) fn end_leases(&mut self, is_concerned: impl Fn(usize) -> bool, effects: &mut Fx) {
        let is_own = |_: &Proxy, one: &Upstream| {
            matches!(one.use_, Use::Leased(_) | Use::Subscribed(_)) && is_concerned(one.node)
        };
        self.lose_moved(is_own, effects);
    }

    /// Uses other connections to a node from now on: it is another server. The connections that clients share
    /// are closed once they have brought all replies.
    pub(crate) fn leave_node(&mut self, node: usize, effects: &mut Fx) {
        let (shared, idle) = self.pools.forget_node(node);
        for conn in shared {
            if let Some(upstream) = self.peers.upstream(conn) {
                upstream.use_ = Use::Retired;
            }
        }
        let probes = |one: &&Upstream| one.node == node && one.use_ == Use::Probe;
        let probes: Vec<Conn> = self.peers.upstreams().filter(probes).map(|one| one.conn).collect();
        // One that is in use is closed after the last reply. Clients that wait for it are tried at the other server.
        let login = self.logins[node].take();
        if let Some(upstream) = login.and_then(|conn| self.peers.upstream(conn)) {
            let held = mem::take(&mut upstream.held);
            self.release(held);
        }
        let login = login.filter(|conn| {
            self.peers.upstream(*conn).is_some_and(|upstream| upstream.waiting.is_empty())
        });
        for conn in idle.into_iter().chain(probes).chain(login) {
            // Clients may wait until the node has accepted their user over it.
            self.close_unused(conn, effects);
        }
        self.health[node] = Health::Up;
        self.tally.set_down(node, false);
        self.close_retired(effects);
        self.check_soon(effects.now().instant);
    }

    /// Closes connections that are retired and have brought all replies.
    pub(crate) fn close_retired(&mut self, effects: &mut Fx) {
        let is_over = |one: &&Upstream| one.use_ == Use::Retired && one.waiting.is_empty();
        let over: Vec<Conn> = self.peers.upstreams().filter(is_over).map(|one| one.conn).collect();
        over.into_iter().for_each(|conn| self.close_unused(conn, effects));
    }
}
