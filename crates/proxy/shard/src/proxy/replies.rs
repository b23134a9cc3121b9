//! Replies from nodes: which client each is for.

use crate::{
    clients::{
        blocking::BlockingTime,
        client::{Client, Input},
        handoff::Leaving,
    },
    node::{
        kept::MOST,
        loss_reason::Loss,
        upstream::{Longest, OWED, Upstream, Use, Waiter, What},
    },
    observe::version::Version,
    peers::{Peer, Peers},
    proxy::{
        cluster::{ASKED_FOR, LONGEST_SLOTS},
        forward,
        state::{Fx, Proxy},
        unblock,
    },
    reply::{errors, merging::Merging},
    sentinel::reported::is_master,
};
use regatta_engine::Conn;
use regatta_proto::resp::Found;
use std::time::{Duration, Instant};

/// Bytes of an incomplete reply from which on it is forwarded in pieces. A smaller reply is held
/// until it is complete, because its client gets an error if the node is lost.
const LARGE: usize = 64 * 1024;

/// Replies shorter than this many bytes are sent to a client that has no room for others. An error
/// that replaces a reply is one of them.
pub(crate) const SHORT: usize = 1024;

impl Proxy {
    /// Handles bytes from a node.
    pub(crate) fn replies(&mut self, mut upstream: Box<Upstream>, bytes: &[u8], effects: &mut Fx) {
        let mut partial = std::mem::take(&mut upstream.partial);
        let had_partial = !partial.is_empty();
        let input: &[u8] = if had_partial {
            self.charge(&mut upstream, 0);
            partial.extend_from_slice(bytes);
            &partial
        } else {
            bytes
        };
        let now = effects.now().instant;
        // `start`: where the incomplete reply starts in `input`; `at`: the end of the bytes already
        // parsed.
        let (mut start, mut at) = (0, std::mem::take(&mut upstream.seen));
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
            let reply = &input[start..at];
            start = at;
            if let Some(loss) = self.reply(&mut upstream, reply, push, effects) {
                break Some(loss);
            }
            upstream.since = now;
            upstream.begun_us = None;
        };
        if at > start {
            let now_us = self.clock.at_us(now);
            upstream.begun_us.get_or_insert(now_us);
        }
        if loss.is_none()
            && at - start > LARGE
            && self.stream(&mut upstream, &input[start..at], effects)
        {
            start = at;
        }
        let loss = loss.or_else(|| self.too_long(&upstream, at - start));
        upstream.seen = at - start;
        upstream.partial = if had_partial {
            partial.drain(..start);
            partial
        } else {
            input[start..].to_vec()
        };
        if upstream.partial.is_empty() {
            upstream.partial.shrink_to(LARGE);
        }
        let held = upstream.partial.len();
        self.charge(&mut upstream, held);
        if let Some(loss) = loss {
            return self.lose(*upstream, loss, effects);
        }
        if upstream.most < OWED {
            self.admit_held(&mut upstream, now);
        } else if !upstream.held.is_empty() && upstream.has_room(effects) {
            let held = std::mem::take(&mut upstream.held);
            self.release(held);
        }
        self.peers.put(upstream.conn, Peer::Upstream(upstream));
    }

    /// Handles one complete reply of a node.
    #[inline]
    #[expect(clippy::too_many_lines, reason = "one case for each use of a connection")]
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
            return None; // unsolicited, and not a reply to any request
        }
        if let Some(text) = upstream.denied.clone() {
            // Without the password, the node may still serve a user that needs none.
            let is_applied = !reply.starts_with(b"-NOAUTH");
            return Some(if is_applied { Loss::Refused(text) } else { Loss::Denied(text) });
        }
        let Some(waiter) = upstream.waiting.pop_front() else {
            return self.unsolicited(upstream, reply, effects);
        };
        if waiter.is_kept {
            upstream.kept.pop();
            if self.is_repeated(upstream, waiter, reply, effects) {
                return None;
            }
        }
        let mut slow = None;
        if matches!(waiter.what, What::Whole | What::Part) {
            let is_error = upstream.streamed == 0 && reply.first() == Some(&b'-');
            if is_error {
                self.note_demand(upstream.node, reply, effects.now().instant);
                if self.sentinel.is_some() && reply.starts_with(b"-READONLY") {
                    self.is_replica(upstream, effects);
                }
            }
            if upstream.most < OWED && upstream.streamed == 0 {
                self.note_service(upstream, reply);
            }
            slow = self.observe(upstream, waiter, is_error, effects.now());
        }
        match waiter.what {
            What::Whole => {
                let streamed = std::mem::take(&mut upstream.streamed);
                if reply.len() >= SHORT
                    && streamed == 0
                    && !self.has_room(waiter.client, reply.len(), effects)
                {
                    self.refuse(waiter, reply.len(), effects);
                } else {
                    if streamed > 0
                        && let Some(client) = self.peers.client(waiter.client)
                    {
                        client.promised = 0;
                    }
                    self.deliver(waiter, streamed, reply, effects);
                }
            }
            What::Part
                if reply.len() >= SHORT && !self.has_room(waiter.client, reply.len(), effects) =>
            {
                self.refuse(waiter, reply.len(), effects);
            }
            What::Part => {
                self.part(waiter, reply.len(), effects, |merging| {
                    merging.reply(waiter.part as usize, reply);
                });
            }
            What::Authenticated => {
                if let Some(text) = error_text(reply) {
                    upstream.denied = Some(text.clone());
                    // Otherwise, the next reply shows whether the node carries out commands. Over the connection of a
                    // user, none was sent.
                    let is_over = upstream.waiting.is_empty() || !upstream.is_admitted;
                    return is_over.then_some(Loss::Denied(text));
                }
                self.prepared(upstream);
            }
            What::Begun => {
                // Who subscribes need not be permitted to send PING.
                let is_fine =
                    matches!(upstream.use_, Use::Subscribed(_)) && reply.starts_with(b"-NOPERM");
                if let Some(text) = error_text(reply).filter(|_| !is_fine) {
                    self.note_demand(upstream.node, reply, effects.now().instant);
                    upstream.waiting.push_front(waiter);
                    return Some(Loss::Refused(text));
                }
                upstream.is_verified = true;
                self.begun(waiter, effects);
            }
            What::Prepared | What::Selected => {
                if let Some(text) = error_text(reply) {
                    return Some(Loss::Refused(text));
                }
                if waiter.what == What::Selected && upstream.use_ != Use::Retired {
                    self.pools.get(upstream.pool).is_verified = true;
                }
                self.prepared(upstream);
            }
            What::Queued => {}
            What::Slots => self.slots_reported(upstream, reply, effects),
            What::Master => self.master_reported(upstream, reply, effects),
            What::Announced => self.announced(upstream, waiter, reply, effects),
            What::Role => {
                if let Err(why) = is_master(reply) {
                    return Some(Loss::NoMaster(why));
                }
                self.prepared(upstream);
            }
            What::Longest => {
                upstream.longest = Longest::of(reply);
                let held = std::mem::take(&mut upstream.held);
                self.release(held);
            }
            What::Described => {
                let name = upstream.described.pop_front().unwrap_or_default();
                if upstream.use_ == Use::Retired {
                    self.described.remove(&name);
                } else {
                    self.describe(name, reply, effects.now().instant);
                }
                let held = std::mem::take(&mut upstream.held);
                self.release(held);
            }
            What::Version => {
                self.note_service(upstream, reply);
                let is_current = upstream.use_ != Use::Retired;
                if let Some(version) = Version::of_info(reply).filter(|_| is_current) {
                    self.shared.versions.set(upstream.node, version);
                }
            }
            What::Number => {
                upstream.number = unblock::number(reply);
                if let Use::Leased(client) = upstream.use_ {
                    self.resume_later(client);
                }
            }
            What::Unblocked => self.asked_to_unblock(waiter.client, Some(reply), effects),
            What::Asked | What::AskedAny => {
                self.note_demand(upstream.node, reply, effects.now().instant);
                self.note_service(upstream, reply);
                self.asked(waiter, error_text(reply), effects);
                let is_kept = self.logins[upstream.node] == Some(upstream.conn);
                if upstream.use_ == Use::Login && upstream.waiting.is_empty() && !is_kept {
                    effects.abort(upstream.conn);
                }
            }
            What::Probed => {
                self.health[upstream.node].answered();
                self.shared.report(&self.settings.nodes, upstream.node, None);
                self.tally.set_down(upstream.node, false);
                effects.abort(upstream.conn);
            }
        }
        if let Some(slow) = slow {
            self.note_slow(waiter.client, slow, effects.now().instant);
        }
        None
    }

    /// Handles a reply for which no request waits: an announcement of a Sentinel.
    fn unsolicited(&mut self, upstream: &Upstream, reply: &[u8], effects: &mut Fx) -> Option<Loss> {
        let is_fine = upstream.use_ == Use::Announcements && self.announces(reply, effects);
        (!is_fine).then_some(Loss::Malformed("a reply without a request"))
    }

    /// Delivers a client's reply, or the remainder of one of which `streamed` bytes were already sent.
    #[inline]
    pub(super) fn deliver(
        &mut self,
        waiter: Waiter,
        streamed: usize,
        reply: &[u8],
        effects: &mut Fx,
    ) {
        let Some(client) = self.peers.client(waiter.client) else { return };
        let Some(out) = effects.out(waiter.client) else { return };
        client.note_reply_size(streamed + reply.len());
        client.last_succeeded = reply.first() != Some(&b'-');
        if !client.last_succeeded && streamed == 0 && client.was_unblocked(reply) {
            client.ring.complete(waiter.slot, b"", out);
            client.input = Input::Ended;
            return self.resume_later(waiter.client);
        }
        if streamed == 0 && !client.last_succeeded {
            self.tally.errors(1);
        }
        client.ring.complete(waiter.slot, reply, out);
        let needs_resume = client.needs_resume(out.len());
        if client.ring.has_slow() {
            self.note_written(waiter.client, effects.now().instant);
        }
        if needs_resume {
            self.resume_later(waiter.client);
        }
    }

    /// Lets a client continue that waits for a connection of its own.
    pub(super) fn begun(&mut self, waiter: Waiter, effects: &mut Fx) {
        let Some(client) = self.peers.client(waiter.client) else { return };
        let Some(out) = effects.out(waiter.client) else { return };
        client.ring.complete(waiter.slot, b"", out);
        self.resume_later(waiter.client);
    }

    /// Adds a part of a client's merged reply. `bytes`: its size.
    pub(super) fn part(
        &mut self,
        waiter: Waiter,
        bytes: usize,
        effects: &mut Fx,
        part: impl FnOnce(&mut Merging),
    ) {
        let Some(client) = self.peers.client(waiter.client) else { return };
        let Some(out) = effects.out(waiter.client) else { return };
        client.note_reply_size(bytes);
        client.ring.part(waiter.slot, out, part);
        let errors = client.ring.take_errors();
        client.last_succeeded = errors == 0;
        self.tally.errors(errors);
        let needs_resume = client.needs_resume(out.len());
        if client.ring.has_slow() {
            self.note_written(waiter.client, effects.now().instant);
        }
        if needs_resume {
            self.resume_later(waiter.client);
        }
        if self.cluster.as_ref().is_some_and(|cluster| !cluster.asked_all.is_empty()) {
            self.part_arrived(waiter, effects.now().instant);
        }
    }

    /// Forwards the start of a large reply if it is the next one for its client, or refuses the reply.
    /// Returns whether the caller may drop these bytes.
    fn stream(&mut self, upstream: &mut Upstream, bytes: &[u8], effects: &mut Fx) -> bool {
        let Some(waiter) = upstream.waiting.front().copied() else { return false };
        let Waiter { client: conn, slot, what, .. } = waiter;
        if !matches!(what, What::Whole | What::Part) {
            return false;
        }
        let Some(client) = self.peers.client(conn) else { return true };
        let length = match upstream.streamed {
            0 => bulk_length(bytes).unwrap_or(0).max(bytes.len()),
            streamed => streamed + bytes.len(),
        };
        // Its later requests are not sent before this reply has arrived.
        client.reply_bytes = client.reply_bytes.max(length.min(self.settings.client_bytes));
        if upstream.streamed == 0 && !self.has_room(conn, length, effects) {
            self.refuse(waiter, length, effects);
            // The reply itself is discarded: its waiter becomes the connection.
            if let Some(first) = upstream.waiting.front_mut() {
                first.client = upstream.conn;
            }
            return true;
        }
        let Some(client) = self.peers.client(conn) else { return true };
        let Some(out) = effects.out(conn) else { return true };
        let is_next = what == What::Whole && client.ring.is_first(slot);
        if is_next {
            out.extend_from_slice(bytes);
            client.promised = match upstream.streamed {
                0 => length - bytes.len(),
                _ => client.promised.saturating_sub(bytes.len()),
            };
            upstream.streamed += bytes.len();
            self.resume_later(conn);
        }
        is_next
    }

    /// Bounds the memory of a message, and of a reply to the proxy itself, which cannot be streamed.
    /// `bytes`: how much of it has arrived.
    fn too_long(&self, upstream: &Upstream, bytes: usize) -> Option<Loss> {
        let waiter = upstream.waiting.front();
        let is_reply = waiter.is_some_and(|waiter| matches!(waiter.what, What::Whole | What::Part));
        let most =
            if upstream.use_ == Use::Slots { LONGEST_SLOTS } else { self.settings.client_bytes };
        (!is_reply && bytes > most)
            .then_some(Loss::Malformed("a message is longer than the client's buffer"))
    }

    /// Returns whether a client has room for a reply of this many bytes. The part of a reply
    /// that has arrived over another connection counts.
    fn has_room(&self, conn: Conn, bytes: usize, effects: &Fx) -> bool {
        let Some(client) = self.peers.peek(conn) else { return true };
        let held = effects.pending(conn) + client.ring.held() + client.arriving;
        (held + client.promised).saturating_add(bytes) <= self.settings.client_bytes
    }

    /// Replies with an error instead of a reply of this many bytes, or more, for which the client has no
    /// room.
    fn refuse(&mut self, waiter: Waiter, bytes: usize, effects: &mut Fx) {
        let most = self.settings.client_bytes;
        let text = format!(
            "SHARDTOOLARGE the command was carried out, but the proxy has no room for its reply of \
             {bytes} bytes; the limit for unread replies is --client-buffer {} (MiB)",
            most >> 20
        );
        match waiter.what {
            What::Part => self.part(waiter, 0, effects, |merging| {
                merging.lost(waiter.part as usize, text.as_bytes());
            }),
            _ => {
                self.tally.errors(u64::from(self.peers.peek(waiter.client).is_some()));
                self.deliver(waiter, bytes.min(most), &errors::line(&[text.as_bytes()]), effects);
            }
        }
    }
}

