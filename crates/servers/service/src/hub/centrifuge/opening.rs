//! How a subscription begins: behind the position of its client, or at the newest message.

use super::{
    codes::Failure,
    reply::{Expiry, Subscribed},
    request::{REJECTS_UNRECOVERED, Subscribe},
};
use crate::hub::{
    api::Publication,
    history::{Asked, Follower, Joining, Position, RoomHistory, Step},
};
use std::{sync::Arc, time::Instant};

/// What a client asks for when it subscribes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// The position that it names, if it recovers.
    pub asked: Option<Asked>,
    /// Instead of a subscription that misses messages, it wants an error.
    rejects_unrecovered: bool,
}

impl Wish {
    /// That of a command.
    pub fn of(request: &Subscribe<'_>) -> Wish {
        Wish {
            asked: request.recover.then(|| Asked::of(&request.epoch, request.offset)),
            rejects_unrecovered: request.flag & REJECTS_UNRECOVERED != 0,
        }
    }

    /// Begins to follow the history of a room, if that is kept, and adds what the client has missed to the reply: until it
    /// has `most` bytes. The rest follows as pushes, and so does what is behind this position, if the client names none.
    pub fn begin(
        self,
        history: Option<&Arc<RoomHistory>>,
        behind: Option<Asked>,
        most: usize,
        now: Instant,
    ) -> Result<(Subscribed, Option<Follower>), Failure> {
        let was_recovering = self.asked.is_some();
        let rejects = was_recovering && self.rejects_unrecovered;
        let mut result = Subscribed { was_recovering, ..Subscribed::default() };
        let Some(history) = history else {
            return if rejects { Err(Failure::UNRECOVERABLE) } else { Ok((result, None)) };
        };
        let begin = if was_recovering { Follower::join } else { Follower::begin };
        let (mut follower, mut start) = begin(history, self.asked.or(behind), now);
        if start.has_gap {
            if rejects {
                return Err(Failure::UNRECOVERABLE);
            }
            // It must load its state in another way, so the messages after the gap are of no use.
            (follower, start) = Follower::begin(history, None, now);
        } else {
            result.recovered = was_recovering;
        }
        let (mut offset, mut bytes) = (start.position.offset, 0);
        while result.recovered
            && bytes < most
            && let Some(step @ Step::Message(_)) = follower.next(None)
        {
            if let Step::Message(message) = &step {
                bytes += message.payload().len();
                offset = message.position().map_or(offset, |position| position.offset);
                result.publications.extend(Publication::of(message));
            }
            follower.took(&step);
        }
        (result.recoverable, result.positioned) = (true, true);
        (result.epoch, result.offset) = (Some(start.position.epoch.to_string()), Some(offset));
        Ok((result, Some(follower)))
    }
}

/// How a subscription begins that waits for the history of its room.
#[derive(Debug)]
pub(super) struct Opening {
    /// The number of the command.
    pub id: u32,
    pub joining: Joining,
    pub wish: Wish,
    /// When the client should renew its token.
    pub renews_at: Option<Instant>,
}

impl Opening {
    /// Begins. `at`: the newest message when the broker has answered.
    pub fn begin(
        &self,
        at: Option<Position>,
        most: usize,
        now: Instant,
    ) -> Result<(Subscribed, Option<Follower>), Failure> {
        let Opening { joining, wish, renews_at, .. } = self;
        let (result, follower) =
            wish.begin(Some(&joining.history), joining.begins(at), most, now)?;
        let left = |at: Instant| at.saturating_duration_since(now).as_secs().max(1);
        let expiry = Expiry::in_s(renews_at.map(left));
        Ok((Subscribed { expiry, ..result }, follower))
    }
}
