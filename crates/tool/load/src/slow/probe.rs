//! A new client while slow ones are connected: connects, sends a request, and expects a complete and
//! correct reply.

use super::plan::SlowPlan;
use crate::{
    clock::{self, Nanos},
    sockets::socket::{self, Received},
};
use regatta_record::Exchange;
use regatta_script::{At, Cursor, Dialect};
use rustix::{fd::OwnedFd, io};

/// A new client.
pub(super) struct Probe<D: Dialect> {
    socket: OwnedFd,
    began: Nanos,
    gives_up_at: Nanos,
    cursor: Cursor,
    talk: D::ConnectionState,
}

impl<D: Dialect> Probe<D> {
    /// Starts to connect.
    pub fn open(plan: &SlowPlan, dialect: &D, now: Nanos) -> io::Result<Self> {
        let mut cursor = Cursor::new(dialect.script(), 0);
        cursor.ask(1);
        Ok(Probe {
            socket: socket::open(plan.target, None, true, None)?,
            began: now,
            gives_up_at: now + plan.timeout.as_nanos() as Nanos,
            cursor,
            talk: dialect.talk(0),
        })
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub fn began(&self) -> Nanos {
        self.began
    }

    pub fn gives_up_at(&self) -> Nanos {
        self.gives_up_at
    }

    /// Whether the complete request is sent.
    pub fn has_asked(&self, dialect: &D) -> bool {
        self.cursor.unsent(dialect.script()).is_empty()
    }

    /// Writes and reads once. Returns the outcome, once it is known.
    pub fn go_on(&mut self, dialect: &D, desk: &mut D::ThreadState) -> Option<Result<(), String>> {
        match self.exchange(dialect, desk) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(because) => Some(Err(because)),
        }
    }

    fn exchange(&mut self, dialect: &D, desk: &mut D::ThreadState) -> Result<bool, String> {
        let now = clock::now();
        if !self.has_asked(dialect) {
            let unsent = dialect.unsent(&self.cursor, &mut self.talk, now);
            let sent = socket::send_some(&self.socket, unsent);
            let sent = sent.map_err(|error| format!("cannot send: {error}"))?;
            dialect.wrote(&mut self.cursor, &mut self.talk, sent);
        }
        let mut buffer = [0; 16 * 1024];
        let received = socket::receive_some(&self.socket, &mut buffer);
        let Probe { cursor, talk, .. } = self;
        let at = At { cursor, talk, desk };
        match received {
            Ok(Received::Nothing) => Ok(false),
            Ok(Received::Bytes(n)) => {
                let complete = dialect.receive(at, &buffer[..n], now, &mut ());
                Ok(complete.map_err(|exchange| wrong(&exchange))? > 0)
            }
            Ok(Received::End) => match dialect.end(at, now) {
                Ok(true) => Ok(true),
                Ok(false) => Err("the server closed the connection before a complete reply".into()),
                Err(exchange) => Err(wrong(&exchange)),
            },
            Err(error) => Err(format!("cannot receive: {error}")),
        }
    }
}

fn wrong(exchange: &Exchange) -> String {
    match exchange.expected.as_str() {
        "" => format!("expected nothing, got {}", exchange.received),
        expected => format!("expected {expected}, got {}", exchange.received),
    }
}
