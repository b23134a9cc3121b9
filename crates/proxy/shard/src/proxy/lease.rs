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
                let Some(conn) = self.leased_to(client, node, effects) else {
                    client.fail(&[&self.down(node)], effects);
                    return Next::Go;
                };
                let mut transaction = Transaction::default();
                transaction.leases(node, conn);
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

    /// Returns a connection to a node for this client alone. `None` if the node is down.
    pub(crate) fn leased_to(
        &mut self,
        client: &Client,
        node: usize,
        effects: &mut Fx,
    ) -> Option<Conn> {
        let use_ = Use::Leased(client.conn);
        while let Some(conn) = self.pools.get(client.pool).idle[node].pop() {
            if effects.out(conn).is_some()
                && let Some(upstream) = self.peers.upstream(conn)
            {
                upstream.use_ = use_;
                return Some(conn);
            }
        }
        self.connect(client.pool, node, use_, effects)
    }

    /// Ends a lease. The connection is kept for reuse if it is in its initial state and there is room
    /// for it; otherwise it is closed.
    pub(crate) fn give_back(&mut self, node: usize, conn: Conn, is_clean: bool, effects: &mut Fx) {
        let Some(upstream) = self.peers.upstream(conn) else { return };
        let (pool, is_quiet) = (upstream.pool, upstream.waiting.is_empty());
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
