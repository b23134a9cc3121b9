//! A paced drain: clients that ask for handoffs are requested to reconnect; the others are disconnected one after the
//! other.
//!
//! A client that is disconnected while its next request is on its way cannot know whether that was carried out. So one
//! that sends requests is disconnected right behind a reply: it learns of both at once, before its next request.

use crate::{
    clients::{
        client::{Client, Mode},
        handoff::{self, Leaving},
    },
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use regatta_proto::resp::Command;
use std::time::Duration;

/// A client that has sent nothing for this long is disconnected at its turn, without another reply.
const SILENT: Duration = Duration::from_secs(1);

impl Proxy {
    /// Returns whether the proxy answers CLIENT MAINT_NOTIFICATIONS to this client, instead of refusing it as an
    /// unknown command. That depends only on the settings and the protocol version: clients rely on the same answer on
    /// all their connections.
    pub(crate) fn hands_over(&self, client: &Client, command: &Command<'_>) -> bool {
        self.shared.settings.hands_over && client.identity.resp3 && handoff::is_request(command)
    }

    /// Answers CLIENT MAINT_NOTIFICATIONS.
    pub(crate) fn answer_about_handoffs(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        effects: &mut Fx,
    ) {
        match handoff::asks(command) {
            Ok(asks) => {
                client.identity.asks_for_handoffs = asks;
                client.answer(b"+OK\r\n", effects);
                // It connected just before the drain began.
                if let Some(until) = self.drains_until
                    && client.takes_handoff()
                {
                    let now = effects.now();
                    let left = until.saturating_duration_since(now.instant);
                    client.leaving = Leaving::Asked;
                    client.answer(&moving(now.unix_s, left), effects);
                }
            }
            Err(text) => client.fail(&[text], effects),
        }
    }

    /// A drain begins: asks clients to reconnect. Those that are subscribed, blocked or in a transaction stay until
    /// that ends, because a reconnect would lose what they wait for.
    pub(crate) fn hand_over(&mut self, over: Duration, effects: &mut Fx) {
        let now = effects.now();
        self.drains_until = Some(now.instant + over);
        let push = moving(now.unix_s, over);
        let asked = self.peers.clients().filter(|client| client.takes_handoff());
        let asked: Vec<Conn> = asked.map(|client| client.conn).collect();
        for conn in asked {
            if let Some(client) = self.peers.client(conn) {
                client.leaving = Leaving::Asked;
                client.answer(&push, effects);
            }
        }
    }

    /// Disconnects a client in a drain: now if it is silent, otherwise right behind its next reply.
    pub(crate) fn retire_client(&mut self, conn: Conn, effects: &mut Fx) {
        if let Some(client) = self.peers.client(conn)
            && client.leaving == Leaving::No
        {
            client.leaving = Leaving::WhenIdle;
            let silent_since = effects.last_read(conn).unwrap_or(effects.now().instant);
            // Otherwise its next reply resumes it.
            if effects.now().instant >= silent_since + SILENT {
                self.resume_later(conn);
            }
        }
        self.resume_due(effects);
    }
}

/// The request to reconnect within this time. Its number is the time: two proxies that drain one after the other must
/// differ.
fn moving(unix_s: u64, within: Duration) -> Vec<u8> {
    handoff::moving(unix_s, within.as_millis().div_ceil(1000).max(1) as u64)
}

impl Client {
    fn takes_handoff(&self) -> bool {
        let identity = &self.identity;
        identity.resp3 && identity.asks_for_handoffs && matches!(self.mode, Mode::Plain)
    }

    /// Returns whether a client whose input is read, and that has no pending replies, is disconnected now.
    pub(crate) fn leaves_now(&self) -> bool {
        self.leaving == Leaving::WhenIdle && matches!(self.mode, Mode::Plain) && self.rest.is_none()
    }
}

#[cfg(test)]
mod tests;
