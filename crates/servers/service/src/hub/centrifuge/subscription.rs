//! A client in one room.

use super::{
    codes::{Failure, Unsubscribed},
    opening::Opening,
    pending::Pending,
    reply::{Answer, Pushes, write_answer, write_failure},
};
use crate::hub::{
    access::Rights,
    broadcast::Broadcast,
    census::Presence,
    history::{Follower, Position, Step},
    holding::{COUNTED, FULL, Holding},
    message::{Change, Note},
    rooms::RoomTerms,
    settings::Settings,
};
use regatta_engine::Memory;
use std::{sync::Arc, time::Instant};

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
    /// With a broker: it is not notified yet. That begins with its own join, when a member of the hub's own protocol gets the
    /// list of the members.
    pub awaits_list: bool,
    /// When its own token expires.
    pub expires_at: Option<Instant>,
    /// How far it is in the history of the room, if that is kept.
    pub follower: Option<Box<Follower>>,
    /// It waits for the history of the room, which the broker has. Its command is not answered yet.
    pub opening: Option<Box<Opening>>,
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
    /// Commands that wait, maybe for one of these messages.
    pub pending: &'a mut Pending,
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
            while let Some(waiting) = follower.answerable() {
                if let Some(waiter) = sink.pending.take(waiting.ticket) {
                    write_answer(waiter.id, &Answer::Publish {}, sink.out);
                }
            }
        }
        Progress::All
    }

    /// A push about the members of the room has arrived. Returns the push for this client, if it gets one.
    pub fn hears_of_members(
        &mut self,
        push: &Broadcast,
        memory: &Arc<Memory>,
    ) -> Option<Broadcast> {
        let is_open = self.join_leave && self.opening.is_none();
        let place = self.presence.place();
        if !self.awaits_list {
            // That it leaves itself is not for it.
            let is_for_it = |note: &Note| note.info.is_some() && note.number != place;
            let are_known = push.all_notes().iter().any(is_for_it);
            return (is_open && are_known).then(|| push.clone());
        }
        let is_list = push.of_presence(place, true) == Some(true);
        self.awaits_list = !is_list;
        (is_open && is_list).then(|| self.own_join(memory))
    }

    /// What the client gets when its own join is the last one that it need not hear of.
    pub fn own_join(&self, memory: &Arc<Memory>) -> Broadcast {
        Broadcast::notes(vec![self.presence.note(Change::Joined)], memory)
    }

    /// An own message of the client is at this position. Returns whether the reply waits until that is in the output.
    pub fn holds(&mut self, ticket: u64, position: Position) -> bool {
        match (&mut self.opening, &mut self.follower) {
            (Some(opening), _) => opening.joining.holds(ticket, position),
            (None, Some(follower)) => follower.holds(ticket, position),
            (None, None) => false,
        }
    }

    /// It ends. Returns the tickets of own messages whose replies have waited.
    pub fn take_results(&mut self) -> Vec<u64> {
        let of_opening = self.opening.as_mut().map(|opening| opening.joining.take_own());
        let of_follower = self.follower.as_mut().map(|follower| follower.take_results());
        let of_follower = of_follower.into_iter().flatten().map(|waiting| waiting.ticket);
        of_opening.into_iter().flatten().map(|(ticket, _)| ticket).chain(of_follower).collect()
    }

    /// Ends it. Returns what the others in the room receive. With a broker, the connection to that notifies them.
    pub fn end(self, settings: &Settings) -> Option<Broadcast> {
        let is_notified_here = self.terms.presence && settings.broker.is_none();
        is_notified_here.then(|| self.presence.left(&settings.backlog.memory))
    }

    /// Writes that the hub has ended it; if it has not begun, in reply to its command.
    pub fn write_end(&self, why: Unsubscribed, out: &mut Vec<u8>) {
        match &self.opening {
            Some(opening) if why == Unsubscribed::EXPIRED => {
                write_failure(opening.id, &Failure::TOKEN_EXPIRED, out);
            }
            Some(opening) => write_failure(opening.id, &Failure::ENDED, out),
            None => self.pushes.write_end(why, out),
        }
    }
}
