//! The peers of the proxy's connections.

use crate::{clients::client::Client, node::upstream::Upstream};
use regatta_engine::Conn;

/// The peer of a connection: a client or a node.
#[derive(Debug)]
pub(super) enum Peer {
    Client(Box<Client>),
    Upstream(Box<Upstream>),
}

impl Peer {
    fn conn(&self) -> Conn {
        match self {
            Peer::Client(client) => client.conn,
            Peer::Upstream(upstream) => upstream.conn,
        }
    }
}

/// The peers of all connections, indexed by connection.
#[derive(Debug, Default)]
pub(super) struct Peers(Vec<Option<Peer>>);

impl Peers {
    /// Removes a peer, so that others are accessible while it is served.
    #[inline]
    pub(super) fn take(&mut self, conn: Conn) -> Option<Peer> {
        self.0.get_mut(conn.index())?.take_if(|peer| peer.conn() == conn)
    }

    #[inline]
    pub(super) fn put(&mut self, conn: Conn, peer: Peer) {
        if self.0.len() <= conn.index() {
            self.0.resize_with(conn.index() + 1, || None);
        }
        self.0[conn.index()] = Some(peer);
    }

    #[inline]
    pub(super) fn client(&mut self, conn: Conn) -> Option<&mut Client> {
        match self.0.get_mut(conn.index()) {
            Some(Some(Peer::Client(client))) if client.conn == conn => Some(client),
            _ => None,
        }
    }

    pub(super) fn peek(&self, conn: Conn) -> Option<&Client> {
        match self.0.get(conn.index()) {
            Some(Some(Peer::Client(client))) if client.conn == conn => Some(client),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn upstream(&mut self, conn: Conn) -> Option<&mut Upstream> {
        match self.0.get_mut(conn.index()) {
            Some(Some(Peer::Upstream(upstream))) if upstream.conn == conn => Some(upstream),
            _ => None,
        }
    }

    /// The node to which a connection leads.
    pub(super) fn node(&self, conn: Conn) -> Option<usize> {
        match self.0.get(conn.index()) {
            Some(Some(Peer::Upstream(upstream))) if upstream.conn == conn => Some(upstream.node),
            _ => None,
        }
    }

    pub(super) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.0.iter().filter_map(|peer| match peer {
            Some(Peer::Upstream(upstream)) => Some(&**upstream),
            _ => None,
        })
    }

    pub(super) fn upstreams_mut(&mut self) -> impl Iterator<Item = &mut Upstream> {
        self.0.iter_mut().filter_map(|peer| match peer {
            Some(Peer::Upstream(upstream)) => Some(&mut **upstream),
            _ => None,
        })
    }

    pub(super) fn clients_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.0.iter_mut().filter_map(|peer| match peer {
            Some(Peer::Client(client)) => Some(&mut **client),
            _ => None,
        })
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = &Client> {
        self.0.iter().filter_map(|peer| match peer {
            Some(Peer::Client(client)) => Some(&**client),
            _ => None,
        })
    }
}
