//! The places of a server: how many connections may be open.

use regatta_service::admission::Guest;
use regatta_sys::shared::SharedCounter;
use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// The connection limit of a server, shared by all its threads and processes. Cores that share a
/// port get unequal shares of the connections, because SO_REUSEPORT uses a hash. With a fixed limit
/// per core, clients would wait although other cores have room.
#[derive(Clone)]
pub(crate) struct Places {
    taken: Arc<SharedCounter>,
    most: usize,
}

impl Places {
    /// Creates `most` places.
    pub(crate) fn new(most: usize) -> io::Result<Self> {
        Ok(Places { taken: Arc::new(SharedCounter::new()?), most })
    }

    /// Takes a place for a connection, if there is one.
    pub(crate) fn take(&self) -> Option<Place> {
        let before = self.taken.fetch_add(1, Relaxed);
        let place = Place { _taken: Taken(Arc::clone(&self.taken)), _guest: None };
        (before < self.most).then_some(place)
    }

    /// Whether the limit is reached.
    pub(crate) fn are_full(&self) -> bool {
        self.taken.load(Relaxed) >= self.most
    }
}

/// The place of an open connection. It is released on drop.
pub(crate) struct Place {
    _taken: Taken,
    /// It is counted among the clients of its address.
    _guest: Option<Guest>,
}

impl Place {
    /// Keeps what the connection counts for until the place is released.
    pub(crate) fn of(self, guest: Guest) -> Place {
        Place { _guest: Some(guest), ..self }
    }
}

struct Taken(Arc<SharedCounter>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_places_as_connections_are_permitted() {
        let places = Places::new(2).unwrap();
        let first = places.take().unwrap();
        assert!(!places.are_full());
        let _second = places.take().unwrap();
        assert!(places.are_full() && places.take().is_none());
        drop(first);
        assert!(places.take().is_some(), "those that found no place took none");
    }
}
