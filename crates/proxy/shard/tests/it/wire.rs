//! A connection: the state of the kernel and the network.

use super::{client::Client, node::Session, pest::Pest};
use regatta_engine::{Conn, SocketProbe};
use std::collections::BTreeMap;

/// A connection between the proxy and its peer.
pub struct Wire {
    pub end: End,
    /// Bytes in flight to the proxy, and from it.
    pub to_proxy: Vec<u8>,
    pub from_proxy: Vec<u8>,
    /// The peer has closed its sending side.
    pub has_ended: bool,
    /// The proxy has been notified of that.
    pub end_is_known: bool,
    /// The connection was reset.
    pub is_reset: bool,
    /// The proxy has closed its sending side.
    pub is_finished: bool,
}

pub enum End {
    Client(Client),
    Pest(Pest),
    /// The node, and whether the connection is open.
    Node(usize, bool, Session),
}

impl Wire {
    pub fn new(end: End) -> Self {
        Wire {
            end,
            to_proxy: Vec::new(),
            from_proxy: Vec::new(),
            has_ended: false,
            end_is_known: false,
            is_reset: false,
            is_finished: false,
        }
    }

    pub fn is_node(&self) -> bool {
        matches!(self.end, End::Node(..))
    }
}

/// What the kernel would report.
pub struct Kernel<'w>(pub &'w BTreeMap<Conn, Wire>);

impl SocketProbe for Kernel<'_> {
    fn unacknowledged(&self, conn: Conn) -> usize {
        self.0.get(&conn).map_or(0, |wire| if wire.is_reset { 0 } else { wire.from_proxy.len() })
    }

    fn is_readable(&self, conn: Conn) -> bool {
        self.0.get(&conn).is_some_and(|wire| !wire.to_proxy.is_empty())
    }

    fn is_gone(&self, conn: Conn) -> bool {
        self.0.get(&conn).is_none_or(|wire| wire.is_reset || wire.has_ended && wire.is_finished)
    }

    fn has_ended(&self, conn: Conn) -> bool {
        self.0.get(&conn).is_none_or(|wire| wire.is_reset || wire.has_ended)
    }
}
