//! The end of a blocking command whose client has closed its sending side, or whose proxy stops.
//!
//! Closing the connection to the node would lose an element that the node has just popped for the
//! client. So the node is asked to end the command (CLIENT UNBLOCK), over the shared connection. Then
//! it has either replied already, or it replies with an error and pops nothing.

use crate::{
    clients::{
        blocking::Blocking,
        client::{Client, Mode},
        next::Next,
    },
    node::upstream::{Waiter, What},
    observe::class::Class,
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use regatta_proto::resp::{Command, Value, write_command};
use std::time::Duration;

/// Pause before the node is asked again. It may receive the blocking command last.
const AGAIN: Duration = Duration::from_millis(20);

/// The start of the reply to a command that was ended.
pub(crate) const UNBLOCKED: &[u8] = b"-UNBLOCKED ";

impl Proxy {
    /// Sends a command that may block, over the client's own connection. The node is first asked for
    /// the number of this connection, by which the command can be ended.
    pub(crate) fn send_blocking(
        &mut self,
        client: &mut Client,
        conn: Conn,
        command: &Command<'_>,
        effects: &mut Fx,
    ) -> Next {
        let now = effects.now().instant;
        if let Some(upstream) = self.peers.upstream(conn)
            && upstream.number.is_none()
            && let Some(out) = effects.out(conn)
        {
            write_command([&b"CLIENT"[..], b"ID"], out);
            upstream.wait_for_itself(What::Number, now);
        }
        client.transaction().blocking = Some(Blocking::new(command, now));
        self.class = Class::Blocking;
        self.send(client, conn, command, effects);
        Next::Stop
    }

    /// Asks the node to end the client's blocking command, if it is time to.
    pub(crate) fn unblock(&mut self, client: &mut Client, effects: &mut Fx) {
        let now = effects.now().instant;
        let Mode::Leased(transaction) = &mut client.mode else { return };
        let (Some(blocking), Some((node, leased))) = (&mut transaction.blocking, transaction.lease)
        else {
            return;
        };
        let is_time = match blocking.asked {
            None => true,
            Some(_) => blocking.again_at.is_some_and(|at| now >= at),
        };
        let Some(upstream) = self.peers.upstream(leased).filter(|_| is_time) else { return };
        // If the number is still to come, the client resumes when it does.
        if upstream.waiting.iter().any(|waiter| waiter.what == What::Number) {
            return;
        }
        let number = upstream.number;
        // CLIENT UNBLOCK must not be sent before the node has accepted the user.
        if number.is_some()
            && let Some(conn) = self.shared_to(client.pool, node, effects)
            && self.peers.upstream(conn).is_some_and(|shared| !shared.is_admitted)
        {
            blocking.again_at = Some(now + AGAIN);
            return;
        }
        if let Some(number) = number
            && let Some(conn) = self.shared_to(client.pool, node, effects)
            && let Some(out) = effects.out(conn)
            && let Some(upstream) = self.peers.upstream(conn)
        {
            let number = number.to_string();
            write_command([&b"CLIENT"[..], b"UNBLOCK", number.as_bytes(), b"ERROR"], out);
            let waiter = Waiter::new(client.conn, 0, What::Unblocked);
            upstream.wait(waiter, now);
            blocking.asked.get_or_insert(now);
            blocking.again_at = None;
            // This may also arrive late, and must then not end a command of another client.
            transaction.is_dirty = true;
            self.check_soon(now);
        } else {
            blocking.is_left = true;
        }
    }

    /// Handles the node's reply to that: 1 if the command was blocked, 0 if it has its reply or has not
    /// been received yet, or an error. `None`: the connection was lost.
    pub(crate) fn asked_to_unblock(&mut self, conn: Conn, reply: Option<&[u8]>, effects: &Fx) {
        let now = effects.now().instant;
        let timeout = self.settings.node_timeout;
        let Some(Client { mode: Mode::Leased(transaction), .. }) = self.peers.client(conn) else {
            return;
        };
        let Some(blocking) = &mut transaction.blocking else { return };
        let Some(asked) = blocking.asked else { return };
        match reply {
            Some(b":1\r\n") => return,
            Some(b":0\r\n") if now < asked + timeout => blocking.again_at = Some(now + AGAIN),
            _ => blocking.is_left = true,
        }
        self.resume_later(conn);
    }
}

/// The number in the reply to CLIENT ID. `None`: the node refuses to tell it.
pub(crate) fn number(reply: &[u8]) -> Option<u64> {
    match Value::read(reply)?.0 {
        Value::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

impl Client {
    /// Returns whether this reply is the end of a blocking command that the proxy has requested.
    pub(crate) fn was_unblocked(&self, reply: &[u8]) -> bool {
        reply.starts_with(UNBLOCKED)
            && self.blocking().is_some_and(|blocking| blocking.asked.is_some())
    }
}
