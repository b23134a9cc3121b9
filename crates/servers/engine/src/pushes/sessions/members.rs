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
    /// The seats of those that have entered several rooms, by [`Conn::index`].
    entered: HashMap<usize, Vec<Seat>>,
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

    /// Adds a connection to one of its several rooms, unless it is in that.
    pub(super) fn enter(&mut self, conn: Conn, room: RoomName) {
        if self.seat_in(conn, &room).is_none() {
            let all = self.rooms.entry(room.clone()).or_default();
            let seat = Seat { room, place: all.len() as u32 };
            self.entered.entry(conn.index()).or_default().push(seat);
            all.push(conn);
        }
    }

    /// Removes a connection from a room that it has entered.
    pub(super) fn exit(&mut self, conn: Conn, room: &RoomName) {
        let Some(seats) = self.entered.get_mut(&conn.index()) else { return };
        let Some(at) = seats.iter().position(|seat| seat.room == *room) else { return };
        let seat = seats.swap_remove(at);
        if seats.is_empty() {
            self.entered.remove(&conn.index());
        }
        self.remove(&seat);
    }

    /// Removes a connection from all rooms that it has entered, and returns them.
    pub(super) fn exit_all(&mut self, conn: Conn) -> Vec<RoomName> {
        if self.entered.is_empty() {
            return Vec::new();
        }
        let seats = self.entered.remove(&conn.index()).unwrap_or_default();
        seats.iter().for_each(|seat| self.remove(seat));
        seats.into_iter().map(|seat| seat.room).collect()
    }

    /// Removes a connection from its room, and returns the room.
    pub(super) fn leave(&mut self, conn: Conn) -> Option<RoomName> {
        let seat = self.places.get_mut(conn.index()).and_then(Option::take)?;
        self.remove(&seat);
        Some(seat.room)
    }

    fn seat_in(&mut self, conn: Conn, room: &RoomName) -> Option<&mut Seat> {
        let only = self.places.get_mut(conn.index()).and_then(Option::as_mut);
        only.filter(|seat| seat.room == *room).or_else(|| {
            let seats = self.entered.get_mut(&conn.index())?;
            seats.iter_mut().find(|seat| seat.room == *room)
        })
    }

    /// Removes who has this seat from the list of its room. Another connection may get the place.
    fn remove(&mut self, seat: &Seat) {
        let Some(all) = self.rooms.get_mut(&seat.room) else { return };
        all.swap_remove(seat.place as usize);
        let moved = all.get(seat.place as usize).copied();
        if all.is_empty() {
            self.rooms.remove(&seat.room);
        }
        if let Some(moved) = moved.and_then(|moved| self.seat_in(moved, &seat.room)) {
            moved.place = seat.place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn(index: usize) -> Conn {
        Conn::new(index, 0)
    }

    #[test]
    fn a_connection_is_in_several_rooms_beside_others_that_are_in_one() {
        let (mut members, red, blue) =
            (Members::default(), RoomName::of("red"), RoomName::of("blue"));
        for _ in 0..2 {
            members.enter(conn(0), red.clone());
            members.enter(conn(0), blue.clone());
        }
        members.join(conn(1), red.clone());
        members.enter(conn(2), red.clone());
        assert_eq!(members.of(&red), [conn(0), conn(1), conn(2)]);
        members.exit(conn(0), &red);
        // The last one has the place of the first.
        assert_eq!(members.of(&red), [conn(2), conn(1)]);
        members.exit(conn(2), &red);
        members.exit(conn(2), &blue);
        assert_eq!((members.of(&red), members.of(&blue)), (&[conn(1)][..], &[conn(0)][..]));
        assert_eq!(members.leave(conn(1)), Some(red));
        assert_eq!(members.exit_all(conn(0)), std::slice::from_ref(&blue));
        assert_eq!(members.exit_all(conn(0)), []);
        assert!(members.rooms.is_empty() && members.entered.is_empty());
    }
}
