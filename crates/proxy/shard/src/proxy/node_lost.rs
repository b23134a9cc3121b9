//! A connection to a node is lost: what each client gets that waits for a reply over it.

use crate::{
    node::{
        loss_reason::Loss,
        upstream::{Upstream, Use, What},
    },
    peers::Peer,
    proxy::state::{Fx, Proxy},
    reply::errors,
};
use regatta_engine::{Conn, Flow};
use std::time::Duration;

/// How long a node that does not accept a user is not asked again.
const REFUSED_FOR: Duration = Duration::from_secs(1);
/// The same, if the connection was lost while the user was tried.
const LOST_FOR: Duration = Duration::from_millis(50);

impl Proxy {
    /// Handles the loss of a connection to a node. Each client waiting for a reply over it gets an
    /// error. It is disconnected instead if it has the start of the reply, or is subscribed.
    pub(crate) fn lose(&mut self, mut upstream: Upstream, loss: Loss, effects: &mut Fx) {
        let loss = upstream.not_opened.take().unwrap_or(loss);
        self.charge(&mut upstream, 0);
        let Upstream { conn, node, pool, .. } = upstream;
        effects.abort(conn);
        if matches!(upstream.use_, Use::Sentinel | Use::Announcements) {
            return self.sentinel_is_lost(&upstream, &loss, effects);
        }
        self.pools.get(pool).forget(node, conn);
        self.logins[node].take_if(|login| *login == conn);
        if upstream.use_ == Use::Slots {
            return self.slots_not_reported(&upstream, &loss, effects);
        }
        if matches!(upstream.use_, Use::Probe | Use::Login) && upstream.waiting.is_empty() {
            // It was answered. Nobody waits, unless those whose turn it was have not used it.
            return self.release(std::mem::take(&mut upstream.held));
        }
        // Otherwise another server is at the node's place now.
        let is_present = upstream.use_ != Use::Retired && upstream.left.is_none();
        // The node works, if it refuses a user or a command.
        let is_refused = matches!(loss, Loss::Refused(_) | Loss::Denied(_));
        if !matches!(upstream.use_, Use::Idle) && loss != Loss::Moved && !is_refused {
            self.shared.counts.lost.add(1);
            if is_present {
                self.settings.nodes.doubt(node);
            }
        }
        let timeout = self.settings.node_timeout;
        let (_, why) = loss.words(upstream.is_open, timeout);
        let is_blamed = !upstream.is_open && !matches!(loss, Loss::NotOpened(_))
            || loss == Loss::TimedOut
            // A user that a node does not accept is no fault of the node.
            || upstream.denied.is_some() && (upstream.is_admitted || self.sentinel.is_some())
            || matches!(loss, Loss::NoMaster(_))
            || upstream.use_ == Use::Probe;
        if loss != Loss::Moved && !matches!(upstream.use_, Use::Idle | Use::Retired) {
            self.want_slots(None, effects);
            self.want_masters(false, effects);
        }
        if is_blamed && loss != Loss::Moved && is_present {
            self.fails(node, &why, effects);
        } else if !upstream.is_admitted && loss != Loss::Moved && is_present {
            let error = self.refusal(node, &loss, upstream.is_open);
            let pause = if is_refused { REFUSED_FOR } else { LOST_FOR };
            self.pools.get(pool).refuse(node, error, effects.now().instant + pause);
        }
        self.fail_waiting(&mut upstream, &loss, effects);
        if matches!(upstream.use_, Use::Shared | Use::Retired) {
            self.described.forget(conn);
        }
        self.release(std::mem::take(&mut upstream.held));
        let name = self.shown(&upstream);
        match upstream.use_ {
            Use::Leased(client) => self.lease_is_lost(client, conn, loss, name),
            // Nothing was subscribed over it yet.
            Use::Subscribed(client) if !upstream.is_verified => {
                let why = match &loss {
                    Loss::Refused(text) if text.starts_with(b"NOAUTH") => text.clone(),
                    _ if !upstream.is_admitted => self.refusal(node, &loss, upstream.is_open),
                    _ => loss.text(&name, false, timeout).into_bytes(),
                };
                self.subscriber_is_lost(client, node, why);
            }
            Use::Subscribed(client) if self.cluster.is_some() => {
                let (code, why) = loss.words(upstream.is_open, timeout);
                self.end_subscriber(client, &format!("{code} node {name}: {why}"), effects);
            }
            // The client would miss messages without noticing.
            Use::Subscribed(client) => effects.close(client, Flow::Close),
            Use::Shared | Use::Idle | Use::Probe | Use::Login | Use::Retired => {}
            // See above.
            Use::Slots | Use::Sentinel | Use::Announcements => {}
        }
    }

