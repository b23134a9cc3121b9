//! Views of a cluster that are asked for after a command arrived: commands for all nodes and SCAN need one, because a
//! node that has lost its slots without the proxy's notice answers them all the same. One question serves all that wait.
//!
//! Before the command is sent, its client waits as for the first view. A flush, and a reply of SCAN after which another node
//! is next, also need one afterwards: if slots have moved meanwhile, keys may have been missed.

use crate::{
    clients::{client::Client, next::Next},
    cluster::state::{AskedAll, ClusterState},
    node::upstream::Waiter,
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use regatta_keyspace::{
    map::{PLACES, SLOTS},
    route::Decision,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a core waits until it looks for a view for which another core has asked.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Whether a command removes all keys: it is also sent to nodes that are getting their first slots.
fn is_flush(decision: &Decision) -> bool {
    matches!(decision.name(), "flushall" | "flushdb")
}

impl Proxy {
    /// Lets a client wait for a view that was requested after its command arrived. `None`: the view is there, or the
    /// nodes are no cluster.
    pub(crate) fn waits_for_view(
        &mut self,
        client: &mut Client,
        decision: &Decision,
        effects: &mut Fx,
    ) -> Option<Next> {
        let cluster = self.cluster.as_mut()?;
        let (now, conn) = (effects.now().instant, client.conn);
        let (needed, since) =
            *cluster.fresh.entry(conn).or_insert_with(|| (self.shared.want_fresh_slots(), now));
        let is_confirmed = self.shared.confirmed_view() >= needed;
        if is_confirmed && is_flush(decision) && !self.shared.admit_all() {
            cluster.fresh.remove(&conn);
            let text = b"ERR the cluster has more than 16 masters without slots, which may have keys; send it to the \
                         nodes directly";
            client.fail(&[text], effects);
            return Some(Next::Go);
        }
        if is_confirmed && self.shared.newer(self.changes).is_none() {
            return None;
        }
        if now >= since + self.settings.node_timeout {
            cluster.fresh.remove(&conn);
            let why = self.shared.why_no_slots();
            let text = format!(
                "SHARDDOWN no node has reported the slots of the cluster since the command arrived: {why}; nothing was \
                 sent"
            );
            client.fail(&[text.as_bytes()], effects);
            return Some(Next::Go);
        }
        cluster.fresh_waiting.push(conn);
        client.node_is_full = true;
        self.look_for_view(now);
        Some(Next::Full)
    }

    /// The command for which a client waited was sent, or has failed, unless it must be repeated.
    pub(crate) fn has_used_view(&mut self, conn: Conn, next: &Next) {
        if let Some(cluster) = &mut self.cluster
            && !matches!(next, Next::Again | Next::Full)
        {
            cluster.fresh.remove(&conn);
        }
    }

    /// The nodes to which a command for all nodes is sent.
    pub(crate) fn all_nodes(&self, decision: &Decision) -> Arc<[usize]> {
        if self.cluster.is_none() || !is_flush(decision) {
            return Arc::clone(&self.order);
        }
        let nodes = &self.settings.nodes;
        let is_guest = |node: &usize| !nodes.name(*node).is_empty() && !self.order.contains(node);
        let guests = (0..PLACES).filter(is_guest);
        self.order.iter().copied().chain(guests).collect()
    }

    /// A request was sent to all nodes, or SCAN to one. Its merged reply has this slot in the client's ring.
    pub(crate) fn asks_all(&mut self, conn: Conn, slot: u32, now: Instant) {
        if let Some(cluster) = &mut self.cluster {
            let asked = AskedAll { map: Arc::clone(&self.map), needed: None, since: now };
            cluster.asked_all.insert((conn, slot), asked);
        }
    }

    /// Whether the merged reply to a command for all nodes needs a view before it is sent.
    pub(crate) fn needs_confirmation(&self, decision: &Decision) -> bool {
        self.cluster.is_some() && is_flush(decision)
    }

    /// A part of a merged reply has arrived. If it was the last one, and the reply needs a view before it is sent, this is
    /// asked for.
    #[cold]
    pub(crate) fn part_arrived(&mut self, waiter: Waiter, now: Instant) {
        let key = (waiter.client, waiter.slot);
        let ring = self.peers.peek(waiter.client).map(|client| &client.ring);
        let is_pending = ring.is_some_and(|ring| ring.is_pending(waiter.slot));
        let awaits = ring.is_some_and(|ring| ring.awaits_confirmation(waiter.slot));
        let Some(cluster) = &mut self.cluster else { return };
        if !is_pending {
            cluster.asked_all.remove(&key);
        } else if awaits
            && let Some(asked) = cluster.asked_all.get_mut(&key)
            && asked.needed.is_none()
        {
            (asked.needed, asked.since) = (Some(self.shared.want_fresh_slots()), now);
            self.look_for_view(now);
        }
    }

    /// A slot of the node at this place, when this request was sent to all nodes.
    pub(super) fn slot_of_place(&self, waiter: Waiter, place: usize) -> Option<u16> {
        let asked = self.cluster.as_ref()?.asked_all.get(&(waiter.client, waiter.slot))?;
        let slots = asked.map.cluster()?;
        (0..SLOTS).find(|slot| slots.serves(*slot) && slots.node_of(*slot) == place)
    }

    /// Whether the view that was requested with this number is there, and this core uses it.
    pub(super) fn has_view(&self, needed: u64) -> bool {
        self.shared.confirmed_view() >= needed && self.shared.newer(self.changes).is_none()
    }

    /// Looks soon for a view that was asked for.
    pub(super) fn look_for_view(&mut self, now: Instant) {
        let due = self.shared.slots_due().unwrap_or(now).min(now + LOOK_PAUSE);
        self.tick_at = Some(self.tick_at.map_or(due, |at| at.min(due)));
    }

    /// Continues with commands and replies whose view is there, or that have waited too long.
    pub(super) fn use_views(&mut self, effects: &mut Fx) {
        let (now, timeout) = (effects.now().instant, self.settings.node_timeout);
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.fresh.is_empty() && cluster.asked_all.is_empty() {
            return;
        }
        let peers = &self.peers;
        cluster.fresh.retain(|conn, _| peers.peek(*conn).is_some());
        cluster.asked_all.retain(|(conn, slot), _| {
            peers.peek(*conn).is_some_and(|client| client.ring.is_pending(*slot))
        });
        let confirmed = self.shared.confirmed_view();
        let is_over = |needed: u64, since: Instant| confirmed >= needed || now >= since + timeout;
        let (ready, waiting) =
            std::mem::take(&mut cluster.fresh_waiting).into_iter().partition(|conn| {
                cluster.fresh.get(conn).is_none_or(|(needed, since)| is_over(*needed, *since))
            });
        cluster.fresh_waiting = waiting;
        let replies = cluster.asked_all.iter().filter_map(|(key, asked)| {
            asked.needed.filter(|needed| is_over(*needed, asked.since)).map(|_| *key)
        });
        let replies: Vec<(Conn, u32)> = replies.collect();
        self.release(ready);
        for key in replies {
            self.confirm(key, effects);
        }
    }

    /// Completes a reply for which a view was asked for.
    fn confirm(&mut self, (conn, slot): (Conn, u32), effects: &mut Fx) {
        let Some(cluster) = &mut self.cluster else { return };
        let Some(asked) = cluster.asked_all.get(&(conn, slot)) else { return };
        let Some(needed) = asked.needed else { return };
        let refusal = if self.shared.confirmed_view() < needed {
            let why = self.shared.why_no_slots();
            Some(format!("SHARDDOWN it is not known whether slots have moved meanwhile: {why}"))
        } else if self.shared.newer(self.changes).is_some() {
            // This core must adopt the slots first.
            return self.look_for_view(effects.now().instant);
        } else if asked.map.assigns_like(&self.map) {
            None
        } else {
            Some("SHARDMOVED slots have moved meanwhile, and keys may have been missed".to_owned())
        };
        cluster.asked_all.remove(&(conn, slot));
        self.part(Waiter::part(conn, slot, 0), 0, effects, |merging| merging.confirm(refusal));
    }
}

impl ClusterState {
    /// Whether a view is looked for.
    pub(crate) fn looks_for_view(&self) -> bool {
        !self.fresh_waiting.is_empty()
            || self.asked_all.values().any(|asked| asked.needed.is_some())
    }
}
