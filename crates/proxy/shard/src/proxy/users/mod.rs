//! Users of the nodes: clients authenticate at a node, and their requests are sent over connections of their user.
//!
//! A user name with a password is tried at one node, over a connection that serves nothing else. What the proxy would
//! answer by itself it answers only after a node has shown that the user may send such a command. In both cases the
//! client waits, and its command is read again when the node has replied ([`Client::outcome`]).
//!
//! A connection of a user carries nothing but its preparation until the node has accepted the user: if the node refuses
//! AUTH, what follows would be carried out as another user. Meanwhile clients wait as for room.

mod logins;

use crate::{
    clients::{
        client::{Accepted, Client, Mode, Outcome},
        identity::NO_AUTH,
        next::Next,
    },
    node::{
        loss_reason::Loss,
        pools::Key,
        upstream::{OWED, STRANGERS, Upstream, Use, Waiter, What},
    },
    observe::class::Class,
    proxy::state::{Fx, Proxy},
    reply::errors,
    settings::Credentials,
    tally::Kind,
    users::{Full, LONGEST},
};
use regatta_engine::Conn;
use regatta_keyspace::{
    Arguments,
    route::{Decision, Lease, Local, Route},
};
use regatta_proto::resp::{Command, write_command};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long nodes that have demanded a password are assumed to.
const DEMANDED_FOR: Duration = Duration::from_secs(60);

impl Proxy {
    /// Handles a command that the proxy answers itself if the users are those of the nodes. `None`: the client may send
    /// it, and the proxy answers it as usual.
    pub(super) fn ask_a_node(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        local: Local,
        effects: &mut Fx,
    ) -> Option<Next> {
        let question: &[&[u8]] = match local {
            Local::Quit | Local::Reset | Local::Select => return None,
            Local::Auth => return Some(self.authenticate(client, command, effects)),
            Local::Hello => return Some(self.greet(client, command, effects)),
            Local::Ping | Local::Echo if matches!(client.mode, Mode::Subscribed(_)) => return None,
            Local::Ping | Local::Echo => {
                (self.kind, self.class) = (Kind::Other, Class::Other);
                let node = self.any_node(client);
                return Some(self.forward(client, node, command, effects));
            }
            // It has authenticated, and these are about itself.
            Local::Client if client.identity.user.is_some() => return None,
            Local::Client => {
                let version = version_of(client);
                return self
                    .permits(client, &[b"HELLO", version], effects)
                    .refuses(client, effects);
            }
            Local::Info => &[b"INFO", b"nothing"],
            Local::SlowLog if command.is(1, "get") => &[b"SLOWLOG", b"GET", b"0"],
            Local::SlowLog if command.is(1, "len") => &[b"SLOWLOG", b"LEN"],
            // To ask whether it is permitted would reset the log of the node.
            Local::SlowLog => {
                let why = b"ERR the proxy does not support 'slowlog|reset' with --auth nodes";
                client.fail(&[why], effects);
                return Some(Next::Go);
            }
        };
        self.permits(client, question, effects).refuses(client, effects)
    }

    /// Handles AUTH.
    fn authenticate(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        let (user, password) = match (command.arg(1), command.arg(2)) {
            (Some(_), Some(_)) if command.len() > 3 => {
                client.fail(&[b"ERR syntax error"], effects);
                return Next::Go;
            }
            (Some(user), Some(password)) => (user, password),
            (password, _) => (Credentials::DEFAULT_USER, password.unwrap_or_default()),
        };
        // Without a user name, the node may have an error of its own.
        let sent: &[&[u8]] = match command.len() {
            2 => &[b"AUTH", password],
            _ => &[b"AUTH", user, password],
        };
        match self.log_in(client, (user, password), sent, effects) {
            Ok(()) => {
                client.answer(b"+OK\r\n", effects);
                Next::Go
            }
            Err(next) => next,
        }
    }