    /// Closes the connections to nodes for which this holds, because what they depend on has moved.
    pub(crate) fn lose_moved(
        &mut self,
        has_moved: impl Fn(&Proxy, &Upstream) -> bool,
        effects: &mut Fx,
    ) {
        let moved = self.peers.upstreams().filter(|one| has_moved(self, one));
        let moved: Vec<Conn> = moved.map(|one| one.conn).collect();
        for conn in moved {
            if let Some(Peer::Upstream(upstream)) = self.peers.take(conn) {
                self.lose(*upstream, Loss::Moved, effects);
            }
        }
    }

    /// The name of the node of a connection in errors.
    fn shown(&self, upstream: &Upstream) -> String {
        let present = || self.settings.nodes.name(upstream.node).to_owned();
        upstream.left.as_ref().map_or_else(present, |left| left.shown())
    }

    /// Replies with errors to all that wait for replies over a connection that is lost.
    fn fail_waiting(&mut self, upstream: &mut Upstream, loss: &Loss, effects: &mut Fx) {
        let (timeout, was_open) = (self.settings.node_timeout, upstream.is_open);
        let (code, why) = loss.words(was_open, timeout);
        let name = self.shown(upstream);
        let error = errors::line(&[loss.text(&name, was_open, timeout).as_bytes()]);
        let unanswered = format!("{code} node {name}: {why}").into_bytes();
        let left = upstream.left.as_ref();
        let at = left.map(|left| format!(" (at {}, {})", left.address, left.since));
        let part_error = format!("{code} {why}{}", at.unwrap_or_default());
        for (place, waiter) in upstream.waiting.drain(..).enumerate() {
            match waiter.what {
                // The client has the start of this reply. An error cannot follow it.
                What::Whole if place == 0 && upstream.streamed > 0 => effects.abort(waiter.client),
                // The node's error to SELECT is the client's reply, even if the proxy sent the SELECT. Before
                // authentication, the node carries out nothing.
                What::Whole => match loss {
                    Loss::Refused(text)
                        if self.selects(waiter.client) || text.starts_with(b"NOAUTH") =>
                    {
                        self.deliver(waiter, 0, &errors::line(&[text]), effects);
                    }
                    _ => self.deliver(waiter, 0, &error, effects),
                },
                What::Part => self.part(waiter, 0, effects, |merging| {
                    merging.lost(waiter.part as usize, part_error.as_bytes());
                }),
                What::Begun => self.begun(waiter, effects),
                What::Asked | What::AskedAny => {
                    self.answered(waiter, Err(unanswered.clone()), effects)
                }
                What::Unblocked => self.asked_to_unblock(waiter.client, None, effects),
                What::Authenticated
                | What::Prepared
                | What::Selected
                | What::Queued
                | What::Slots
                | What::Master
                | What::Announced
                | What::Role
                | What::Longest
                | What::Described
                | What::Version
                | What::Number
                | What::Probed => {}
            }
        }
    }

    fn selects(&self, client: Conn) -> bool {
        self.peers.peek(client).is_some_and(|client| client.selects.is_some())
    }
}
