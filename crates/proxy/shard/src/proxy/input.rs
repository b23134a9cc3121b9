//! Input from a client: commands in order, and when reading pauses.

use crate::{
    clients::{
        client::{Client, Input, Mode, OWED, Rest},
        identity::{is_set_info, set_info},
        next::Next,
        routed::Routed,
    },
    cluster::renaming::is_renamed,
    peers::Peer,
    proxy::{
        budget::COUNTED,
        state::{Fx, Proxy},
    },
    reply::errors,
    tally::Kind,
};
use regatta_engine::{Conn, ConnInterest, Flow};
use regatta_keyspace::route::{Route, decide};
use regatta_proto::resp::{Command, Commands};

/// Expected number of bytes of a client's pending replies beyond which its input pauses, as beyond
/// [`OWED`] replies, until half of them have arrived: one client must not hold up all others that use
/// the same nodes.
const OWED_BYTES: usize = 256 * 1024;

/// Unsent reply bytes for a client beyond which its input pauses.
const UNREAD: usize = 64 * 1024;

/// Bytes of input of a blocked client from which on it is not read.
const AHEAD: usize = 64 * 1024;

/// Maximum number of decoders kept for later clients.
const SPARE: usize = 256;

impl Proxy {
    /// Handles input of a client: new bytes, or bytes that it sent earlier.
    pub(crate) fn input(&mut self, client: &mut Client, bytes: &[u8], effects: &mut Fx) {
        if client.input == Input::Ended {
            return;
        }
        // What it sends while its input is paused counts from the oldest of these bytes on.
        if !bytes.is_empty() && (client.input == Input::Read || client.rest.is_none()) {
            client.arrived_us = self.clock.at_us(effects.now().instant);
        }
        self.arrived_us = client.arrived_us;
        let mut rest = client.rest.take().unwrap_or_else(|| self.rest());
        let (commands, input) = rest.with(bytes);
        let mut at = 0;
        self.judge(client, effects.now().instant);
        commands.set_limits(self.settings.limits(client.identity.may_send_much()));
        while client.input == Input::Read {
            match commands.next(&input[at..]) {
                Ok((0, None)) => break,
                Ok((taken, None)) => at += taken,
                Ok((taken, Some(command))) => {
                    let was_trusted = client.identity.may_send_much();
                    let next = self.command(client, &command, effects);
                    // AUTH, HELLO and RESET change the limits.
                    if client.identity.may_send_much() != was_trusted {
                        commands.set_limits(self.settings.limits(!was_trusted));
                    }
                    match next {
                        Next::Go => {}
                        Next::Stop | Next::Again => client.input = Input::Waits,
                        Next::Full => client.input = Input::Full,
                        Next::End => client.input = Input::Ended,
                    }
                    if !matches!(next, Next::Again | Next::Full) {
                        // What a node has replied about this command does not hold for another one.
                        client.outcome = None;
                        at += taken;
                        self.tally.request(self.kind);
                    }
                    let has_room = client.may_be_owed(client.ring.len())
                        && effects.pending(client.conn) < UNREAD;
                    if client.input == Input::Read && !has_room {
                        client.input = Input::Full;
                    }
                }
                Err(malformed) => {
                    client.fail(&[b"ERR Protocol error: ", &malformed.text()], effects);
                    client.input = Input::Ended;
                }
            }
        }
        self.tally.errors(client.ring.take_errors());
        // A node owes a reply.
        if !client.ring.is_empty() {
            self.check_soon(effects.now().instant);
        }
        let is_empty = rest.took(at, bytes);
        let is_partial = client.input == Input::Read && !is_empty;
        client.note_partial(is_partial, at > 0, effects.now().instant);
        if client.input == Input::Ended || is_empty {
            if is_empty && self.spare.len() < SPARE {
                self.spare.push(rest);
            }
        } else {
            client.rest = Some(rest);
        }
    }

    fn rest(&mut self) -> Box<Rest> {
        let limits = self.settings.request;
        self.spare.pop().unwrap_or_else(|| Box::new(Rest::new(Commands::new(limits))))
    }

