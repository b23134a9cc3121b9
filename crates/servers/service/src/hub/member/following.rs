//! A member of a room with a history: what it gets, and when.

use super::{Member, remote::JOINS};
use crate::hub::{
    broadcast::Broadcast,
    broker::write_published,
    history::{Asked, Asker, Follower, Joining, RoomHistory, Start, Step, Waiting, Wanted},
    holding::{COUNTED, FULL},
    message::{write_gap, write_position, write_result},
};
use regatta_engine::{Context, Now, Post, PushOutcome};
use std::sync::Arc;

impl Member {
    /// Begins at the position that its client names, if the history of its room is kept.
    pub(super) fn start_following(
        &mut self,
        history: Option<&Arc<RoomHistory>>,
        asked: Option<Asked>,
        context: &mut Context<'_, Self>,
    ) {
        match history {
            None if asked.is_some() => write_gap(None, context.out),
            None => {}
            Some(history) if self.settings.broker.is_some() => {
                // The broker is asked before the member can send anything.
                let joining = self.joining.insert(Box::new(Joining::new(history, asked, 0)));
                let wanted = joining.wanted();
                self.asks(wanted, Asker::Member, context);
            }
            Some(history) => {
                self.begin(history, (asked, asked.is_some()), context.now, context.out)
            }
        }
    }

    /// Asks the broker for what follows its position.
    pub(super) fn asks(&self, wanted: Wanted, asker: Asker, context: &mut Context<'_, Self>) {
        if let Some(presence) = &self.presence {
            let question = Broadcast::question(wanted, asker);
            context.post(Post::Remote(presence.room().clone(), question, JOINS));
        }
    }

    /// Begins in a history. `asked`: the position that it has, and whether its client has named that.
    pub(super) fn begin(
        &mut self,
        history: &Arc<RoomHistory>,
        (asked, is_named): (Option<Asked>, bool),
        now: Now,
        out: &mut Vec<u8>,
    ) {
        let join = if is_named { Follower::join } else { Follower::begin };
        let (follower, Start { position, has_gap }) = join(history, asked, now.instant);
        if has_gap {
            write_gap(Some(position), out);
        } else {
            write_position(position, is_named, out);
        }
        self.follower = Some(Box::new(follower));
    }

    /// Whether the history has messages for it that are not in its output.
    pub(super) fn is_behind(&self) -> bool {
        self.follower.as_ref().is_some_and(|follower| follower.is_behind())
    }

    /// Hears of a message of the history.
    pub(super) fn follow(&mut self, push: &Broadcast, now: Now, out: &mut Vec<u8>) -> PushOutcome {
        let Some(follower) = &mut self.follower else { return PushOutcome::Missed };
        if push.is_gap() {
            follower.looks();
        } else if !follower.hears(push) {
            return PushOutcome::Missed;
        }
        self.catch_up(Some(push), out, true);
        self.pauses(now, out);
        self.census.queued(push)
    }

    /// Appends what follows in the history, until much output is pending. This is the only place that writes messages
    /// of a history. `push`: a message that has just come. `fits`: it stops where there is no memory for a message.
    pub(super) fn catch_up(&mut self, push: Option<&Broadcast>, out: &mut Vec<u8>, fits: bool) {
        let Some(mut follower) = self.follower.take() else { return };
        while self.holding.pending(out.len()) < FULL
            && let Some(step) = follower.next(push)
        {
            match &step {
                Step::Gap(position, _) => write_gap(Some(*position), out),
                Step::Message(message) => {
                    let frame = message.frame(self.inflates);
                    let is_short = self.holding.pending(out.len()) + frame.len() < COUNTED;
                    if fits && !is_short && !self.fits(out.len() + frame.len()) {
                        break;
                    }
                    out.extend_from_slice(frame);
                }
            }
            follower.took(&step);
            while let Some(Waiting { ticket, members, .. }) = follower.answerable() {
                self.answer(ticket, members, out);
            }
        }
        self.follower = Some(follower);
    }

    /// Appends the result of its own broadcast.
    pub(super) fn answer(&mut self, ticket: u64, members: u32, out: &mut Vec<u8>) {
        let Some(payload) = self.results.take(ticket) else { return };
        if self.settings.broker.is_some() {
            write_published(&payload, out);
        } else {
            self.census.deliveries.add(members as usize);
            write_result(&payload, members, out);
        }
    }
}
