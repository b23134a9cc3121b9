//! Requests that a node of a cluster did not apply: sent again to another node, or at a later time.
//!
//! Only errors that say that nothing was applied lead here, so no request is applied twice. A script or a function can make
//! such an error itself after it has written, and its text does not differ: such a command is never sent again, and its
//! error is passed on as it is. While one is out, the client's
//! input waits for all replies. Those of its requests that were already sent and are for the same slot are refused in
//! their order, too, and are sent again in it. If one is to go over another connection than an earlier one, e.g. because the
//! slot has moved twice, it waits for the reply to that. If a slot has moved back meanwhile, a later request may have been carried
//! out first; then the earlier one becomes an error.

use crate::{
    clients::client::Input,
    cluster::{
        redirect::{Redirect, runs_program},
        state::{Repeated, To, is_earlier},
    },
    node::{
        kept::{Entry, Request},
        upstream::{Upstream, Use, Waiter, What},
    },
    proxy::state::{Fx, Proxy},
    reply::errors,
};
use regatta_engine::Conn;
use regatta_proto::resp::write_command;
use std::time::{Duration, Instant};

/// How often a request is sent again at most because its slot is elsewhere, and from which time on after a pause.
const MOST_HOPS: u8 = 16;
const MANY_HOPS: u8 = 4;

/// How often a request is sent at most if its slot is being moved, and the first pause, which doubles.
const MOST_TRIES: u8 = 12;
const TRY_PAUSE: Duration = Duration::from_millis(5);

/// How long a request waits until the cluster has reported a node to which it is redirected.
const UNKNOWN_FOR: Duration = Duration::from_secs(2);

/// Maximum size of the requests that wait to be sent again, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// What happens to a request that is to be sent again.
enum Step {
    /// It is sent to this node, or to this one after ASKING.
    Send(usize),
    Ask(usize),
    Wait,
    Fail(String),
}

impl Proxy {
    /// Handles the reply to the last request that was kept. Returns whether it is an error that the client does not get,
    /// because the request is sent again, or another error is the reply.
    #[inline]
    pub(crate) fn is_repeated(
        &mut self,
        upstream: &Upstream,
        waiter: Waiter,
        reply: &[u8],
        effects: &mut Fx,
    ) -> bool {
        let Some(cluster) = &self.cluster else { return false };
        let is_error = reply.first() == Some(&b'-') && upstream.streamed == 0;
        (is_error || !cluster.out.is_empty())
            && self.may_be_repeated(upstream, waiter, is_error.then_some(reply), effects)
    }

    /// The same, where requests are being repeated, or the reply is this error.
    #[cold]
    fn may_be_repeated(
        &mut self,
        upstream: &Upstream,
        waiter: Waiter,
        error: Option<&[u8]>,
        effects: &mut Fx,
    ) -> bool {
        let request = upstream.kept.last();
        let Request { entry, bytes, is_all } = request;
        let is_of_node = || request.name().is_some_and(|name| !runs_program(name));
        let Some(reply) = error.filter(|_| is_of_node()) else {
            if let Some(cluster) = &mut self.cluster {
                cluster.note_answer(waiter, entry.slot);
            }
            if let Some(reply) = error {
                // The slot may have moved all the same.
                let from = self.settings.nodes.address(upstream.node);
                let _ = self.target(Redirect::of(reply, from), entry.slot, effects);
            }
            return false;
        };
        let left = upstream.left.as_ref().map(|left| left.address);
        let from = left.unwrap_or_else(|| self.settings.nodes.address(upstream.node));
        let now = effects.now().instant;
        let request = (waiter, entry.slot, upstream.node);
        let Some((to, slot)) = self.elsewhere(Redirect::of(reply, from), request, effects) else {
            return false;
        };
        let is_leased = matches!(upstream.use_, Use::Leased(_) | Use::Subscribed(_));
        let is_last =
            self.peers.peek(waiter.client).is_none_or(|one| one.ring.is_last(waiter.slot));
        // A later request of the client could overtake it.
        let may_try = is_last && !is_leased && is_all && entry.hops < MOST_TRIES;
        if matches!(to, Ok(To::Owner | To::Successor(_))) && !may_try {
            return false;
        }
        let to = match to {
            _ if is_leased => Err("another node"),
            Ok(_) if !is_all => Err("another node, and the request is too large to be kept"),
            Ok(To::Moved(_) | To::Ask(_)) if entry.hops >= MOST_HOPS => {
                Err("another node, again and again")
            }
            other => other,
        };
        let bytes = bytes.to_vec();
        self.tally.reply(upstream.node, waiter.class, 0, true);
        match to {
            Ok(to) => {
                let due = match to {
                    To::Owner | To::Successor(_) => now + pause(entry.hops),
                    // The nodes contradict each other.
                    _ if entry.hops >= MANY_HOPS => now + pause(entry.hops - MANY_HOPS),
                    _ => now,
                };
                let (arrived_us, hops) = (entry.arrived_us, entry.hops + 1);
                let until = now + UNKNOWN_FOR.min(self.settings.node_timeout);
                let again = Repeated { waiter, slot, hops, bytes, arrived_us, to, due, until };
                self.repeat(again, effects);
            }
            Err(to) => {
                let text =
                    format!("SHARDMOVED slot {slot} has moved to {to}; not applied, send it again");
                self.not_applied(waiter, &text, effects);
            }
        }
        true
    }

