//! How many members and rooms there may be, and why a member may not enter.

use crate::hub::history::HistoryLimits;
use std::num::NonZeroU32;

/// Maximum numbers of members and rooms.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Members of all rooms together.
    pub members: usize,
    /// Members of one room.
    pub members_of_room: usize,
    /// Rooms that have members.
    pub rooms: usize,
    /// Messages of one member, per second; `None`: any number, as below.
    pub messages_of_member: Option<NonZeroU32>,
    /// Broadcasts of the members of one room, per second; on `cluster`, of those of one process.
    pub broadcasts_of_room: Option<NonZeroU32>,
    /// Members that join, per second; on `cluster`, in each process.
    pub joins: Option<NonZeroU32>,
    /// How much is kept of the messages of a room.
    pub history: HistoryLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            members: usize::MAX,
            members_of_room: usize::MAX,
            rooms: usize::MAX,
            messages_of_member: None,
            broadcasts_of_room: None,
            joins: None,
            history: HistoryLimits::NONE,
        }
    }
}

/// Why a member may not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hub) enum Full {
    /// The hub has as many members as it may have.
    Hub,
    /// The room has.
    Room,
    /// There are as many rooms as there may be.
    Rooms,
    /// As many have joined in the last second as may.
    Joins,
}

impl Full {
    /// The reason in one word, for logs.
    pub fn reason(self) -> &'static str {
        match self {
            Full::Hub => "max_members",
            Full::Room => "max_room_members",
            Full::Rooms => "max_rooms",
            Full::Joins => "join_rate",
        }
    }

    /// The text of the error reply.
    pub fn why(self) -> &'static str {
        match self {
            Full::Hub => "The hub is full. Try again later.",
            Full::Room => "This room is full. Try again later.",
            Full::Joins => "Too many clients join at this moment. Try again later.",
            Full::Rooms => "There are too many rooms. Try again later, or enter one of them.",
        }
    }
}
