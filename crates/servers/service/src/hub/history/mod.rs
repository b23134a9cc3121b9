//! The newest messages of rooms, kept for members that lose their connection and come back.
//!
//! Each message of such a room has an *offset*: its number in the one order of the room, from 1. The room's history
//! has an *epoch*, a random number that says which history the offsets are of. A member that names both when it
//! joins gets everything behind that offset.
//!
//! The history of a room is the only authority on its order, for all cores, and nothing is queued for its members: each
//! is at a position ([`Follower`]), and takes what is behind it from the history, as fast as its client reads. A push
//! says that there is a message, and carries it, so that a member that has all before it needs no lock. If pushes of
//! several cores arrive in another order, or a member is slow, or has just joined with a position, it reads the
//! history. There is no moment at which it changes over from one source to another. What the history no longer has is
//! a gap, of which the member is notified in place of the messages.
//!
//! - `position`: offsets and epochs.
//! - `log`: the messages of a room (pure).
//! - `share`: the memory that all histories have, and their counters.
//! - `room`: the history of a room, shared by cores.
//! - `follower`: how far a member is.
//! - `joining`: a member that waits for a history which the broker has.
//! - `copy`: a history that is a copy of one at the broker (several hubs), and `mirror`: what it knows of that.
//! - `rooms`: the histories of all rooms, also of those without members.

mod copy;
mod follower;
mod joining;
mod log;
mod mirror;
mod position;
mod room;
mod rooms;
mod share;

pub(super) use follower::{Follower, Start, Step, Waiting};
pub(super) use joining::Joining;
pub(super) use mirror::{Asker, Heard, Learned, Seen, Span, Wanted};
pub use position::HistoryLimits;
pub(super) use position::{Asked, Epoch, MalformedPosition, Position};
pub(super) use room::{Page, RoomHistory};
pub(super) use rooms::Histories;