    /// Where a request, for this slot, is sent that the node at this place has refused with this error, or why nowhere; and the
    /// slot. `None`: the client gets the error.
    fn elsewhere(
        &mut self,
        error: Option<Redirect>,
        (waiter, slot, place): (Waiter, Option<u16>, usize),
        effects: &Fx,
    ) -> Option<(Result<To, &'static str>, u16)> {
        // A part of a command for all nodes: the node was a master.
        if error == Some(Redirect::ReadOnly)
            && let Some(slot) = self.slot_of_place(waiter, place)
        {
            let needed = self.shared.want_fresh_slots();
            self.look_for_view(effects.now().instant);
            return Some((Ok(To::Successor(needed)), slot));
        }
        Some((self.target(error, slot, effects)?, slot.unwrap_or_default()))
    }

    /// Where a request is sent that a node has refused with this error, or why nowhere. `None`: the client gets the error.
    fn target(
        &mut self,
        error: Option<Redirect>,
        slot: Option<u16>,
        effects: &Fx,
    ) -> Option<Result<To, &'static str>> {
        const NO_ADDRESS: &str = "an address that is not an IP address";
        match (error?, slot) {
            (Redirect::Moved(of, to), Some(slot)) if of == slot => {
                self.want_slots(to, effects);
                Some(to.map(To::Moved).ok_or(NO_ADDRESS))
            }
            (Redirect::Ask(of, to), Some(slot)) if of == slot => {
                Some(to.map(To::Ask).ok_or(NO_ADDRESS))
            }
            (Redirect::TryAgain, Some(_)) => Some(Ok(To::Owner)),
            (Redirect::Down | Redirect::ReadOnly, _) => {
                self.want_slots(None, effects);
                None
            }
            _ => None,
        }
    }

    /// Sends a request again, once control is about to return to the driver.
    fn repeat(&mut self, repeated: Repeated, effects: &mut Fx) {
        let Some(client) = self.peers.client(repeated.waiter.client) else { return };
        // Later requests must not overtake it.
        if matches!(client.input, Input::Read | Input::Full) {
            client.input = Input::Waits;
        }
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.repeated_bytes + repeated.bytes.len() > MOST_BYTES {
            let text =
                "SHARDMOVED too many requests must be sent again; not applied, send it again";
            return self.not_applied(repeated.waiter, text, effects);
        }
        let out = cluster.out.entry((repeated.waiter.client, repeated.slot)).or_default();
        out.set(repeated.waiter.slot, None);
        cluster.add(repeated);
    }

    /// Sends again the requests that are due. One that is not due yet delays later ones for its slot.
    pub(crate) fn send_again(&mut self, effects: &mut Fx) {
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.repeated.is_empty() {
            return;
        }
        let (all, now) = (std::mem::take(&mut cluster.repeated), effects.now().instant);
        cluster.repeated_bytes = 0;
        for one in all {
            // Nobody waits for the reply.
            let Some(client) = self.peers.peek(one.waiter.client) else { continue };
            let pool = client.pool;
            let step = self.step(&one, now, effects);
            let step = match step {
                Step::Send(node) | Step::Ask(node) if self.is_behind(&one, node) => Step::Wait,
                step => step,
            };
            match step {
                Step::Send(node) => self.send_kept(one, (pool, node), false, effects),
                Step::Ask(node) => self.send_kept(one, (pool, node), true, effects),
                Step::Fail(text) => self.not_applied(one.waiter, &text, effects),
                Step::Wait => {
                    let at = if one.due > now { one.due } else { now + TRY_PAUSE };
                    self.tick_at = Some(self.tick_at.map_or(at, |tick_at| tick_at.min(at)));
                    if let Some(cluster) = &mut self.cluster {
                        cluster.add(one);
                    }
                }
            }
        }
    }

    /// Whether an earlier request of the client for the same slot was sent again over another connection, or waits for that,
    /// and has no reply yet.
    fn is_behind(&mut self, one: &Repeated, node: usize) -> bool {
        let own = one.waiter;
        let Some(client) = self.peers.peek(own.client) else { return false };
        let conn = self.pools.get(client.pool).shared[node];
        let Some(cluster) = &mut self.cluster else { return false };
        let Some(out) = cluster.out.get_mut(&(own.client, one.slot)) else { return false };
        out.all.retain(|(slot, _)| client.ring.is_pending(*slot));
        let is_there = |at: &Option<Conn>| at.is_some() && *at == conn;
        out.all.iter().any(|(slot, at)| !is_there(at) && is_earlier(*slot, own.slot))
    }

    /// Whether a later request of the client for the same slot is on its way to the node to which it was sent first.
    fn is_followed(&self, one: &Repeated) -> bool {
        let is_it = |waiter: &Waiter, entry: Entry| {
            waiter.client == one.waiter.client
                && entry.slot == Some(one.slot)
                && entry.hops == 0
                && is_earlier(one.waiter.slot, waiter.slot)
        };
        self.peers.upstreams().any(|upstream| {
            let waiting = upstream.waiting.iter().filter(|waiter| waiter.is_kept);
            waiting.zip(upstream.kept.requests()).any(|(waiter, kept)| is_it(waiter, kept.entry))
        })
    }

    fn is_overtaken(&self, waiter: Waiter, slot: u16) -> bool {
        self.cluster.as_ref().is_some_and(|cluster| cluster.is_overtaken(waiter, slot))
    }

    /// Forgets requests that were sent again and have their replies.
    pub(super) fn forget_answered(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        cluster.out.retain(|(client, _), out| {
            let client = self.peers.peek(*client);
            out.all.retain(|(slot, _)| client.is_some_and(|client| client.ring.is_pending(*slot)));
            !out.all.is_empty()
        });
    }

    /// What happens to a request that is to be sent again.
    fn step(&mut self, one: &Repeated, now: Instant, effects: &mut Fx) -> Step {
        if now < one.due {
            return Step::Wait;
        }
        let (address, asks) = match one.to {
            To::Owner => return Step::Send(self.map.node_of_group(one.slot)),
            To::Successor(needed) if self.has_view(needed) => {
                return Step::Send(self.map.node_of_group(one.slot));
            }
            To::Successor(_) if now >= one.until => {
                let why = self.shared.why_no_slots();
                return Step::Fail(format!(
                    "READONLY the node is a replica now, and no node has reported its successor: {why}"
                ));
            }
            To::Successor(_) => return Step::Wait,
            To::Moved(address) => (address, false),
            To::Ask(address) => (address, true),
        };
        // The slot has moved twice. Perhaps it has moved back, and a later request was not refused.
        if one.hops > 1 {
            if self.is_followed(one) {
                return Step::Wait;
            }
            if self.is_overtaken(one.waiter, one.slot) {
                return Step::Fail(format!(
                    "SHARDMOVED slot {} has moved twice, and a later command was carried out first; not applied, send \
                     it again",
                    one.slot
                ));
            }
        }
        let mut found = self.settings.nodes.find(address);
        if found.is_none() {
            self.shared.admit_guest(address);
            self.follow_settings(effects);
            found = self.settings.nodes.find(address);
        }
        match found {
            Some(node) if asks => Step::Ask(node),
            Some(node) => Step::Send(node),
            None if now >= one.until => Step::Fail(format!(
                "SHARDMOVED slot {} has moved to {address}, which no node of the cluster has reported; not \
                 applied, send it again",
                one.slot
            )),
            None => {
                self.want_slots(None, effects);
                Step::Wait
            }
        }
    }

    /// Sends a request again over the shared connection to a node. `asks`: with ASKING directly before it.
    fn send_kept(
        &mut self,
        one: Repeated,
        (pool, node): (usize, usize),
        asks: bool,
        effects: &mut Fx,
    ) {
        let now = effects.now().instant;
        let Some(conn) = self.shared_to(pool, node, effects) else {
            let text = String::from_utf8_lossy(&self.unavailable(pool, node)).into_owned();
            return self.not_applied(one.waiter, &format!("{text}; not applied"), effects);
        };
        let sent_us = self.clock.at_us(now);
        let (Some(out), Some(upstream)) = (effects.out(conn), self.peers.upstream(conn)) else {
            let text = "SHARDDOWN the connection to the node was lost; not applied";
            return self.not_applied(one.waiter, text, effects);
        };
        self.tally.repeat();
        if asks {
            write_command([&b"ASKING"[..]], out);
            upstream.wait_for_itself(What::Queued, now);
        }
        out.extend_from_slice(&one.bytes);
        let entry = Entry { arrived_us: one.arrived_us, slot: Some(one.slot), hops: one.hops };
        upstream.wait_for(Waiter { sent_us, ..one.waiter }, Some((&one.bytes[..], entry)), now);
        if let Some(cluster) = &mut self.cluster {
            let out = cluster.out.entry((one.waiter.client, one.slot)).or_default();
            out.set(one.waiter.slot, Some(conn));
        }
        self.check_soon(now);
    }

    /// Replies with an error to a request that no node has applied.
    fn not_applied(&mut self, waiter: Waiter, text: &str, effects: &mut Fx) {
        match waiter.what {
            What::Part => self.part(waiter, 0, effects, |merging| {
                merging.lost(waiter.part as usize, text.as_bytes());
            }),
            _ => self.deliver(waiter, 0, &errors::line(&[text.as_bytes()]), effects),
        }
    }
}

/// The pause before a request is sent again whose slot is being moved.
fn pause(hops: u8) -> Duration {
    TRY_PAUSE * (1 << hops.min(5))
}
