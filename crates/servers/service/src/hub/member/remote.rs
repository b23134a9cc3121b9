//! A member of a hub with a broker, and a backend of one: what they send there, and what they learn of it.

use super::{Member, sender::Sender};
use crate::hub::{
    api::Backend,
    broadcast::Broadcast,
    broker::{failure, write_not_published},
    history::{Asker, Position},
    state::State,
};
use regatta_engine::{Context, Flow, Post, RemoteOutcome, Session};
use regatta_proto::websocket::CloseCode;
use std::time::Instant;

/// The ticket with which a member asks the broker for the history of its room. Its messages have lower ones.
pub(super) const JOINS: u64 = u64::MAX;

impl Sender<'_> {
    /// Sends a message to the broker. Its sender gets it as all others do, when it comes back.
    pub(super) fn send(&mut self, payload: &str) {
        let Some(presence) = self.presence else { return };
        let push = Broadcast::outgoing(payload, false, &self.settings.backlog.memory);
        self.results.add(*self.next_ticket, payload);
        self.posts.push(Post::Remote(presence.room().clone(), push, *self.next_ticket));
        *self.next_ticket += 1;
    }
}

impl Member {
    /// It is known what became of a message that it has sent to the broker.
    pub(super) fn learns(
        &mut self,
        context: &mut Context<'_, Self>,
        ticket: u64,
        outcome: RemoteOutcome,
    ) -> Flow {
        if let Some(awaited) = &mut self.awaited {
            return if awaited.learns(ticket, outcome) {
                self.answer_backend(context)
            } else {
                Flow::Continue
            };
        }
        if ticket == JOINS {
            return self.joins(context, outcome);
        }
        match (failure(outcome), Position::kept(outcome)) {
            (Some(why), _) => {
                if let Some(payload) = self.results.take(ticket) {
                    write_not_published(&payload, why, context.out);
                }
            }
            (None, Some(position)) => self.has_published(ticket, position, context.out),
            (None, None) => self.answer(ticket, 0, context.out),
        }
        if self.holding.is_counted() {
            // The payload is freed.
            self.has_room(context.out.len(), 0);
        }
        match self.state {
            State::Leaving { .. } => self.on_drained(context),
            _ => Flow::Continue,
        }
    }

    /// Its own message has this position. Its result follows the message.
    fn has_published(&mut self, ticket: u64, position: Position, out: &mut Vec<u8>) {
        if self.joining.as_mut().is_some_and(|joining| joining.holds(ticket, position)) {
            return;
        }
        if !self.follower.as_mut().is_some_and(|follower| follower.holds(ticket, position)) {
            self.answer(ticket, 0, out);
        }
    }

    /// It has waited for the history of its room.
    fn joins(&mut self, context: &mut Context<'_, Self>, outcome: RemoteOutcome) -> Flow {
        if outcome == RemoteOutcome::Unknown {
            return self.waits_longer(context);
        }
        let Some(mut joining) = self.joining.take() else { return Flow::Continue };
        if failure(outcome).is_some() {
            let why = "the broker cannot be asked for the history of the room now";
            self.close(context, CloseCode::TRY_AGAIN_LATER, why);
            return Flow::Close;
        }
        let begins = (joining.begins(Position::kept(outcome)), joining.asked.is_some());
        self.begin(&joining.history, begins, context.now, context.out);
        if let Some(follower) = &mut self.follower {
            follower.looks();
        }
        self.catch_up(None, context.out, true);
        for (ticket, position) in joining.take_own() {
            self.has_published(ticket, position, context.out);
        }
        match self.state {
            State::Leaving { .. } => self.on_drained(context),
            _ => Flow::Continue,
        }
    }

    /// The broker does not answer now: results do not wait for that, and it is asked again.
    fn waits_longer(&mut self, context: &mut Context<'_, Self>) -> Flow {
        let Some(joining) = &mut self.joining else { return Flow::Continue };
        let (wanted, own) = (joining.wanted(), joining.is_late());
        for (ticket, _) in own {
            self.answer(ticket, 0, context.out);
        }
        self.asks(wanted, Asker::Waiting, context);
        Flow::Continue
    }

    /// Whether messages of this hub wait until those at the broker have come back.
    pub(super) fn is_broker_busy(&self) -> bool {
        self.settings.broker.as_ref().is_some_and(|broker| broker.health.is_busy())
    }

    /// Whether it leaves, and waits for what was sent to the broker before.
    pub(super) fn settles(&self, now: Instant) -> bool {
        let is_leaving = matches!(self.state, State::Leaving { .. });
        let settling = self.settling.as_ref().filter(|_| is_leaving);
        settling.is_some_and(|settling| settling.waits(!self.results.is_empty(), now))
    }

    /// It leaves, and looks whether something is still on its way.
    pub(super) fn settles_again(&mut self, now: Instant) {
        let Some(broker) = &self.settings.broker else { return };
        let waits = !self.results.is_empty();
        self.settling.take_if(|settling| !settling.looks_again(&broker.health, waits, now));
    }

    /// Notes that no request follows the one that waits for the broker. Returns false if none waits.
    pub(super) fn awaits_last(&mut self) -> bool {
        let Some(awaited) = &mut self.awaited else { return false };
        awaited.is_last();
        true
    }

    /// Answers the request that has waited, and handles those behind it.
    fn answer_backend(&mut self, context: &mut Context<'_, Self>) -> Flow {
        let (Some(awaited), Some(api)) = (self.awaited.take(), self.settings.api.clone()) else {
            return Flow::Continue;
        };
        let Context { now, out, posts, .. } = context;
        let mut backend = Backend::new(&api, &self.settings, &self.census, *now, posts);
        let flow = backend.answer_awaited(*awaited, out);
        if flow != Flow::Continue {
            return flow;
        }
        self.on_bytes(context, &mut [])
    }
}
