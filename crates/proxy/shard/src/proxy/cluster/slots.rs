//! Asking the nodes of a cluster for its slots, and adopting them.

use crate::{
    clients::{
        client::{Client, Mode},
        identity::is_set_info,
        next::Next,
    },
    cluster::{state::Question, view::View},
    node::{
        loss_reason::Loss,
        nodes::Nodes,
        upstream::{Upstream, Use, What},
    },
    peers::Peer,
    proxy::{
        cluster::fresh::LOOK_PAUSE,
        state::{Fx, Proxy},
    },
};
use rand::Rng;
use regatta_engine::{Conn, ConnInterest};
use regatta_keyspace::{
    map::{Map, PLACES},
    route::{Local, Route, decide, is_notification},
};
use regatta_proto::resp::{Command, write_command};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum time that a node may take to report the slots. No other node is asked meanwhile.
pub(crate) const ASKED_FOR: Duration = Duration::from_secs(1);

/// Maximum size of one of its replies, in bytes: 16,384 ranges of one slot, each with two replicas.
pub(crate) const LONGEST_SLOTS: usize = 8 << 20;

/// The place of the connections that ask for the slots. No slot belongs to it.
const OWN_PLACE: usize = PLACES - 1;

impl Proxy {
    /// There is a reason to ask for the slots. `first`: the node that knows best.
    #[cold]
    pub(crate) fn want_slots(&mut self, first: Option<SocketAddr>, effects: &Fx) {
        if self.cluster.is_some() {
            self.shared.want_slots(first);
            let due = self.shared.slots_due().unwrap_or(effects.now().instant);
            self.tick_at = Some(self.tick_at.map_or(due, |at| at.min(due)));
        }
    }

    /// Asks a node for the slots if it is time to. Returns when to call this again.
    pub(crate) fn ask_for_slots(&mut self, effects: &mut Fx) -> Option<Instant> {
        self.cluster.as_ref()?;
        let now = effects.now().instant;
        if let Some(address) = self.shared.ask_for_slots(now) {
            self.send_question(address, effects);
        }
        self.release_waiting(now);
        self.use_views(effects);
        self.forget_answered();
        self.end_left_leases(effects);
        let cluster = self.cluster.as_ref()?;
        // Another core may be asking: its answer is looked for at the next check.
        let soon = now + ASKED_FOR;
        let is_waited_for = !cluster.waiting.is_empty() || cluster.looks_for_view();
        let patience = is_waited_for.then_some(now + LOOK_PAUSE);
        Some(self.shared.slots_due().unwrap_or(soon)).into_iter().chain(patience).min()
    }

    fn send_question(&mut self, address: SocketAddr, effects: &mut Fx) {
        let now = effects.now().instant;
        let conn = effects.connect(address);
        let mut upstream = Box::new(Upstream::new(conn, OWN_PLACE, 0, Use::Slots, now));
        let Some(out) = effects.out(conn) else {
            return self.report_slots(Err("it cannot be connected to".into()), effects);
        };
        if let Some(own) = &self.settings.auth.nodes {
            write_command([&b"AUTH"[..], &own.user, &own.password], out);
            upstream.wait_for_itself(What::Authenticated, now);
        }
        for what in [&b"INFO"[..], b"SLOTS", b"NODES"] {
            write_command([&b"CLUSTER"[..], what], out);
            upstream.wait_for_itself(What::Slots, now);
        }
        effects.set(conn, ConnInterest { waits: true, ..ConnInterest::default() });
        self.peers.put(conn, Peer::Upstream(upstream));
        if let Some(cluster) = &mut self.cluster {
            cluster.question = Some(Question { conn, from: address, replies: Vec::new() });
        }
        self.check_soon(now);
    }

    /// Handles one of the replies to the question.
    pub(crate) fn slots_reported(&mut self, upstream: &Upstream, reply: &[u8], effects: &mut Fx) {
        let Some(cluster) = &mut self.cluster else { return };
        let Some(question) = cluster.question.as_mut().filter(|one| one.conn == upstream.conn)
        else {
            return;
        };
        question.replies.push(reply.to_vec());
        let Ok(replies) = <&[Vec<u8>; 3]>::try_from(&question.replies[..]) else { return };
        let view = View::read(replies, question.from);
        let view = view.map_err(|why| format!("node {}: {why}", question.from));
        cluster.question = None;
        effects.abort(upstream.conn);
        self.report_slots(view, effects);
    }

    /// The connection over which the question was asked is lost.
    pub(crate) fn slots_not_reported(&mut self, lost: &Upstream, loss: &Loss, effects: &mut Fx) {
        let Some(cluster) = &mut self.cluster else { return };
        if let Some(question) = cluster.question.take_if(|question| question.conn == lost.conn) {
            let (_, why) = loss.words(lost.is_open, ASKED_FOR);
            self.report_slots(Err(format!("node {}: {why}", question.from)), effects);
        }
    }