    /// Handles HELLO.
    fn greet(&mut self, client: &mut Client, command: &Command<'_>, effects: &mut Fx) -> Next {
        // It may change which connections are used: no request may be in flight.
        if !client.ring.is_empty() {
            return Next::Again;
        }
        let hello = match client.identity.read_hello(command) {
            Ok(hello) => hello,
            Err(text) => {
                client.fail(&[&text], effects);
                return Next::Go;
            }
        };
        if let Some((user, password)) = hello.auth {
            let sent = [&b"AUTH"[..], user, password];
            if let Err(next) = self.log_in(client, (user, password), &sent, effects) {
                return next;
            }
        } else if client.identity.user.is_none() && hello.wrong.is_none() {
            let question = [&b"HELLO"[..], version_of(client)];
            match self.permits(client, &question, effects) {
                Permit::Granted => {}
                Permit::Refused(text) => {
                    client.fail(&[&text], effects);
                    return Next::Go;
                }
                Permit::Open(next) => return next,
            }
        }
        let reply = client.identity.greet(hello, &self.shared.version());
        let resp3 = client.identity.resp3;
        let key = Key { resp3, ..self.pools.get(client.pool).key.clone() };
        self.change_pool(client, key, effects);
        match reply {
            Ok(reply) => client.answer(&reply, effects),
            Err(text) => client.fail(&[&text], effects),
        }
        Next::Go
    }

    /// Tries a user name and a password at a node, and makes the client that user. `sent`: the AUTH for it. `Err`: what
    /// happens to the command while the node is asked, or after an error.
    fn log_in(
        &mut self,
        client: &mut Client,
        (user, password): (&[u8], &[u8]),
        sent: &[&[u8]],
        effects: &mut Fx,
    ) -> Result<(), Next> {
        match client.outcome.take().map(|outcome| *outcome) {
            Some(Ok(accepted)) => {
                match self.become_user(client, (user, password), accepted, effects) {
                    // The node is asked whether the user needs no password.
                    Err(Full::Passwords) if accepted.any_password.is_none() => {}
                    Err(full) => {
                        client.fail(&[full.text().as_bytes()], effects);
                        return Err(Next::Go);
                    }
                    Ok(()) => return Ok(()),
                }
            }
            // It was tried at a node that has just failed, and nothing happened there.
            Some(Err(text)) if self.may_try_another(client, &text) => {}
            Some(Err(text)) => {
                self.shared.denied(&text);
                client.fail(&[&text], effects);
                return Err(Next::Go);
            }
            None if !client.ring.is_empty() => return Err(Next::Again),
            None => {}
        }
        if user.len().max(password.len()) > LONGEST {
            let text = format!("ERR a user name and a password have at most {LONGEST} bytes");
            client.fail(&[text.as_bytes()], effects);
            return Err(Next::Go);
        }
        let node = self.any_node(client);
        let Some(conn) = self.login_to(node, effects) else {
            client.fail(&[&self.down(node)], effects);
            return Err(Next::Go);
        };
        if self.is_full(client, conn, effects) {
            return Err(Next::Full);
        }
        self.ask(client, conn, (What::Asked, sent), effects);
        if !self.shared.users.has_room(user, password) {
            let shared = Arc::clone(&self.shared);
            let question = [&b"AUTH"[..], user, shared.users.nobodys_password()];
            self.ask(client, conn, (What::AskedAny, &question), effects);
        }
        Err(Next::Again)
    }

    /// Returns whether an error is that of a node that is down, and another node is up.
    fn may_try_another(&self, client: &Client, error: &[u8]) -> bool {
        let node = self.any_node(client);
        let failed =
            [b"SHARDDOWN node ", self.settings.nodes.name(node).as_bytes(), b": "].concat();
        self.health[node].why_down().is_none()
            && error.starts_with(b"SHARDDOWN ")
            && !error.starts_with(&failed)
    }

