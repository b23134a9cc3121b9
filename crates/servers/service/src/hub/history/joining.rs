//! A member that waits for the history of its room, which the broker has.

use super::{
    mirror::Wanted,
    position::{Asked, Position},
    room::RoomHistory,
};
use std::{mem, sync::Arc};

/// A member that waits for the history of its room, which the broker has.
#[derive(Debug)]
pub(in super::super) struct Joining {
    pub history: Arc<RoomHistory>,
    /// The position that its client has named.
    pub asked: Option<Asked>,
    /// Its own messages from this ticket on are sent after it has joined.
    from: u64,
    /// The position of the first of those that came back meanwhile.
    first: Option<Position>,
    /// Its results that wait for the messages: their tickets and positions.
    own: Vec<(u64, Position)>,
    /// It takes longer, so results do not wait.
    is_late: bool,
}

impl Joining {
    /// `from`: the tickets of messages that it has sent before are lower.
    pub fn new(history: &Arc<RoomHistory>, asked: Option<Asked>, from: u64) -> Joining {
        let history = Arc::clone(history);
        Joining { history, asked, from, first: None, own: Vec::new(), is_late: false }
    }

    /// What the broker is asked for.
    pub fn wanted(&self) -> Wanted {
        self.asked.map_or(Wanted::Newest(0), Wanted::Behind)
    }

    /// Its own message has this position. Returns whether the result waits until the member has begun.
    pub fn holds(&mut self, ticket: u64, position: Position) -> bool {
        if ticket >= self.from {
            self.first.get_or_insert(position);
        }
        if !self.is_late {
            self.own.push((ticket, position));
        }
        !self.is_late
    }

    /// It takes longer. Returns the results that do not wait for that.
    pub fn is_late(&mut self) -> Vec<(u64, Position)> {
        self.is_late = true;
        self.take_own()
    }

    /// Its results that wait: their tickets and positions.
    pub fn take_own(&mut self) -> Vec<(u64, Position)> {
        mem::take(&mut self.own)
    }

    /// Behind which position the member begins; `None`: the newest one. `at`: the newest one when the broker has answered.
    pub fn begins(&self, at: Option<Position>) -> Option<Asked> {
        // Without a position, it begins before its own first message.
        let before = |first: Position| Position { offset: first.offset - 1, ..first }.asked();
        // The history may go on since the answer was sent.
        self.asked.or(self.first.map(before)).or(at.map(Position::asked))
    }
}
