//! What a node answers: whose reply it is, and what happens to those who wait when it is lost.

use super::{
    client::{Client, Input},
    errors, forward,
    loss::Loss,
    merging::Merging,
    peers::{Peer, Peers},
    state::{Fx, Proxy},
    upstream::{Upstream, Use, Waiter, What},
};
use regatta_engine::{Conn, Flow};
use regatta_proto::resp::Found;

/// Bytes of a reply from which on it goes out before it is whole. Until then its client would get an
/// error if the node were lost.
const LARGE: usize = 64 * 1024;

impl Proxy {
    /// Bytes of a node.
    pub(super) fn replies(&mut self, mut upstream: Box<Upstream>, bytes: &[u8], effects: &mut Fx) {
        let mut begun = std::mem::take(&mut upstream.begun);
        let is_begun = !begun.is_empty();
        let input: &[u8] = if is_begun {
            begun.extend_from_slice(bytes);
            &begun
        } else {
            bytes
        };
        let now = effects.now().instant;
        // Of `input`: where the reply begins that is coming, and up to where it was looked at.
        let (mut begin, mut at) = (0, std::mem::take(&mut upstream.seen));
        let loss = loop {
            let found = match upstream.replies.next(&input[at..]) {
                Ok(found) => found,
                Err(malformed) => break Some(Loss::Malformed(malformed.0)),
            };
            let Found { bytes, whole, push } = found;
            at += bytes;
            if !whole {
                break None;
            }
            let reply = &input[begin..at];
            begin = at;
            if let Some(loss) = self.reply(&mut upstream, reply, push, effects) {
                break Some(loss);
            }
            upstream.since = now;
        };
        if loss.is_none()
            && at - begin > LARGE
            && self.stream(&mut upstream, &input[begin..at], effects)
        {
            begin = at;
        }
        upstream.seen = at - begin;
        upstream.begun = if is_begun {
            begun.drain(..begin);
            begun
        } else {
            input[begin..].to_vec()
        };
        if upstream.begun.is_empty() {
            upstream.begun.shrink_to(LARGE);
        }
        if let Some(loss) = loss {
            return self.lose(*upstream, loss, effects);
        }
        if !upstream.held.is_empty() && upstream.has_room(effects) {
            let held = std::mem::take(&mut upstream.held);
            self.release(held);
        }
        self.peers.put(upstream.conn, Peer::Upstream(upstream));
    }

    /// One whole reply of a node.
    #[inline]
    fn reply(
        &mut self,
        upstream: &mut Upstream,
        reply: &[u8],
        push: bool,
        effects: &mut Fx,
    ) -> Option<Loss> {
        if let Use::Subscribed(client) = upstream.use_
            && self.message(client, reply, effects)
        {
            return None;
        }
        if push && !matches!(upstream.use_, Use::Subscribed(_)) {
            return None; // nobody has asked for it, and it answers nothing
        }
        let Some(waiter) = upstream.waiting.pop_front() else {
            return Some(Loss::Malformed("a reply that nobody has asked for"));
        };
        match waiter.what {
            What::Whole => {
                upstream.streams = false;
                self.deliver(waiter, reply, effects);
            }
            What::Part(part) => {
                self.part(waiter, reply.len(), effects, |merging| {
                    merging.reply(part as usize, reply);
                });
            }
            What::Prepared => match reply {
                [b'-', text @ ..] => {
                    return Some(Loss::Refused(
                        text.strip_suffix(b"\r\n").unwrap_or(text).to_vec(),
                    ));
                }
                _ if upstream.pool != 0 => self.pools.get(upstream.pool).is_proved = true,
                _ => {}
            },
            What::Queued => {}
            What::Probed => {
                self.health[upstream.node].answered();
                effects.abort(upstream.conn);
            }
        }
        None
    }

    /// A client's reply, or the end of one whose beginning went out.
    #[inline]
    fn deliver(&mut self, waiter: Waiter, reply: &[u8], effects: &mut Fx) {
        let Some(client) = self.peers.client(waiter.client) else { return };
        let Some(out) = effects.out(waiter.client) else { return };
        client.learns(reply.len());
        client.ring.complete(waiter.slot, reply, out);
        client.was_fine = reply.first() != Some(&b'-');
        if client.needs_a_look(out.len()) {
            self.look_later(waiter.client);
        }
    }

    fn selects(&self, client: Conn) -> bool {
        self.peers.look(client).is_some_and(|client| client.selects.is_some())
    }

    /// A part of so many bytes of a client's reply.
    fn part(
        &mut self,
        waiter: Waiter,
        bytes: usize,
        effects: &mut Fx,
        part: impl FnOnce(&mut Merging),
    ) {
        let Some(client) = self.peers.client(waiter.client) else { return };
        let Some(out) = effects.out(waiter.client) else { return };
        client.learns(bytes);
        client.ring.part(waiter.slot, out, part);
        if client.needs_a_look(out.len()) {
            self.look_later(waiter.client);
        }
    }