    /// Makes a client a user that a node has accepted.
    fn become_user(
        &mut self,
        client: &mut Client,
        (user, password): (&[u8], &[u8]),
        accepted: Accepted,
        effects: &mut Fx,
    ) -> Result<(), Full> {
        let users = &self.shared.users;
        let login = match users.get(user, password) {
            Err(Full::Passwords) if accepted.any_password == Some(true) => {
                users.without_password(user)
            }
            other => other,
        }?;
        let key = self.pools.get(client.pool).key.clone();
        self.change_pool(client, Key { user: Some(Arc::clone(login.user())), ..key }, effects);
        client.identity.user = Some(login);
        client.identity.is_stranger = false;
        Ok(())
    }

    /// Asks a node, as the user of the client, whether it permits a command. `question`: one that needs the same
    /// permission and changes nothing.
    fn permits(&mut self, client: &mut Client, question: &[&[u8]], effects: &mut Fx) -> Permit {
        match client.outcome.take().map(|outcome| *outcome) {
            Some(Ok(_)) => return Permit::Granted,
            Some(Err(text)) => return Permit::Refused(text),
            None if !client.ring.is_empty() => return Permit::Open(Next::Again),
            None => {}
        }
        let node = self.any_node(client);
        let Some(conn) = self.shared_to(client.pool, node, effects) else {
            return Permit::Refused(self.unavailable(client.pool, node));
        };
        if self.is_full(client, conn, effects) {
            return Permit::Open(Next::Full);
        }
        self.ask(client, conn, (What::Asked, question), effects);
        Permit::Open(Next::Again)
    }

    /// Sends a question about the next command of a client, over a connection that can take output.
    fn ask(
        &mut self,
        client: &mut Client,
        conn: Conn,
        (what, question): (What, &[&[u8]]),
        effects: &mut Fx,
    ) {
        let now = effects.now().instant;
        if let Some(out) = effects.out(conn) {
            write_command(question.iter().copied(), out);
        }
        if let Some(upstream) = self.peers.upstream(conn) {
            upstream.wait(Waiter::new(client.conn, client.ring.wait(), what), now);
        }
        self.check_soon(now);
    }

    /// A node has replied to a question about the next command of a client, with this error or with none.
    pub(super) fn asked(&mut self, waiter: Waiter, error: Option<Vec<u8>>, effects: &mut Fx) {
        if waiter.what == What::Asked {
            let outcome = error.map_or(Ok(Accepted::default()), Err);
            return self.answered(waiter, outcome, effects);
        }
        if let Some(client) = self.peers.client(waiter.client)
            && let Some(Ok(accepted)) = client.outcome.as_deref_mut()
        {
            accepted.any_password = Some(error.is_none());
        }
        self.begun(waiter, effects);
    }

    /// Sets what is known about the next command of a client.
    pub(super) fn answered(&mut self, waiter: Waiter, outcome: Outcome, effects: &mut Fx) {
        if let Some(client) = self.peers.client(waiter.client) {
            client.outcome = Some(Box::new(outcome));
        }
        self.begun(waiter, effects);
    }

    /// Notes that a node demands a password from clients, if this is its error.
    pub(super) fn note_demand(&mut self, node: usize, reply: &[u8], now: Instant) {
        if self.settings.auth.of_nodes && reply.starts_with(b"-NOAUTH") {
            self.demands_auth_until = Some(now + DEMANDED_FOR);
            self.serves_all[node] = false;
        }
    }

    /// Notes that a node serves clients that have not authenticated, if this reply of a connection that they share shows
    /// it.
    pub(super) fn note_service(&mut self, upstream: &mut Upstream, reply: &[u8]) {
        if self.settings.auth.of_nodes
            && upstream.use_ == Use::Shared
            && self.pools.get(upstream.pool).key.user.is_none()
        {
            // Other errors may come before the node asks for a password, e.g. of a malformed request.
            let serves = match reply.first() {
                Some(b'-') if reply.starts_with(b"-NOAUTH") => false,
                Some(b'-') if !reply.starts_with(b"-NOPERM") => return,
                _ => true,
            };
            upstream.most = if serves { OWED } else { STRANGERS };
            self.serves_all[upstream.node] = serves;
        }
    }

