//! The newest messages of rooms, kept for members that lose their connection and come back.
//!
//! Each message of such a room has an *offset*: its number in the one order of the room, from 1. The room's history
//! has an *epoch*, a random number that says which history the offsets are of. A member that names both when it
//! joins gets everything behind that offset.
//!
//! The history of a room is the only authority on its order, for all cores. A push to a member says that there is a
//! message, and carries it; but a member takes messages only in the order of their offsets ([`follower`]). If pushes
//! of several cores arrive in another order, it reads the missing ones from the history. A member that joins with a
//! position is a member that is behind: it reads the history as fast as its client reads, and ignores pushes until
//! it has caught up. So nothing is queued for it, nothing waits for it, and there is no moment at which it changes
//! over from one source to another.
//!
//! - `position`: offsets and epochs.
//! - `log`: the messages of a room (pure).
//! - `follower`: how far a member is (pure).
//! - `share`: the memory that all histories have, and their counters.
//! - `room`: the history of a room, shared by cores.
//! - `rooms`: the histories of all rooms, also of those without members.

mod follower;
mod log;
mod position;
mod room;
mod rooms;
mod share;

pub(super) use follower::{Follower, Heard, Start};
pub use position::HistoryLimits;
pub(super) use position::{Asked, MalformedPosition, Position};
pub(super) use room::RoomHistory;
pub(super) use rooms::Histories;

#[cfg(test)]
mod tests;
