//! A client in one room.

use super::{codes::Unsubscribed, reply::Pushes};
use crate::hub::{
    access::Rights,
    broadcast::Broadcast,
    census::Presence,
    history::{Follower, Step},
    holding::{COUNTED, Holding},
    message::Change,
    rooms::RoomTerms,
};
use regatta_engine::Memory;
use std::{sync::Arc, time::Instant};

/// Bytes of pending output from which on messages wait.
pub(super) const FULL: usize = 64 * 1024;

/// A client in one room.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Unique among the subscriptions of its connection.
    pub number: u64,
    /// Dropping it leaves the room.
    pub presence: Presence,
    /// What holds in the room.
    pub terms: Arc<RoomTerms>,
    pub rights: Rights,
    /// Whether it is notified who joins and leaves.
    pub join_leave: bool,
    /// When its own token expires.
    pub expires_at: Option<Instant>,
    /// How far it is in the history of the room, if that is kept.
    pub follower: Option<Box<Follower>>,
    /// It is in the list of those that get the next messages when there is room.
    pub waits: bool,
    pub pushes: Pushes,
}

/// Where messages are written.
pub(super) struct Sink<'a> {
    pub out: &'a mut Vec<u8>,
    pub holding: &'a mut Holding,
    /// What the client holds except output, in bytes.
    pub own: usize,
    /// It stops where there is no memory for a message.
    pub fits: bool,
}

/// How far a subscription has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It has all messages.
    All,
    /// There is no room for the others yet.
    Behind,
    /// Some are gone.
    Gap,
}

impl Subscription {
    /// Whether the history has messages for it that are not in its output.
    pub fn is_behind(&self) -> bool {
        self.follower.as_ref().is_some_and(|follower| follower.is_behind())
    }

    /// Writes what follows in the history. `push`: a message that has just come. This, and the reply to the command that
    /// began the subscription, are the only places that write messages of a history.
    pub fn catch_up(&mut self, push: Option<&Broadcast>, sink: &mut Sink<'_>) -> Progress {
        let Some(follower) = &mut self.follower else { return Progress::All };
        while let Some(step) = follower.next(push) {
            let pending = sink.holding.pending(sink.out.len());
            if pending >= FULL {
                return Progress::Behind;
            }
            let Step::Message(message) = &step else {
                follower.took(&step);
                return Progress::Gap;
            };
            let length = self.pushes.length(message.payload().len());
            let is_short = pending + length < COUNTED;
            if sink.fits && !is_short && !sink.holding.fits(sink.own, sink.out.len() + length) {
                return Progress::Behind;
            }
            self.pushes.write(message, sink.out);
            follower.took(&step);
        }
        Progress::All
    }

    /// Ends it. Returns what the others in the room receive.
    pub fn end(self, memory: &Arc<Memory>) -> Option<Broadcast> {
        self.terms.presence.then(|| {
            let left = self.presence.others();
            Broadcast::presence(self.presence.note(Change::Left), left, memory)
        })
    }

    /// Writes that the hub has ended it.
    pub fn write_end(&self, why: Unsubscribed, out: &mut Vec<u8>) {
        self.pushes.write_end(why, out);
    }
}