    /// Asks a node before a stranger gets a connection of its own: many of them would use up the ports. `None`: it may
    /// have one.
    pub(super) fn keeps_out(
        &mut self,
        client: &mut Client,
        decision: &Decision,
        effects: &mut Fx,
    ) -> Option<Next> {
        let needs_one = match decision.route {
            Route::Lease(Lease::Transaction, _) => decision.name() == "multi",
            _ => true,
        };
        if !client.identity.is_stranger || !needs_one {
            return None;
        }
        let version = version_of(client);
        self.permits(client, &[b"HELLO", version], effects).refuses(client, effects)
    }

    /// Returns whether the nodes of a request may serve it: its client has authenticated, or need not.
    pub(super) fn may_be_served(&self, client: &Client, decision: &Decision) -> bool {
        !self.settings.auth.of_nodes
            || client.identity.user.is_some()
            || match decision.route {
                Route::OneNode(node) => self.serves_all[node],
                _ => self.serves_all.iter().all(|serves| *serves),
            }
    }

    /// Decides whether a client is a stranger, who may send only small requests, as to a node that demands a password.
    pub(super) fn judge(&self, client: &mut Client, now: Instant) {
        let Some(until) = self.demands_auth_until else { return };
        client.identity.is_stranger = client.identity.user.is_none() && now < until;
    }

    /// A node has accepted a part of the preparation of a connection. After the last part, clients that wait for it
    /// continue.
    pub(super) fn prepared(&mut self, upstream: &mut Upstream) {
        let prepares = |waiter: &Waiter| {
            let what = waiter.what;
            matches!(what, What::Authenticated | What::Prepared | What::Selected | What::Role)
        };
        if !upstream.is_admitted && !upstream.waiting.iter().any(prepares) {
            upstream.is_admitted = true;
            let held = mem::take(&mut upstream.held);
            self.release(held);
        }
    }

    /// The error of a node that does not accept a connection of a user, without the leading `-`. `was_open`: the
    /// connection was open. No request was sent over it.
    pub(super) fn refusal(&self, node: usize, loss: &Loss, was_open: bool) -> Vec<u8> {
        let name = self.settings.nodes.name(node);
        match loss {
            Loss::Refused(text) | Loss::Denied(text) => {
                let (code, text) = errors::split_code(text);
                [code, b" node ", name.as_bytes(), b": ", text].concat()
            }
            _ => {
                let (code, why) = loss.words(was_open, self.settings.node_timeout);
                format!("{code} node {name}: {why}").into_bytes()
            }
        }
    }

    /// The error for a request for which there is no connection of this pool to a node, without the leading `-`: the
    /// node is down, or does not accept the user.
    pub(super) fn unavailable(&mut self, pool: usize, node: usize) -> Vec<u8> {
        match self.pools.get(pool).refusal(node) {
            Some(error) if self.health[node].why_down().is_none() => error.to_vec(),
            _ => self.down(node),
        }
    }
}

/// Whether a node permits a command.
enum Permit {
    Granted,
    /// The error, without the leading `-`.
    Refused(Vec<u8>),
    /// The node is asked. What happens to the command meanwhile.
    Open(Next),
}

impl Permit {
    /// Returns what happens to the command, unless it is permitted.
    fn refuses(self, client: &mut Client, effects: &mut Fx) -> Option<Next> {
        match self {
            Permit::Granted => None,
            Permit::Open(next) => Some(next),
            // The question may have been HELLO, which has words of its own for this.
            Permit::Refused(text) if text.starts_with(b"NOAUTH") => {
                client.fail(&[NO_AUTH], effects);
                Some(Next::Go)
            }
            Permit::Refused(text) => {
                client.fail(&[&text], effects);
                Some(Next::Go)
            }
        }
    }
}

/// The version of the protocol on the connections of a client, for HELLO: it does not change them.
fn version_of(client: &Client) -> &'static [u8] {
    if client.identity.resp3 { b"3" } else { b"2" }
}

#[cfg(test)]
mod tests;