    fn report_slots(&mut self, view: Result<View, String>, effects: &mut Fx) {
        let jitter = self.random.random();
        self.shared.report_slots(view, effects.now().instant, jitter);
        self.follow_settings(effects);
        self.use_views(effects);
        self.check_soon(effects.now().instant);
        // The next question may be due earlier.
        self.look_for_view(effects.now().instant);
    }

    /// Adopts other slots. Only what depends on slots or nodes that have moved ends. `nodes`: those before, and whether each
    /// is another one now.
    pub(crate) fn adopt_slots(
        &mut self,
        before: &Map,
        (nodes, differing): (&Nodes, &[bool]),
        effects: &mut Fx,
    ) {
        let moved = || (0..differing.len()).filter(|node| differing[*node]);
        moved().for_each(|node| self.note_left(node, nodes));
        let has_ended = |own: &Proxy, one: &Upstream| match one.use_ {
            Use::Leased(client) => differing[one.node] && !own.is_answering(one, client),
            Use::Subscribed(_) => differing[one.node],
            _ => false,
        };
        self.lose_moved(|own, one| has_ended(own, one) || own.has_moved(one, before), effects);
        moved().for_each(|node| self.leave_node(node, effects));
        self.release_waiting(effects.now().instant);
    }

    /// Whether a reply is on its way over the connection of one client. If its command may block, that can take for ever.
    fn is_answering(&self, upstream: &Upstream, client: Conn) -> bool {
        let blocks = self.peers.peek(client).is_some_and(|client| client.blocking().is_some());
        !upstream.waiting.is_empty() && !blocks
    }

    /// Ends leases of nodes whose slots have moved, once they have brought the reply that was on its way.
    pub(crate) fn end_left_leases(&mut self, effects: &mut Fx) {
        let is_over = |_: &Proxy, one: &Upstream| {
            matches!(one.use_, Use::Leased(_)) && one.left.is_some() && one.waiting.is_empty()
        };
        self.lose_moved(is_over, effects);
    }

    /// Whether a connection of one client depends on a slot that has moved. While a request is in flight over it, its node
    /// decides.
    fn has_moved(&self, upstream: &Upstream, before: &Map) -> bool {
        let client = match upstream.use_ {
            Use::Leased(client) if upstream.waiting.is_empty() => client,
            Use::Subscribed(client) => client,
            _ => return false,
        };
        match self.peers.peek(client).map(|client| &client.mode) {
            Some(Mode::Leased(transaction)) => transaction
                .group
                .is_some_and(|group| before.node_of_group(group) != self.map.node_of_group(group)),
            Some(Mode::Subscribed(subscriptions)) => subscriptions.names().any(|name| {
                // Those of an unknown kind count as both.
                before.node(name) != self.map.node(name)
                    || is_notification(name) && before.order() != *self.order
            }),
            _ => false,
        }
    }

    /// Whether the nodes are of a cluster whose slots are not known yet.
    pub(crate) fn knows_no_slots(&self) -> bool {
        self.cluster.is_some() && self.order.is_empty()
    }

    /// Lets a client wait until the slots are known, if its command depends on them.
    pub(crate) fn waits_for_slots(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Option<Next> {
        let is_own = is_set_info(command) || self.hands_over(client, command);
        if !client.identity.is_trusted || is_own {
            return None;
        }
        let decision = decide(command, &self.map, &mut self.plan);
        match decision.route {
            Route::Local(local) if local != Local::Select => return None,
            Route::Refused(_) if decision.command.is_some() => return None,
            _ => {}
        }
        let now = effects.now().instant;
        let cluster = self.cluster.as_mut()?;
        let since = *cluster.waits_since.get_or_insert(now);
        if now >= since + self.settings.node_timeout {
            let why = self.shared.why_no_slots();
            let text = format!(
                "SHARDDOWN the slots of the cluster are not known: {why}; nothing was sent"
            );
            client.fail(&[text.as_bytes()], effects);
            return Some(Next::Go);
        }
        cluster.waiting.push(client.conn);
        client.node_is_full = true;
        self.check_soon(now);
        Some(Next::Full)
    }

    /// Lets clients continue that wait for the slots, once these are known, or it has taken too long.
    fn release_waiting(&mut self, now: Instant) {
        let is_known = !self.order.is_empty();
        let Some(cluster) = &mut self.cluster else { return };
        let is_late =
            cluster.waits_since.is_some_and(|since| now >= since + self.settings.node_timeout);
        if is_known || is_late {
            if is_known {
                cluster.waits_since = None;
            }
            let waiting = std::mem::take(&mut cluster.waiting);
            self.release(waiting);
        }
    }
}
