//! All connections of the engine, found by their outer and by their inner end.

use super::connection::TlsConn;
use regatta_engine::Conn;

#[derive(Debug, Default)]
pub(super) struct Table {
    /// By the index of the outer connection.
    conns: Vec<Option<Box<TlsConn>>>,
    /// The inner and the outer connection, by the index of the inner one.
    outer: Vec<Option<(Conn, Conn)>>,
}

impl Table {
    /// Removes a connection, so that the others are accessible while it is served.
    pub(super) fn take(&mut self, outer: Conn) -> Option<Box<TlsConn>> {
        self.conns.get_mut(outer.index())?.take_if(|conn| conn.outer == outer)
    }

    /// The same, by its inner connection.
    pub(super) fn take_inner(&mut self, inner: Conn) -> Option<Box<TlsConn>> {
        let (known, outer) = (*self.outer.get(inner.index())?)?;
        if known == inner { self.take(outer) } else { None }
    }

    pub(super) fn put(&mut self, conn: Box<TlsConn>) {
        let index = conn.outer.index();
        if self.conns.len() <= index {
            self.conns.resize_with(index + 1, || None);
        }
        self.conns[index] = Some(conn);
    }

    /// Notes the inner end of an outer connection.
    pub(super) fn link(&mut self, inner: Conn, outer: Conn) {
        if self.outer.len() <= inner.index() {
            self.outer.resize(inner.index() + 1, None);
        }
        self.outer[inner.index()] = Some((inner, outer));
    }

    /// Forgets an inner end.
    pub(super) fn unlink(&mut self, inner: Conn) {
        if let Some(place) = self.outer.get_mut(inner.index()) {
            place.take_if(|(known, _)| *known == inner);
        }
    }
}
