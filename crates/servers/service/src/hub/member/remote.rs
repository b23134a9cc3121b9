//! A member of a hub with a broker, and a backend of one: what they send there, and what they learn of it.

use super::{
    Member, SETTLE,
    joining::{JOINS, Joining},
    sender::Sender,
};
use crate::hub::{
    api::Backend,
    broadcast::Broadcast,
    broker::{failure, write_not_published},
    history::{Asker, Epoch, Position, Waiting},
    state::State,
};
use regatta_engine::{Context, Flow, Post, RemoteOutcome, Session};
use regatta_proto::websocket::CloseCode;
use std::{mem, time::Instant};

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
        match (failure(outcome), outcome) {
            (Some(why), _) => {
                if let Some(payload) = self.results.take(ticket) {
                    write_not_published(&payload, why, context.out);
                }
            }
            (None, RemoteOutcome::Kept { epoch, offset }) => {
                self.has_published(ticket, Position { epoch: Epoch(epoch), offset }, context.out);
            }
            (None, _) => self.answer(ticket, 0, context.out),
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
        if let Some(joining) = &mut self.joining {
            joining.first.get_or_insert(position);
            if joining.is_late {
                self.answer(ticket, 0, out);
            } else {
                joining.own.push((ticket, position));
            }
            return;
        }
        let waiting = Waiting { offset: position.offset, ticket, members: 0 };
        let waits = self
            .follower
            .as_mut()
            .is_some_and(|follower| follower.will_have(position) && !follower.may_answer(waiting));
        if !waits {
            self.answer(ticket, 0, out);
        }
    }

    /// It has waited for the history of its room.
    fn joins(&mut self, context: &mut Context<'_, Self>, outcome: RemoteOutcome) -> Flow {
        if outcome == RemoteOutcome::Unknown {
            return self.waits_longer(context);
        }
        let Some(joining) = self.joining.take() else { return Flow::Continue };
        if failure(outcome).is_some() {
            let why = "the broker cannot be asked for the history of the room now";
            self.close(context, CloseCode::TRY_AGAIN_LATER, why);
            return Flow::Close;
        }
        let Joining { history, asked, first, own, .. } = *joining;
        // Without a position, it begins before its own first message.
        let before = |first: Position| Position { offset: first.offset - 1, ..first }.asked();
        let own_first = first.map(before);
        // The history may have gone on since this was sent.
        let was_at = match outcome {
            RemoteOutcome::Kept { epoch, offset } => Some(Position { epoch: Epoch(epoch), offset }),
            _ => None,
        };
        let was_at = was_at.filter(|at| *at != history.newest()).map(Position::asked);
        let begins = asked.or(own_first).or(was_at);
        self.begin(&history, (begins, asked.is_some()), context.now, context.out);
        if let Some(follower) = &mut self.follower {
            follower.looks();
        }
        self.catch_up(None, context.out, true);
        for (ticket, position) in own {
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
        joining.is_late = true;
        let (asked, own) = (joining.asked, mem::take(&mut joining.own));
        for (ticket, _) in own {
            self.answer(ticket, 0, context.out);
        }
        self.asks(asked, Asker::Waiting, context);
        Flow::Continue
    }

    /// Whether messages of this hub wait until those at the broker have come back.
    pub(super) fn is_broker_busy(&self) -> bool {
        self.settings.broker.as_ref().is_some_and(|broker| broker.health.is_busy())
    }

    /// Whether it leaves, and waits for what was sent to the broker before.
    pub(super) fn settles(&self) -> bool {
        self.settles_until.is_some()
            && self.pings_at.is_some()
            && matches!(self.state, State::Leaving { .. })
    }

    /// It leaves: waits until it has its own results, which the connection to the broker promises; and for a while for
    /// the messages of others.
    pub(super) fn settles_again(&mut self, now: Instant) {
        let health = self.settings.broker.as_ref().map(|broker| &broker.health);
        let others = health.is_some_and(|health| health.has_awaited());
        let waits_for_others = others && self.settles_until.is_some_and(|until| now < until);
        let waits = !self.results.is_empty() || waits_for_others;
        self.pings_at = waits.then(|| now + SETTLE);
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
