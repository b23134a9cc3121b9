//! A member of a room with a history: what it gets, and when.

use super::{FULL, Member};
use crate::hub::{
    broadcast::Broadcast,
    history::{Asked, Follower, RoomHistory, Start, Step},
    holding::COUNTED,
    message::{write_gap, write_position, write_result},
};
use regatta_engine::{Context, Now, PushOutcome};
use std::sync::Arc;

impl Member {
    /// Begins at the position that its client names, if the history of its room is kept.
    pub(super) fn start_following(
        &mut self,
        history: Option<&Arc<RoomHistory>>,
        asked: Option<Asked>,
        context: &mut Context<'_, Self>,
    ) {
        let Some(history) = history else {
            if asked.is_some() {
                write_gap(None, context.out);
            }
            return;
        };
        let (follower, Start { position, has_gap }) =
            Follower::join(history, asked, context.now.instant);
        if has_gap {
            write_gap(Some(position), context.out);
        } else {
            write_position(position, asked.is_some(), context.out);
        }
        self.follower = Some(Box::new(follower));
    }

    /// Whether the history has messages for it that are not in its output.
    pub(super) fn is_behind(&self) -> bool {
        self.follower.as_ref().is_some_and(|follower| follower.is_behind())
    }

    /// Hears of a message of the history.
    pub(super) fn follow(&mut self, push: &Broadcast, now: Now, out: &mut Vec<u8>) -> PushOutcome {
        if !self.follower.as_mut().is_some_and(|follower| follower.hears(push)) {
            return PushOutcome::Missed;
        }
        self.catch_up(Some(push), out, true);
        self.pauses(now, out);
        self.queued(push)
    }

    /// Appends what follows in the history, until much output is pending. This is the only place that writes messages
    /// of a history. `push`: a message that has just come. `fits`: it stops where there is no memory for a message.
    pub(super) fn catch_up(&mut self, push: Option<&Broadcast>, out: &mut Vec<u8>, fits: bool) {
        let Some(mut follower) = self.follower.take() else { return };
        while self.holding.pending(out.len()) < FULL
            && let Some(step) = follower.next(push)
        {
            match &step {
                Step::Gap(position) => write_gap(Some(*position), out),
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
            while let Some((ticket, members)) = follower.answerable() {
                self.answer(ticket, members, out);
            }
        }
        self.follower = Some(follower);
    }

    /// Appends the result of its own broadcast.
    pub(super) fn answer(&mut self, ticket: u64, members: u32, out: &mut Vec<u8>) {
        if let Some(payload) = self.results.take(ticket) {
            self.census.deliveries.add(members as usize);
            write_result(&payload, members, out);
        }
    }
}
