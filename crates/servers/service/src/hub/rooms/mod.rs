//! Rooms with options of their own: for which rooms a rule is, and what holds in a room.

mod pattern;
mod rule;
mod terms;

pub use pattern::{InvalidPattern, RoomPattern};
pub use rule::{Publish, RoomRule};
pub(super) use terms::{Plan, RoomTerms};
