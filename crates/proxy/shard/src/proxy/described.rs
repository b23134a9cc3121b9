//! Commands that the built-in table lacks, because the nodes are newer or have modules.
//!
//! The first request of such a command waits until a node has described it (COMMAND INFO): so the proxy knows its keys
//! and forwards nothing blindly. Each core remembers descriptions until it loses a connection to a node, which may come
//! back with another version. A command that the node does not know either is asked for again after a while. Only where
//! clients share connections to the nodes.

use crate::{
    clients::{client::Client, identity::is_set_info, next::Next},
    node::{
        described::{self, Known},
        upstream::What,
    },
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use regatta_keyspace::{
    command::Description,
    route::{Decision, Route, decide_described},
};
use regatta_proto::resp::{Command, write_command};
use std::time::{Duration, Instant};

/// How long a command counts as unknown.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);

impl Proxy {
    /// Decides for a request of a command that the table lacks. `refused`: the decision without a description.
    /// `Err`: the request waits for it.
    pub(super) fn decide_unknown(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        refused: Decision,
        effects: &mut Fx,
    ) -> Result<Decision, Next> {
        if is_set_info(command) || self.hands_over(client, command) {
            return Ok(refused);
        }
        let Some(name) = self.described.name(command) else { return Ok(refused) };
        let now = effects.now().instant;
        if let Some(Known::Is(known)) = self.described.get(&name) {
            return Ok(decide_described(known, command, &self.map, &mut self.plan));
        }
        // Clients of all pools without a user wait for the answer, so it must come over a connection that outlives each
        // pool. A user asks for itself: another one may not be permitted to.
        let pool = if client.identity.user.is_some() { client.pool } else { 0 };
        let name = described::asked_in(name, pool);
        match self.described.get(&name) {
            Some(Known::Not(until)) if now < until => return Ok(refused),
            Some(Known::Asked(conn)) if self.waits_for_description(client, conn) => {
                return Err(Next::Full);
            }
            _ => {}
        }
        if !self.described.has_room() {
            return Ok(refused);
        }
        let node = self.any_node(client);
        let Some(conn) = self.shared_to(pool, node, effects) else {
            return Ok(Decision { route: Route::Refused(self.unavailable(pool, node)), ..refused });
        };
        if self.is_full(client, conn, effects) {
            return Err(Next::Full);
        }
        if let Some(out) = effects.out(conn) {
            write_command([&b"COMMAND"[..], b"INFO", described::name_of(&name)], out);
        }
        if let Some(upstream) = self.peers.upstream(conn) {
            upstream.described.push_back(name.clone());
            upstream.wait_for_itself(What::Described, now);
        }
        self.described.insert(name, Known::Asked(conn));
        self.check_soon(now);
        self.waits_for_description(client, conn);
        Err(Next::Full)
    }

    /// Lets a client wait for the reply of a node that was asked over this connection. Returns false if that was lost.
    fn waits_for_description(&mut self, client: &mut Client, conn: Conn) -> bool {
        let Some(upstream) = self.peers.upstream(conn) else { return false };
        upstream.hold(client);
        true
    }

    /// A node has described a command. `asked`: its name and the pool, as it was asked for.
    pub(super) fn describe(&mut self, asked: Vec<u8>, reply: &[u8], now: Instant) {
        let name = described::name_of(&asked);
        let text = std::str::from_utf8(name).ok();
        let description = text.and_then(|name| Description::read(name, reply));
        match description.and_then(|description| self.shared.command(description)) {
            Some(known) => {
                self.described.insert(name.to_vec(), Known::Is(known));
                if name.len() < asked.len() {
                    self.described.remove(&asked);
                }
            }
            None => self.described.insert(asked, Known::Not(now + UNKNOWN_FOR)),
        }
    }
}
