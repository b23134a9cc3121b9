//! The history of a room as a copy of that at the broker. It has the newest messages, without a hole: new ones come from
//! the subscription, each one more than the last, and others are fetched, behind the newest or before the oldest.
//!
//! The broker answers in the order in which it carries out commands, on the connection of the subscription. So with the
//! answer to a question, all messages up to the newest one that the answer names have come, and those behind it will come:
//! from then on the copy is current, for as long as the connection lives.

use super::{
    position::{Asked, Epoch, Position},
    room::{Inside, RoomHistory},
};
use crate::hub::broadcast::Broadcast;
use std::{
    sync::MutexGuard,
    time::{Duration, Instant},
};

/// How long older messages are not fetched again after there was no memory for them.
const PAUSE: Duration = Duration::from_secs(2);

/// What a copy knows of its original.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// The number of the connection on which it is current; 0: it is not.
    link: u64,
    /// Something is known of the original.
    is_known: bool,
    /// The newest message when the present epoch began here. Followers of an epoch that does not continue begin behind it.
    pub base: u64,
    /// Messages before this one cannot be had; until this time, if there was no memory for them.
    floor: u64,
    floor_until: Option<Instant>,
}

/// What the broker says of the history of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Seen {
    pub epoch: Epoch,
    /// The offset of the newest message.
    pub top: u64,
    /// There are no more messages in the direction that was asked for.
    pub is_all: bool,
}

/// Which messages are fetched next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Span {
    /// None: only what the broker says of the history.
    Nothing,
    /// From this offset on.
    From(u64),
    /// From the first of these offsets down to the second one.
    Down(u64, u64),
    /// None: what is missing is given up, because it was too much for the connection.
    Skip,
}

/// What somebody wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Wanted {
    /// What is behind this position.
    Behind(Asked),
    /// So many of the newest messages.
    Newest(u64),
}

/// What became of a message of the subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Heard {
    /// It is in the history now.
    Next,
    /// The history is not current, and gets it with the next fetch.
    Later,
    /// It does not follow the last one: the history is not current from now on.
    Hole,
}

/// What a copy has learned from the answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Learned {
    Nothing,
    /// Members must look at the history.
    News,
    /// The broker has lost messages of an epoch that goes on there: it would give their offsets again.
    Loss,
}

impl RoomHistory {
    /// Its inside, if it is a copy.
    fn mirror(&self) -> Option<MutexGuard<'_, Inside>> {
        Some(self.lock()).filter(|inside| inside.mirror.is_some())
    }

    /// A message of the subscription has come on the connection with this number.
    pub fn hears(&self, link: u64, message: Broadcast, now: Instant) -> Heard {
        let (Some(mut inside), Some(position)) = (self.mirror(), message.position()) else {
            return Heard::Later;
        };
        let next = Position { epoch: inside.epoch, offset: inside.log.top() + 1 };
        let Some(mirror) = &mut inside.mirror else { return Heard::Later };
        if mirror.link != link {
            return Heard::Later;
        }
        if position != next {
            mirror.link = 0;
            return Heard::Hole;
        }
        inside.append(message, now);
        Heard::Next
    }

    /// Messages may be missing: it is not current from now on.
    pub fn doubts(&self) {
        if let Some(mirror) = self.lock().mirror.as_mut() {
            mirror.link = 0;
        }
    }

    /// What must be fetched for somebody who wants this; `None`: it can be read now. `link`: the number of the present
    /// connection.
    pub fn missing(&self, link: u64, wanted: Option<Wanted>, now: Instant) -> Option<Span> {
        let mut inside = self.mirror()?;
        inside.expire(now);
        let top = inside.log.top();
        let mirror = inside.mirror.as_mut()?;
        if mirror.floor_until.is_some_and(|until| until <= now) {
            (mirror.floor, mirror.floor_until) = (0, None);
        }
        let mirror = inside.mirror.as_ref()?;
        if !mirror.is_known {
            return Some(Span::Nothing);
        }
        if mirror.link != link {
            return Some(Span::From(top + 1));
        }
        let first = match wanted? {
            Wanted::Behind(asked) if inside.continues(asked) => asked.offset + 1,
            Wanted::Behind(_) => return None,
            Wanted::Newest(messages) => (top + 1).saturating_sub(messages).max(1),
        };
        // Messages beyond the limit of the room are not recovered.
        let limit = (top + 1).saturating_sub(inside.limits.messages as u64);
        let oldest = inside.log.oldest();
        let is_limited = matches!(wanted, Some(Wanted::Behind(_))) && first < limit;
        let first = first.max(limit).max(mirror.floor);
        let is_gone =
            matches!(wanted, Some(Wanted::Behind(asked)) if asked.offset + 1 < mirror.floor);
        if is_limited || is_gone || oldest <= first {
            return None;
        }
        Some(Span::Down(oldest - 1, first))
    }

    /// The broker has answered a question for a span. `messages`: those of it, in its direction.
    pub fn learns(
        &self,
        link: u64,
        span: Span,
        (seen, messages): (&Seen, Vec<Broadcast>),
        now: Instant,
    ) -> Learned {
        let Some(mut inside) = self.mirror() else { return Learned::Nothing };
        let (epoch, top) = (inside.epoch, inside.log.top());
        let is_known = inside.mirror.as_ref().is_some_and(|mirror| mirror.is_known);
        if is_known && seen.epoch == epoch && seen.top < top {
            inside.is_at(0);
            return Learned::Loss;
        }
        if !is_known || seen.epoch != epoch {
            inside.begins(link, seen);
            return if is_known { Learned::News } else { Learned::Nothing };
        }
        if let Span::Down(first, last) = span {
            inside.extends(link, (first, last), (seen, messages), now);
            return Learned::Nothing;
        }
        if span == Span::Skip {
            inside.skips(seen);
        } else {
            let is_all = seen.is_all && span != Span::Nothing;
            inside.follows((seen, messages), is_all, now);
        }
        let is_current = inside.log.top() >= seen.top;
        inside.is_at(if is_current { link } else { 0 });
        if inside.log.top() == top { Learned::Nothing } else { Learned::News }
    }
}

