//! Leasing connections to single clients.

use crate::{
    clients::{
        blocking::Blocking,
        client::{Client, Input, Mode},
        leased::{After, Transaction},
        next::Next,
    },
    node::{loss_reason::Loss, upstream::Use},
    peers::Peer,
    proxy::state::{Fx, Proxy},
};
use regatta_engine::Conn;
use regatta_keyspace::route::{Lease, Place};
use regatta_proto::resp::Command;

/// Why a client gets no connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unleased {
    /// It waits until the node has accepted its user over a new one.
    Opening,
    /// See [`Proxy::unavailable`].
    Unavailable,
}

impl Proxy {
    /// Handles a command that needs a dedicated connection, from a client in plain mode.
    pub(crate) fn lease(
        &mut self,
        client: &mut Client,
        command: &Command<'_>,
        (lease, place): (Lease, Place),
        effects: &mut Fx,
    ) -> Next {
        match (lease, place) {
            (Lease::Subscription, _) => {
                let next = self.subscribe(client, command, effects);
                self.end_subscriptions(client, effects);
                next
            }
            (Lease::Transaction, _) => self.begin(client, command, effects),
            (_, Place::Node(node)) => {
                // This request must not overtake those on other connections.
                if !client.ring.is_empty() {
                    return Next::Again;
                }
                let conn = match self.leased_to(client, node, effects) {
                    Ok(conn) => conn,
                    Err(Unleased::Opening) => return Next::Full,
                    Err(Unleased::Unavailable) => {
                        let why = self.unavailable(client.pool, node);
                        client.fail(&[&why], effects);
                        return Next::Go;
                    }
                };
                let mut transaction = Transaction::default();
                transaction.leases(node, conn);
                transaction.group = self.group;
                transaction.watches = lease == Lease::Watch;
                client.mode = Mode::Leased(Box::new(transaction));
                if lease == Lease::Blocking {
                    return self.send_blocking(client, conn, command, effects);
                }
                self.send(client, conn, command, effects);
                Next::Go
            }
            // Unreachable: `decide` gives such commands a node.
            (Lease::Watch | Lease::Blocking, Place::Open | Place::Parts | Place::AllNodes) => {
                client.fail(&[b"ERR the proxy found no node for this command"], effects);
                Next::Go
            }
        }
    }

    /// Returns a connection to a node for this client alone.
    pub(crate) fn leased_to(
        &mut self,
        client: &mut Client,
        node: usize,
        effects: &mut Fx,
    ) -> Result<Conn, Unleased> {
        let (pool, use_) = (client.pool, Use::Leased(client.conn));
        let mut opening = Vec::new();
        let mut found = None;
        while found.is_none()
            && let Some(conn) = self.pools.get(pool).idle[node].pop()
        {
            if effects.out(conn).is_some()
                && let Some(upstream) = self.peers.upstream(conn)
            {
                if upstream.is_admitted {
                    upstream.use_ = use_;
                    found = Some(conn);
                } else {
                    opening.push(conn);
                }
            }
        }
        let first = opening.first().copied();
        self.pools.get(pool).idle[node].append(&mut opening);
        if let Some(conn) = found {
            return Ok(conn);
        }
        if self.pools.get(pool).key.user.is_none() && self.sentinel.is_none() {
            return self.connect(pool, node, use_, effects).ok_or(Unleased::Unavailable);
        }
        // The node must accept the user, or be a master, before anything is sent. Until then the connection is one of the
        // idle ones.
        let has_room = self.pools.get(pool).has_room(node);
        let conn = match first.filter(|_| !has_room) {
            Some(conn) => conn,
            None => {
                let opened = self.connect(pool, node, Use::Idle, effects);
                let conn = opened.ok_or(Unleased::Unavailable)?;
                self.pools.get(pool).keep(node, conn);
                conn
            }
        };
        self.is_full(client, conn, effects);
        Err(Unleased::Opening)
    }

    /// Ends a lease. The connection is kept for reuse if it is in its initial state and there is room
    /// for it; otherwise it is closed.
    pub(crate) fn give_back(&mut self, node: usize, conn: Conn, is_clean: bool, effects: &mut Fx) {
        let Some(upstream) = self.peers.upstream(conn) else { return };
        // If the node has left its place, its connections are not used again.
        let is_quiet = upstream.waiting.is_empty() && upstream.left.is_none();
        let pool = upstream.pool;
        if is_clean && is_quiet && self.pools.get(pool).keep(node, conn) {
            upstream.use_ = Use::Idle;
        } else if let Some(Peer::Upstream(upstream)) = self.peers.take(conn) {
            effects.abort(upstream.conn);
        }
    }

    /// Records the loss of a leased connection to the node with this name. Later commands that need it fail.
    pub(crate) fn lease_is_lost(&mut self, client: Conn, conn: Conn, loss: Loss, node: String) {
        if let Some(Client { mode: Mode::Leased(transaction), .. }) = self.peers.client(client) {
            transaction.lose(conn, (loss, node));
        }
    }

    /// Continues after all replies have arrived that a client's input waited for.
    pub(crate) fn waited(&mut self, client: &mut Client, effects: &mut Fx) {
        client.input = Input::Read;
        if let Some(pool) = client.selects.take() {
            let before = std::mem::replace(&mut client.pool, pool);
            let unused = if client.last_succeeded {
                before
            } else {
                std::mem::replace(&mut client.pool, before)
            };
            self.leave_pool(unused, effects);
        }
        match &mut client.mode {
            Mode::Plain => {}
            Mode::Leased(transaction) => match transaction.step() {
                After::Kept => {}
                After::Over => client.mode = Mode::Plain,
                After::GivenBack(node, conn, is_clean) => {
                    client.mode = Mode::Plain;
                    self.give_back(node, conn, is_clean, effects);
                }
            },
            Mode::Subscribed(_) => self.end_subscriptions(client, effects),
        }
    }

    /// Ends whatever a client is in the middle of.
    pub(crate) fn end_mode(&mut self, client: &mut Client, effects: &mut Fx) {
        match std::mem::take(&mut client.mode) {
            Mode::Plain => {}
            Mode::Leased(transaction) => {
                if let Some((node, conn)) = transaction.lease() {
                    self.give_back(node, conn, false, effects);
                }
            }
            Mode::Subscribed(subscriptions) => {
                for conn in subscriptions.conns() {
                    if let Some(Peer::Upstream(upstream)) = self.peers.take(conn) {
                        effects.abort(upstream.conn);
                    }
                }
            }
        }
    }
}

impl Client {
    /// The blocking command in flight.
    pub(crate) fn blocking(&self) -> Option<Blocking> {
        match &self.mode {
            Mode::Leased(transaction) => transaction.blocking,
            Mode::Plain | Mode::Subscribed(_) => None,
        }
    }

    /// Returns whether the client chose to wait: with a blocking command, or for messages.
    pub(crate) fn is_blocked(&self) -> bool {
        matches!(self.mode, Mode::Subscribed(_)) || self.blocking().is_some()
    }
}
