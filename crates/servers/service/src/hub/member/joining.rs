//! A member that waits for the history of its room.

use crate::hub::history::{Asked, Position, RoomHistory};
use std::sync::Arc;

/// The ticket with which a member asks the broker for the history of its room. Its messages have lower ones.
pub(super) const JOINS: u64 = u64::MAX;

/// A member that waits for the history of its room, which the broker has.
#[derive(Debug)]
pub(super) struct Joining {
    pub history: Arc<RoomHistory>,
    /// The position that its client has named.
    pub asked: Option<Asked>,
    /// The position of its own first message that came back meanwhile.
    pub first: Option<Position>,
    /// Its results that wait for the messages: their tickets and positions.
    pub own: Vec<(u64, Position)>,
    /// It takes longer, so results do not wait.
    pub is_late: bool,
}
