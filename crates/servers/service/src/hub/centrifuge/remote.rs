//! A client of a hub with a broker: what it sends there, and what it learns of that.

use super::{
    client::{Client, Phase, Turn},
    codes::Failure,
    pending::{Waiter, What},
    reply::{Answer, write_answer, write_failure},
};
use crate::hub::{broadcast::Broadcast, broker::failure, history::Position};
use regatta_engine::{Flow, Post, RemoteOutcome};
use std::time::Instant;

impl Client {
    /// Whether its hub has a broker.
    pub(super) fn has_broker(&self) -> bool {
        self.settings.broker.is_some()
    }

    /// Sends something to the broker. The command waits for what becomes of it.
    pub(super) fn asks(&mut self, turn: &mut Turn<'_>, waiter: Waiter, push: Broadcast) {
        let room = waiter.room.clone();
        let ticket = self.pending.add(waiter);
        turn.posts.push(Post::Remote(room, push, ticket));
    }

    /// It is known what became of something that it has sent to the broker.
    pub fn on_sent(&mut self, turn: &mut Turn<'_>, ticket: u64, outcome: RemoteOutcome) -> Flow {
        self.post_exits(turn);
        let unread = self.holding.counted(turn.out.len());
        let Some(waiter) = self.pending.get(ticket).cloned() else { return Flow::Continue };
        match waiter.what {
            What::Publish(_) => self.has_sent(turn, (ticket, &waiter), outcome),
            what => {
                self.pending.take(ticket);
                let answer = match what {
                    What::Subscribe(number) => {
                        self.has_waited(turn, (&waiter.room, number), outcome);
                        None
                    }
                    What::History(page, behind) => {
                        Some(self.page(&waiter.room, (page, behind), turn.now, outcome))
                    }
                    What::PresenceStats => Some(self.stats_of_all(&waiter.room, outcome)),
                    _ => Some(self.people_of_all(&waiter.room, outcome)),
                };
                match answer {
                    Some(Ok(answer)) => write_answer(waiter.id, &answer, turn.out),
                    Some(Err(failure)) => write_failure(waiter.id, &failure, turn.out),
                    None => {}
                }
            }
        }
        if self.is_over() {
            return Flow::Close;
        }
        if !self.has_room(turn.out.len(), unread) {
            self.starve(turn.out.len());
            return Flow::Close;
        }
        self.pauses(turn.now, turn.out);
        if self.phase == Phase::Leaving { self.on_drained(turn) } else { Flow::Continue }
    }

    /// It is known what became of its message. The reply follows its own copy.
    fn has_sent(
        &mut self,
        turn: &mut Turn<'_>,
        (ticket, waiter): (u64, &Waiter),
        outcome: RemoteOutcome,
    ) {
        if let Some(why) = failure(outcome) {
            self.pending.take(ticket);
            // A client that tries again might publish it twice.
            let failure = Failure::of_broker(why, outcome != RemoteOutcome::Unknown);
            return write_failure(waiter.id, &failure, turn.out);
        }
        match Position::kept(outcome) {
            Some(position) => self.has_position(ticket, position, turn.out),
            None => self.answers(ticket, turn.out),
        }
    }

    /// Its own message is at this position.
    pub(super) fn has_position(&mut self, ticket: u64, position: Position, out: &mut Vec<u8>) {
        let Some(waiter) = self.pending.get(ticket) else { return };
        let subscription = self.rooms.get_mut(&waiter.room);
        if !subscription.is_some_and(|one| one.holds(ticket, position)) {
            self.answers(ticket, out);
        }
    }

    /// Its message is published.
    pub(super) fn answers(&mut self, ticket: u64, out: &mut Vec<u8>) {
        if let Some(waiter) = self.pending.take(ticket) {
            write_answer(waiter.id, &Answer::Publish {}, out);
        }
    }

    /// Whether more commands may come. Every outcome asks again.
    pub fn wants_input(&self) -> bool {
        let is_busy =
            || self.settings.broker.as_ref().is_some_and(|broker| broker.health.is_busy());
        let is_held_back =
            self.pending.is_publishing() && (self.settings.backlog.memory.is_full() || is_busy());
        !self.pending.is_full() && !is_held_back
    }

    /// Whether it leaves, and gets what was sent to the broker before.
    pub(super) fn settles(&self, now: Instant) -> bool {
        let settling = self.settling.as_ref().filter(|_| self.phase == Phase::Leaving);
        settling.is_some_and(|settling| settling.waits(self.pending.is_publishing(), now))
    }

    /// It leaves, and looks whether something is still on its way.
    pub(super) fn settles_again(&mut self, now: Instant) {
        let Some(broker) = &self.settings.broker else { return };
        let waits = self.pending.is_publishing();
        self.settling.take_if(|settling| !settling.looks_again(&broker.health, waits, now));
    }
}