    /// Handles a command. Inlined, because it is the path of every request; its only other caller gives commands another
    /// name.
    #[inline(always)]
    pub(crate) fn command(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        self.kind = Kind::Refused;
        if client.epoch != self.map.epoch() {
            // With another map, a request could overtake earlier ones.
            if !client.ring.is_empty() {
                return Next::Again;
            }
            if !self.knows_no_slots() {
                client.epoch = self.map.epoch();
            } else if let Some(next) = self.waits_for_slots(client, command, effects) {
                return next;
            }
        }
        if command.bytes.len() >= OWED_BYTES {
            if self.is_too_large_now(command, effects) {
                client.refuse_for_memory(effects);
                return Next::Go;
            }
            // Who stores large values may read them next.
            client.reply_bytes = client.reply_bytes.max(command.bytes.len());
        }
        let mut decision = decide(command, &self.map, &mut self.plan);
        if decision.command.is_none() && client.identity.is_trusted {
            decision = match self.decide_unknown(client, command, decision, effects) {
                Ok(described) => described,
                Err(next) => return next,
            };
        }
        self.group = self.plan.group();
        if self.settings.alters_requests() {
            if self.settings.shards_pubsub
                && client.identity.is_trusted
                && is_renamed(decision.name())
            {
                return self.renamed(client, command, effects);
            }
            if !self.settings.splits_writes {
                decision = decision.without_split_writes();
            }
        }
        self.kind = match Kind::of(&decision) {
            Kind::Refused if is_set_info(command) || self.hands_over(client, command) => {
                Kind::Local
            }
            kind if client.identity.is_trusted || kind == Kind::Local => kind,
            _ => Kind::Refused,
        };
        self.class = self.kind.class(&decision);
        let routed = Routed { command, decision: &decision };
        let next = if !client.identity.is_trusted {
            self.before_trust(client, command, &decision, effects)
        } else {
            match client.mode {
                Mode::Plain => self.go(client, routed, effects),
                Mode::Leased(_) => self.in_transaction(client, routed, effects),
                Mode::Subscribed(_) => self.subscribed(client, routed, effects),
            }
        };
        if self.hot_keys.is_some() && self.may_be_served(client, &decision) {
            self.sample(command, &decision, next, effects);
        }
        next
    }

    /// Carries out a routing decision for a client in plain mode. Also used for some commands of
    /// clients that watch keys or are subscribed.
    pub(crate) fn go(&mut self, client: &mut Client, routed: Routed<'_>, effects: &mut Fx) -> Next {
        let Routed { command, decision } = routed;
        match &decision.route {
            Route::OneNode(node) => self.forward(client, *node, command, effects),
            Route::AnyNode => {
                let node = self.any_node(client);
                self.forward(client, node, command, effects)
            }
            Route::Split(merge) => self.split(client, routed, *merge, effects),
            Route::AllNodes(merge) => match self.waits_for_view(client, decision, effects) {
                Some(next) => next,
                None => {
                    let next = self.send_to_all(client, routed, *merge, effects);
                    self.has_used_view(client.conn, &next);
                    next
                }
            },
            Route::Scan(cursor) => self.scan(client, routed, *cursor, effects),
            Route::Local(local) => self.answer_locally(client, command, *local, effects),
            Route::Lease(lease, place) => match self.keeps_out(client, decision, effects) {
                Some(next) => next,
                None => self.lease(client, command, (*lease, *place), effects),
            },
            Route::Refused(_) if is_set_info(command) => {
                client.answer(&set_info(command), effects);
                Next::Go
            }
            Route::Refused(_) if self.hands_over(client, command) => {
                self.answer_about_handoffs(client, command, effects);
                Next::Go
            }
            Route::Refused(text) => {
                client.fail(&[text], effects);
                Next::Go
            }
        }
    }

    /// Queues a client, whose input then resumes before control returns to the driver.
    pub(crate) fn resume_later(&mut self, conn: Conn) {
        if let Some(client) = self.peers.client(conn)
            && !std::mem::replace(&mut client.is_due, true)
        {
            self.due.push(conn);
        }
    }

    pub(crate) fn resume_due(&mut self, effects: &mut Fx) {
        while let Some(conn) = self.due.pop() {
            let Some(Peer::Client(mut client)) = self.peers.take(conn) else { continue };
            client.is_due = false;
            self.resume(&mut client, effects);
            self.peers.put(conn, Peer::Client(client));
        }
    }

