//! New connections, their handshakes, their input, and their failures.

use super::{
    config::Upstreams,
    connection::{Stage, TlsConn},
    failure::Failure,
    state::{Fx, TlsEngine},
};
use regatta_engine::{Conn, Flow, Never, Side};
use rustls::{ClientConnection, ServerConnection};
use std::{io, mem};

/// Why the handshake of a client has failed whose connection is gone.
pub(super) const CLIENT_ENDED: &str = "the client closed the connection in the TLS handshake";
/// The same if the driver has closed the connection.
pub(super) const CLIENT_LOST: &str =
    "the TLS handshake was not over within the request timeout, or the connection was reset";

impl<E: Upstreams<Job = Never, Letter = Never>> TlsEngine<E> {
    /// A client has connected. Without TLS, the engine sees it at once.
    pub(super) fn accepted(&mut self, outer: Conn, effects: &mut Fx<E>) -> Box<TlsConn> {
        let now = effects.now().instant;
        let mut conn = Box::new(TlsConn::new(outer, Side::Client, now));
        let Some(config) = &self.tls.clients else {
            self.ready(&mut conn);
            return conn;
        };
        match ServerConnection::new(config()) {
            Ok(tls) => conn.start(tls.into(), now),
            // Only if the configuration has no TLS versions, which is never built.
            Err(_) => {
                conn.stage = Stage::Closing;
                effects.abort(outer);
            }
        }
        conn
    }

    /// The connection to a server is open. The handshake starts.
    pub(super) fn connected(&mut self, conn: &mut TlsConn, effects: &mut Fx<E>) {
        let Some(servers) = &self.tls.servers else { return self.ready(conn) };
        let node = conn.inner.and_then(|inner| self.core.engine().upstream(inner));
        let Some(name) = node.and_then(|node| servers.names.get(node)) else {
            return self.fail(conn, &Failure::unused("the server has no name"), effects);
        };
        match ClientConnection::new((servers.config)(), name.clone()) {
            Ok(tls) => {
                conn.start(tls.into(), effects.now().instant);
                if let Some(out) = effects.out(conn.outer) {
                    conn.flush(out);
                }
            }
            Err(error) => self.fail(conn, &Failure::of(&error, true, false), effects),
        }
    }

    /// The engine may use a connection: there is no handshake, or it is over.
    fn ready(&mut self, conn: &mut TlsConn) {
        conn.stage = Stage::Ready;
        match conn.inner {
            Some(inner) => self.core.connected(inner),
            None => {
                let inner = self.core.accept();
                conn.inner = Some(inner);
                self.conns.link(inner, conn.outer);
            }
        }
    }

    /// Decrypts input and passes it to the engine. Input after the peer's end is discarded, because
    /// TLS takes no more bytes after a `close_notify`.
    pub(super) fn open(&mut self, conn: &mut TlsConn, mut bytes: &[u8], effects: &mut Fx<E>) {
        let length = bytes.len();
        conn.follow(bytes, effects.now().instant);
        let mut plain = mem::take(&mut self.plain);
        while !bytes.is_empty() && conn.stage != Stage::Closing && !conn.has_ended {
            match conn.decrypt(&mut bytes, &mut plain) {
                Ok(ends) => self.opened_some(conn, &mut plain, ends, effects),
                Err(error) => {
                    let in_handshake = conn.stage == Stage::Handshake;
                    let failure = match conn.side {
                        Side::Upstream => Failure::of(&error, in_handshake, conn.was_heard),
                        Side::Client => Failure::unused(error.to_string()),
                    };
                    self.fail(conn, &failure, effects);
                }
            }
        }
        self.plain = plain;
        conn.shrink(length);
    }

    /// Handles some input: `plain` is its plaintext, with which the peer may have ended its side.
    fn opened_some(
        &mut self,
        conn: &mut TlsConn,
        plain: &mut [u8],
        ends: bool,
        effects: &mut Fx<E>,
    ) {
        if let Some(out) = effects.out(conn.outer) {
            conn.flush(out);
        }
        if conn.has_shaken() {
            self.ready(conn);
        }
        if let Some(inner) = conn.inner.filter(|_| !plain.is_empty()) {
            if !mem::replace(&mut conn.was_heard, true) && conn.side == Side::Upstream {
                self.report(inner, None);
            }
            self.core.received(inner, plain);
        }
        if ends {
            self.peer_ended(conn, effects);
        }
    }

    /// The peer has ended its side, in TLS or without. It may still read.
    pub(super) fn peer_ended(&mut self, conn: &mut TlsConn, effects: &mut Fx<E>) {
        match (conn.stage, conn.inner) {
            (Stage::Handshake, _) => {
                let failure = match conn.side {
                    Side::Upstream => Failure::ended(),
                    Side::Client => Failure::unused(CLIENT_ENDED),
                };
                self.fail(conn, &failure, effects);
            }
            (Stage::Ready, Some(inner)) if !mem::replace(&mut conn.has_ended, true) => {
                self.core.ended(inner);
            }
            _ => {}
        }
    }

    /// Ends a connection whose TLS has failed. The peer gets the alert that describes the error.
    pub(super) fn fail(&mut self, conn: &mut TlsConn, failure: &Failure, effects: &mut Fx<E>) {
        if let Some(out) = effects.out(conn.outer) {
            conn.flush(out);
        }
        self.note_refusal(conn, &failure.why);
        conn.fail();
        effects.close(conn.outer, Flow::Close);
        if let Some(inner) = conn.inner.take() {
            self.lose(inner, conn.side, failure);
        }
    }

    /// Reports that the handshake of a client fails, unless the client has sent nothing, e.g. because a load balancer
    /// only checks that the port is open.
    pub(super) fn note_refusal(&self, conn: &TlsConn, why: &str) {
        if conn.side == Side::Client
            && conn.stage == Stage::Handshake
            && conn.has_sent
            && let Some(refused) = &self.tls.refused
        {
            refused(why);
        }
    }

    /// Reports to the engine that a connection is lost because of TLS.
    pub(super) fn lose(&mut self, inner: Conn, side: Side, failure: &Failure) {
        if side == Side::Upstream {
            self.report(inner, Some(&failure.why));
            if failure.is_unused {
                let why = io::Error::new(io::ErrorKind::InvalidData, failure.why.clone());
                self.core.not_opened(inner, &why);
            }
        }
        self.conns.unlink(inner);
        self.core.closed(inner);
    }

    /// Reports whether TLS with a server works, or why not.
    fn report(&self, inner: Conn, failure: Option<&str>) {
        if let Some(servers) = &self.tls.servers
            && let Some(server) = self.core.engine().upstream(inner)
        {
            (servers.report)(server, failure);
        }
    }
}
