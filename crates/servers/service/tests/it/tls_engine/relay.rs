//! An engine with connections to a server: each client has one of its own, and gets what the server replies.

use regatta_engine::{Conn, ConnInterest, Effects, Engine, Flow, Never};
use regatta_service::tls_engine::Upstreams;
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Pending output of one side from which on the other is not read.
pub const FULL: usize = 64 * 1024;

#[derive(Default)]
pub struct Relay {
    ends: HashMap<Conn, End>,
    /// Clients that it has seen.
    pub clients: usize,
    /// Why connections could not be opened.
    pub reasons: Vec<String>,
    /// The most bytes that were pending for a connection.
    pub most: usize,
    /// Each client has an alarm so long after it has connected.
    pub alarm_after: Option<Duration>,
    /// How many alarms have rung.
    pub rung: usize,
    /// The first client is closed when it sends something, and aborted when another does.
    pub evicts: Option<Vec<Conn>>,
}

#[derive(Clone, Copy)]
enum End {
    Client {
        server: Conn,
        /// Bytes that the server has not answered.
        owed: usize,
        has_ended: bool,
        alarm: Option<Instant>,
    },
    Server {
        client: Conn,
    },
}

impl Relay {
    fn end(&mut self, conn: Conn) -> Option<End> {
        self.ends.get(&conn).copied()
    }

    /// Closes a client that has ended its side and has all answers. Otherwise, sets which side is read.
    fn settle(&mut self, client: Conn, effects: &mut Effects<Self>) {
        let Some(End::Client { server, owed, has_ended, alarm }) = self.end(client) else { return };
        if has_ended && owed == 0 {
            effects.close(client, Flow::Close);
            // Its end is not the client's.
            self.ends.remove(&server);
            return effects.abort(server);
        }
        let (for_client, for_server) = (effects.pending(client), effects.pending(server));
        self.most = self.most.max(for_client).max(for_server);
        let interest = |theirs: usize, own: usize| ConnInterest {
            reads: theirs < FULL,
            wants_drained: own > 0,
            ..ConnInterest::default()
        };
        effects.set(client, ConnInterest { alarm, ..interest(for_server, for_client) });
        effects.set(server, interest(for_client, for_server));
    }
}

impl Engine for Relay {
    type Job = Never;
    type Letter = Never;
    const CONNECTS: bool = true;

    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if self.ends.contains_key(&conn) {
            return;
        }
        self.clients += 1;
        let server = effects.connect(SocketAddr::from(([127, 0, 0, 1], 1)));
        let alarm = self.alarm_after.map(|after| effects.now().instant + after);
        self.ends.insert(conn, End::Client { server, owed: 0, has_ended: false, alarm });
        self.ends.insert(server, End::Server { client: conn });
        self.settle(conn, effects);
    }

    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        if let Some(evicted) = &mut self.evicts {
            match evicted.first() {
                Some(first) => effects.abort(*first),
                None => effects.close(conn, Flow::Close),
            }
            return evicted.push(conn);
        }
        let client = match self.end(conn) {
            Some(End::Client { server, owed, has_ended, alarm }) => {
                if let Some(out) = effects.out(server) {
                    out.extend_from_slice(bytes);
                }
                let owed = owed + bytes.len();
                self.ends.insert(conn, End::Client { server, owed, has_ended, alarm });
                conn
            }
            Some(End::Server { client }) => {
                if let Some(out) = effects.out(client) {
                    out.extend_from_slice(bytes);
                }
                if let Some(End::Client { owed, .. }) = self.ends.get_mut(&client) {
                    *owed -= bytes.len();
                }
                client
            }
            None => return,
        };
        self.settle(client, effects);
    }

    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        match self.end(conn) {
            Some(End::Server { client }) => self.settle(client, effects),
            _ => self.settle(conn, effects),
        }
    }

    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        match self.ends.get_mut(&conn) {
            Some(End::Client { has_ended, .. }) => {
                *has_ended = true;
                self.settle(conn, effects);
            }
            Some(End::Server { .. }) => effects.abort(conn),
            None => {}
        }
    }

    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        match self.ends.remove(&conn) {
            Some(End::Client { server, .. }) => effects.abort(server),
            Some(End::Server { client }) => effects.abort(client),
            None => {}
        }
    }

    fn alarm(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if let Some(End::Client { alarm, .. }) = self.ends.get_mut(&conn) {
            *alarm = None;
            self.rung += 1;
        }
        self.settle(conn, effects);
    }

    fn not_opened(&mut self, _: Conn, why: &io::Error) {
        self.reasons.push(why.to_string());
    }
}

impl Upstreams for Relay {
    fn upstream(&self, conn: Conn) -> Option<usize> {
        matches!(self.ends.get(&conn), Some(End::Server { .. })).then_some(0)
    }
}
