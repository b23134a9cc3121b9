//! The sockets of a core, by connection.

use crate::host::Place;
use regatta_engine::{Conn, SocketProbe};
use regatta_sys::{net, queue};
use std::os::fd::AsFd;

/// The driver's data of a connection: its socket, its place within the connection limit, and the
/// driver's own state.
pub(crate) struct Slot<F, T> {
    name: u64,
    pub(crate) fd: F,
    _place: Option<Place>,
    pub(crate) driver: T,
}

/// The sockets.
pub(crate) struct Sockets<F, T>(Vec<Option<Slot<F, T>>>);

impl<F, T> Sockets<F, T> {
    pub(crate) fn new() -> Self {
        Sockets(Vec::new())
    }

    /// Adds a socket. Clients have a `place`.
    pub(crate) fn insert(&mut self, conn: Conn, fd: F, place: Option<Place>, driver: T) {
        if self.0.len() <= conn.index() {
            self.0.resize_with(conn.index() + 1, || None);
        }
        let slot = Slot { name: conn.to_bits(), fd, _place: place, driver };
        self.0[conn.index()] = Some(slot);
    }

    #[inline]
    pub(crate) fn get(&self, conn: Conn) -> Option<&Slot<F, T>> {
        self.0.get(conn.index())?.as_ref().filter(|slot| slot.name == conn.to_bits())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, conn: Conn) -> Option<&mut Slot<F, T>> {
        self.0.get_mut(conn.index())?.as_mut().filter(|slot| slot.name == conn.to_bits())
    }

    /// Returns the connection with this index.
    pub(crate) fn at(&self, place: u32) -> Option<Conn> {
        let slot = self.0.get(place as usize)?.as_ref()?;
        Some(Conn::from_bits(slot.name))
    }

    /// Returns all connections.
    pub(crate) fn names(&self) -> Vec<Conn> {
        self.0.iter().flatten().map(|slot| Conn::from_bits(slot.name)).collect()
    }

    /// Whether there are no sockets.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    pub(crate) fn remove(&mut self, conn: Conn) -> Option<Slot<F, T>> {
        self.get(conn)?;
        self.0[conn.index()].take()
    }
}

impl<F: AsFd, T> SocketProbe for Sockets<F, T> {
    fn unacknowledged(&self, conn: Conn) -> usize {
        self.get(conn).and_then(|slot| queue::unacknowledged(&slot.fd).ok()).unwrap_or(0)
    }

    fn is_readable(&self, conn: Conn) -> bool {
        self.get(conn).is_some_and(|slot| net::is_readable(&slot.fd))
    }

    fn is_gone(&self, conn: Conn) -> bool {
        self.get(conn).is_some_and(|slot| net::is_gone(&slot.fd))
    }

    fn has_ended(&self, conn: Conn) -> bool {
        self.get(conn).is_some_and(|slot| net::has_ended(&slot.fd))
    }
}