    /// Resumes a client's input if possible, counts what is held for it, closes its connection if it is
    /// done, and updates its status at the driver.
    pub(crate) fn resume(&mut self, client: &mut Client, effects: &mut Fx) {
        loop {
            match client.input {
                Input::Waits if client.ring.is_empty() => self.waited(client, effects),
                Input::Full
                    if client.may_be_owed(2 * client.ring.len())
                        && effects.pending(client.conn) < UNREAD
                        && !client.node_is_full =>
                {
                    client.input = Input::Read;
                }
                _ => break,
            }
            if client.rest.is_some() {
                self.input(client, &[], effects);
            }
        }
        self.count_memory(client, effects);
        if client.has_ended && client.input == Input::Waits {
            self.unblock(client, effects);
        }
        let blocking = client.blocking();
        let is_over = match client.input {
            Input::Ended => client.ring.is_empty(),
            Input::Read => (client.has_ended || client.leaves_now()) && client.ring.is_empty(),
            Input::Waits => {
                let is_left = blocking.map_or(client.is_blocked(), |blocking| blocking.is_left);
                client.has_ended && is_left
            }
            Input::Full => false,
        };
        if is_over {
            effects.close(client.conn, Flow::Close);
            client.input = Input::Ended;
        }
        let pending = effects.pending(client.conn);
        let inside = client.inside();
        let status = ConnInterest {
            reads: client.input == Input::Read || client.reads_ahead(),
            waits: (self.settings.patient
                || !client.ring.is_empty()
                || client.node_is_full
                || matches!(client.mode, Mode::Subscribed(_)))
                && inside.is_none(),
            wants_drained: pending >= COUNTED,
            inside,
            alarm: blocking.and_then(|blocking| blocking.again_at).filter(|_| !is_over),
            gone_at_end: blocking.filter(|_| !client.has_ended).map(|blocking| blocking.since),
            cut_at: None,
        };
        if client.status != Some(status) {
            client.status = Some(status);
            effects.set(client.conn, status);
        }
    }

    /// Cleans up after a client that has disconnected.
    pub(crate) fn leave(&mut self, mut client: Box<Client>, effects: &mut Fx) {
        self.shared.counts.disconnections.add(1);
        self.forget_memory(&mut client);
        self.end_mode(&mut client, effects);
        self.leave_pool(client.pool, effects);
        if let Some(pool) = client.selects {
            self.leave_pool(pool, effects);
        }
    }

    pub(crate) fn leave_pool(&mut self, pool: usize, effects: &mut Fx) {
        for conn in self.pools.leave(pool, effects.now().instant) {
            self.close_unused(conn, effects);
        }
        if let Some(due) = self.pools.due() {
            self.tick_at = Some(self.tick_at.map_or(due, |at| at.min(due)));
        }
    }

    /// Closes a connection that no client of its pool uses.
    pub(crate) fn close_unused(&mut self, conn: Conn, effects: &mut Fx) {
        if let Some(Peer::Upstream(mut upstream)) = self.peers.take(conn) {
            self.charge(&mut upstream, 0);
            if !upstream.described.is_empty() {
                self.described.forget(conn);
            }
            self.release(std::mem::take(&mut upstream.held));
            effects.abort(conn);
        }
    }
}

impl Client {
    /// Returns whether one more reply may become pending when so many already are.
    #[inline]
    fn may_be_owed(&self, replies: usize) -> bool {
        replies < OWED && replies * self.reply_bytes < OWED_BYTES
    }

    /// Returns whether input is read although it must wait. So the end of a blocked client is
    /// noticed at once, unless it has sent much after its command.
    fn reads_ahead(&self) -> bool {
        let ahead = self.rest.as_ref().map_or(0, |rest| rest.len());
        self.input == Input::Waits && self.is_blocked() && ahead < AHEAD
    }

    /// Sends a reply without asking a node.
    pub(crate) fn answer(&mut self, reply: &[u8], effects: &mut Fx) {
        if let Some(out) = effects.out(self.conn) {
            self.ring.answer(reply, out);
        }
    }

    /// Replies with an error. The parts are concatenated.
    pub(crate) fn fail(&mut self, parts: &[&[u8]], effects: &mut Fx) {
        self.answer(&errors::line(parts), effects);
    }
}