    /// The beginning of a large reply goes to its client, if it is the client's turn. Returns whether
    /// these bytes need not be kept.
    fn stream(&mut self, upstream: &mut Upstream, bytes: &[u8], effects: &mut Fx) -> bool {
        let Some(waiter) = upstream.waiting.front().copied() else { return false };
        let Waiter { client: conn, slot, what } = waiter;
        if !matches!(what, What::Whole | What::Part(_)) {
            return false;
        }
        let Some(client) = self.peers.client(conn) else { return true };
        let Some(out) = effects.out(conn) else { return true };
        client.reply_bytes = client.reply_bytes.max(bytes.len());
        if what == What::Whole && client.ring.is_first(slot) {
            out.extend_from_slice(bytes);
            upstream.streams = true;
            self.look_later(conn);
            return true;
        }
        // It counts as a reply that is held for this client.
        let is_too_much = bytes.len() > self.shared.settings.client_bytes;
        if is_too_much && let Some(Peer::Client(mut client)) = self.peers.take(conn) {
            self.disconnect(&mut client, effects);
            self.peers.put(conn, Peer::Client(client));
        }
        is_too_much
    }

    /// A connection to a node is lost. Each client that waits for a reply over it gets an error.
    pub(super) fn lose(&mut self, mut upstream: Upstream, loss: Loss, effects: &mut Fx) {
        let Upstream { conn, node, pool, .. } = upstream;
        effects.abort(conn);
        self.pools.get(pool).forget(node, conn);
        if upstream.use_ == Use::Probe && upstream.waiting.is_empty() {
            return; // it has answered
        }
        if !matches!(upstream.use_, Use::Idle) && loss != Loss::Moved {
            self.shared.counts.lost.add(1);
        }
        let timeout = self.shared.settings.node_timeout;
        let (code, why) = loss.words(upstream.is_open, timeout);
        let is_blamed = !upstream.is_open || loss == Loss::TimedOut || upstream.use_ == Use::Probe;
        if is_blamed && loss != Loss::Moved {
            self.fails(node, &why, effects);
        }
        let name = self.shared.settings.nodes.name(node);
        let error = errors::line(&[loss.text(name, upstream.is_open, timeout).as_bytes()]);
        let part_error = format!("{code} {why}");
        for (place, waiter) in upstream.waiting.drain(..).enumerate() {
            match waiter.what {
                // The client has the beginning of its reply. No error can follow that.
                What::Whole if place == 0 && upstream.streams => effects.abort(waiter.client),
                // What a node says to SELECT is the client's reply, also if it is said to the proxy.
                What::Whole => match &loss {
                    Loss::Refused(text) if self.selects(waiter.client) => {
                        self.deliver(waiter, &errors::line(&[text]), effects);
                    }
                    _ => self.deliver(waiter, &error, effects),
                },
                What::Part(part) => self.part(waiter, 0, effects, |merging| {
                    merging.lost(part as usize, part_error.as_bytes());
                }),
                What::Prepared | What::Queued | What::Probed => {}
            }
        }
        self.release(std::mem::take(&mut upstream.held));
        match upstream.use_ {
            Use::Leased(client) => self.lease_is_lost(client, conn, loss),
            // It would miss messages and not know of it.
            Use::Subscribed(client) => effects.close(client, Flow::Close),
            Use::Shared | Use::Idle | Use::Probe => {}
        }
    }
}

impl Client {
    /// Whether more follows from a reply than that it goes out.
    #[inline]
    fn needs_a_look(&self, pending: usize) -> bool {
        self.input != Input::Read
            || self.has_ended
            || pending >= LARGE / 4
            || self.ring.held() >= LARGE / 4
            || self.counted > 0
    }
}

impl Upstream {
    /// Whether clients that wait for room may ask again.
    fn has_room(&self, effects: &Fx) -> bool {
        effects.pending(self.conn) < forward::FULL / 2 && self.waiting.len() < forward::OWED / 2
    }

    /// Whether a reply may take as long as the client pleases.
    pub(super) fn may_block(&self, peers: &Peers) -> bool {
        match self.use_ {
            Use::Leased(client) => peers.look(client).is_some_and(|client| client.is_blocked()),
            _ => false,
        }
    }

    /// Sends a request of the proxy itself.
    pub(super) fn ask(&mut self, args: &[&[u8]], what: What, effects: &mut Fx) {
        let now = effects.now().instant;
        if let Some(out) = effects.out(self.conn) {
            regatta_proto::resp::write_command(args.iter().copied(), out);
            self.wait(Waiter { client: self.conn, slot: 0, what }, now);
        }
    }
}
