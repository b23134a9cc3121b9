//! Which sessions are in which room.

use crate::{Conn, RoomName};
use std::collections::HashMap;

/// The members of the rooms: the sessions that receive posts.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// The members of each room that is not empty.
    pub(super) rooms: HashMap<RoomName, Vec<Conn>>,
    /// The seat of each member, indexed by [`Conn::index`].
    places: Vec<Option<Seat>>,
}

/// The room of a member, and its index in the room's list.
#[derive(Clone, Debug)]
struct Seat {
    room: RoomName,
    place: u32,
}

impl Members {
    pub(super) fn of(&self, room: &RoomName) -> &[Conn] {
        self.rooms.get(room).map_or(&[], Vec::as_slice)
    }

    fn seat(&self, conn: Conn) -> Option<&Seat> {
        self.places.get(conn.index()).and_then(Option::as_ref)
    }

    pub(super) fn has(&self, conn: Conn) -> bool {
        self.seat(conn).is_some()
    }

    /// The room of a connection; the lobby if it is in none.
    pub(super) fn room(&self, conn: Conn) -> RoomName {
        self.seat(conn).map_or(RoomName::LOBBY, |seat| seat.room.clone())
    }

    pub(super) fn join(&mut self, conn: Conn, room: RoomName) {
        let index = conn.index();
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        if self.places[index].is_none() {
            let all = self.rooms.entry(room.clone()).or_default();
            self.places[index] = Some(Seat { room, place: all.len() as u32 });
            all.push(conn);
        }
    }

    /// Removes a connection from its room, and returns the room.
    pub(super) fn leave(&mut self, conn: Conn) -> Option<RoomName> {
        let Seat { room, place } = self.places.get_mut(conn.index()).and_then(Option::take)?;
        let all = self.rooms.get_mut(&room)?;
        all.swap_remove(place as usize);
        if let Some(seat) =
            all.get(place as usize).and_then(|moved| self.places[moved.index()].as_mut())
        {
            seat.place = place;
        }
        if all.is_empty() {
            self.rooms.remove(&room);
        }
        Some(room)
    }
}