impl Inside {
    /// It begins at the newest message.
    fn begins(&mut self, link: u64, seen: &Seen) {
        (self.epoch, self.turn) = (seen.epoch, self.turn + 1);
        self.log.start_at(seen.top);
        self.note();
        self.mirror =
            Some(Mirror { link, is_known: true, base: seen.top, floor: 0, floor_until: None });
    }

    /// It is current on this connection.
    fn is_at(&mut self, link: u64) {
        if let Some(mirror) = &mut self.mirror {
            mirror.link = link;
        }
    }

    /// Goes on at the newest message, without those that it does not have.
    fn skips(&mut self, seen: &Seen) {
        if self.log.top() < seen.top {
            self.log.start_at(seen.top);
            self.note();
        }
        let oldest = self.log.oldest();
        if let Some(mirror) = &mut self.mirror {
            (mirror.floor, mirror.floor_until) = (oldest, None);
        }
    }

    /// Adds messages behind its newest one. `is_all`: the broker has no others.
    fn follows(&mut self, (seen, messages): (&Seen, Vec<Broadcast>), is_all: bool, now: Instant) {
        for message in messages {
            let offset = message.position().map_or(0, |position| position.offset);
            if offset <= self.log.top() {
                continue;
            }
            if offset > self.log.top() + 1 {
                self.log.start_at(offset - 1);
            }
            self.append(message, now);
        }
        if is_all && self.log.top() < seen.top {
            self.log.start_at(seen.top);
            self.note();
        }
    }

    /// Adds messages before its oldest one: of those from `first` down to `last`.
    fn extends(
        &mut self,
        link: u64,
        (first, last): (u64, u64),
        (seen, messages): (&Seen, Vec<Broadcast>),
        now: Instant,
    ) {
        let is_current = self.mirror.as_ref().is_some_and(|mirror| mirror.link == link);
        // It has changed meanwhile, or has dropped its oldest messages.
        if !is_current || self.epoch != seen.epoch || self.log.oldest() != first + 1 {
            return;
        }
        let (mut is_all, mut has_memory) = (seen.is_all, true);
        for message in messages {
            if message.position().is_none_or(|position| position.offset + 1 != self.log.oldest()) {
                is_all = true;
                break;
            }
            has_memory = self.prepend(message, now);
            if !has_memory {
                break;
            }
        }
        let oldest = self.log.oldest();
        if let Some(mirror) = &mut self.mirror
            && oldest > last
        {
            if !has_memory {
                (mirror.floor, mirror.floor_until) = (oldest, Some(now + PAUSE));
            } else if is_all {
                // The broker has no more of what was asked for.
                (mirror.floor, mirror.floor_until) = (oldest, None);
            }
        }
    }
}