impl Client {
    /// Returns whether more must happen after a reply than sending it.
    #[inline]
    fn needs_resume(&self, pending: usize) -> bool {
        self.input != Input::Read
            || self.has_ended
            || pending >= LARGE / 4
            || self.ring.held() >= LARGE / 4
            || self.counted > 0
            || self.leaving == Leaving::WhenIdle
    }
}

impl Upstream {
    /// Returns whether clients that wait for room may continue.
    fn has_room(&self, effects: &Fx) -> bool {
        effects.pending(self.conn) < forward::FULL / 2
            && self.waiting.len() < OWED / 2
            && self.kept.whole_bytes() < MOST / 2
    }

    /// When the current reply is late. `None`: never, because its command may block forever.
    pub(crate) fn deadline(&self, timeout: Duration, peers: &Peers) -> Option<Instant> {
        let blocking = match self.use_ {
            Use::Leased(client) => peers.peek(client).and_then(Client::blocking),
            _ => None,
        };
        let is_own = matches!(self.use_, Use::Slots | Use::Sentinel | Use::Announcements);
        let timeout = if is_own { timeout.min(ASKED_FOR) } else { timeout };
        match blocking.map(|blocking| blocking.limit) {
            None => Some(self.since + timeout),
            Some(BlockingTime::For(limit)) => Some(self.since + limit + timeout),
            Some(BlockingTime::Forever) => None,
        }
    }
}

/// The text of an error reply.
fn error_text(reply: &[u8]) -> Option<Vec<u8>> {
    let text = reply.strip_prefix(b"-")?;
    Some(text.strip_suffix(b"\r\n").unwrap_or(text).to_vec())
}

/// The size of a reply that is a bulk string, of which this is the start.
fn bulk_length(bytes: &[u8]) -> Option<usize> {
    let line = bytes.strip_prefix(b"$").or_else(|| bytes.strip_prefix(b"="))?;
    let end = line.iter().take(20).position(|byte| *byte == b'\r')?;
    let length: usize = std::str::from_utf8(&line[..end]).ok()?.parse().ok()?;
    length.checked_add(1 + end + 2 + 2)
}
