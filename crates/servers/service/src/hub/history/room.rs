//! The history of one room.

use super::{
    log::Log,
    mirror::{Mirror, Wanted},
    position::{Asked, Epoch, HistoryLimits, Position},
    share::{Part, Share},
};
use crate::hub::broadcast::Broadcast;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What a history needs beside its messages, in bytes, about.
const OWN: usize = 512;
/// Messages beyond the limit of the room stay for so long and so many bytes, for members that are about to get them: a
/// burst of one turn of a core is longer than the output of a member, and pushes of two cores may come in another order
/// than their offsets. They are not recovered.
const RESERVE: (Duration, usize) = (Duration::from_secs(2), 1 << 20);

/// The history of one room, for all cores.
#[derive(Debug)]
pub(in super::super) struct RoomHistory {
    inside: Mutex<Inside>,
    share: Arc<Share>,
}

#[derive(Debug)]
pub(super) struct Inside {
    pub epoch: Epoch,
    /// How often it has begun again, with another epoch. A [follower](super::Follower) then has a gap.
    pub turn: u64,
    pub log: Log<Broadcast>,
    pub limits: HistoryLimits,
    /// What it knows of the history at the broker, if it is a copy of that.
    pub mirror: Option<Mirror>,
    part: Part,
}

/// Which messages a history has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub epoch: Epoch,
    pub turn: u64,
    /// The offset of the oldest message, or of the next one if there is none.
    pub oldest: u64,
    /// The offset of the newest message, or of the last one if there is none.
    pub top: u64,
    /// Where a member begins that cannot know any of these messages.
    pub first: u64,
}

/// What a follower finds at its place.
#[derive(Debug)]
pub(super) enum Found {
    Message(Broadcast),
    /// It is gone. The oldest one that is there has this offset.
    Gone(u64),
    /// The history has begun again: it is at this position now.
    Moved(Position, u64),
}

/// What a reader of a history asks for.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Page {
    /// The messages behind this offset, or before it if `is_reverse`; `None`: from the beginning, or from the end.
    pub since: Option<u64>,
    /// Maximum number of messages.
    pub messages: usize,
    /// Bytes of messages from which on no more follow.
    pub bytes: usize,
    /// From the newest to the oldest.
    pub is_reverse: bool,
}

impl Page {
    /// What must be here to read it from a copy. `behind`: its position, if the epoch of that is known.
    pub fn wanted(&self, behind: Option<Asked>) -> Wanted {
        match behind {
            Some(behind) if !self.is_reverse => Wanted::Behind(behind),
            None if self.since.is_none() && (self.is_reverse || self.messages == 0) => {
                Wanted::Newest(self.messages as u64)
            }
            _ => Wanted::Newest(u64::MAX),
        }
    }
}

impl RoomHistory {
    pub(super) fn new(epoch: Epoch, limits: HistoryLimits, share: &Arc<Share>) -> RoomHistory {
        RoomHistory::with(epoch, limits, None, share)
    }

    /// A copy of a history at the broker, of which nothing is known yet.
    pub(super) fn mirroring(limits: HistoryLimits, share: &Arc<Share>) -> RoomHistory {
        RoomHistory::with(Epoch(0), limits, Some(Mirror::default()), share)
    }

    fn with(
        epoch: Epoch,
        limits: HistoryLimits,
        mirror: Option<Mirror>,
        share: &Arc<Share>,
    ) -> RoomHistory {
        let (log, part) = (Log::default(), Part::new(share));
        let mut inside = Inside { epoch, turn: 0, log, limits, mirror, part };
        inside.note();
        RoomHistory { inside: Mutex::new(inside), share: Arc::clone(share) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inside> {
        // Nothing panics while holding the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of all histories.
    pub(super) fn share(&self) -> &Share {
        &self.share
    }

    pub fn epoch(&self) -> Epoch {
        self.lock().epoch
    }

    /// The position of its newest message.
    pub fn newest(&self) -> Position {
        let inside = self.lock();
        Position { epoch: inside.epoch, offset: inside.log.top() }
    }

    /// Its limits.
    pub fn limits(&self) -> HistoryLimits {
        self.lock().limits
    }

    /// Limits it from now on.
    pub fn limit(&self, limits: HistoryLimits) {
        self.lock().limits = limits;
    }

    /// Adds a message. `frame` makes it with its position. The publisher must then post it to the room: members
    /// read the history only if a push says that there is something. It may be gone from the history at once, if there
    /// is no memory for it.
    pub fn publish(&self, now: Instant, frame: impl FnOnce(Position) -> Broadcast) -> Broadcast {
        let mut inside = self.lock();
        let position = Position { epoch: inside.epoch, offset: inside.log.top() + 1 };
        let message = frame(position);
        inside.append(message.clone(), now);
        message
    }

    /// Which messages it has `now`.
    pub(super) fn extent(&self, now: Instant) -> Extent {
        let mut inside = self.lock();
        inside.expire(now);
        let (epoch, turn, top) = (inside.epoch, inside.turn, inside.log.top());
        // The messages of a copy may be the same as those of the epoch before.
        let first = if inside.mirror.is_some() { top + 1 } else { 1 };
        Extent { epoch, turn, oldest: inside.oldest(), top, first }
    }

    /// Its turn, and the offset of its newest message.
    pub(super) fn turn_and_top(&self) -> (u64, u64) {
        let inside = self.lock();
        (inside.turn, inside.log.top())
    }

    /// What a follower finds at this offset; `turn`: that in which it has the ones before.
    pub(super) fn find(&self, offset: u64, turn: u64) -> Found {
        let inside = self.lock();
        if turn != inside.turn {
            let base = inside.mirror.as_ref().map_or(0, |mirror| mirror.base);
            let offset = base.max(inside.log.oldest() - 1);
            return Found::Moved(Position { epoch: inside.epoch, offset }, inside.turn);
        }
        let message = inside.log.get(offset).cloned();
        message.map_or(Found::Gone(inside.log.oldest()), Found::Message)
    }

    /// The position of its newest message, and messages. `None` if some that were asked for are gone.
    pub fn page(&self, page: Page, now: Instant) -> (Position, Option<Vec<Broadcast>>) {
        let mut inside = self.lock();
        inside.expire(now);
        let (oldest, top, log) = (inside.oldest(), inside.log.top(), &inside.log);
        let position = Position { epoch: inside.epoch, offset: top };
        let is_gone = match page.since {
            Some(since) if page.is_reverse => since > top + 1,
            Some(since) => since > top || since + 1 < oldest,
            None => false,
        };
        if is_gone {
            return (position, None);
        }
        let next = |offset: u64| {
            if page.is_reverse { offset.checked_sub(1) } else { offset.checked_add(1) }
        };
        let first = match page.since {
            Some(since) => next(since),
            None if page.is_reverse => Some(top),
            None => Some(oldest),
        };
        let offsets = std::iter::successors(first, |offset| next(*offset));
        let mut bytes = 0;
        let kept = offsets.take_while(|offset| *offset >= oldest);
        let messages = kept.map_while(|offset| log.get(offset)).take(page.messages);
        let fitting = messages.take_while(|message| {
            let fits = bytes < page.bytes;
            bytes += message.payload().len();
            fits
        });
        (position, Some(fitting.cloned().collect()))
    }

    /// Removes what is too old. Returns whether nothing is left, and how long messages are kept.
    pub(super) fn expire(&self, now: Instant) -> (bool, HistoryLimits) {
        let mut inside = self.lock();
        inside.expire(now);
        (inside.log.size().0 == 0, inside.limits)
    }
}

impl Inside {
    /// Adds the next message, and removes what is beyond the limits.
    pub fn append(&mut self, message: Broadcast, now: Instant) {
        let bytes = message.footprint();
        self.log.append(message, bytes, now);
        self.log.keep(self.limits.messages, RESERVE, now);
        self.log.expire(self.limits.time, now);
        self.note();
        while !self.part.fits() && self.log.size().0 > 0 {
            self.log.remove_oldest();
            self.note();
        }
    }

    /// Adds a message in front. Returns false if there is no memory for it.
    pub fn prepend(&mut self, message: Broadcast, now: Instant) -> bool {
        let bytes = message.footprint();
        self.log.prepend(message, bytes, now);
        self.note();
        let fits = self.part.fits();
        if !fits {
            self.log.remove_oldest();
            self.note();
        }
        fits
    }

    /// Whether all that followed this position is of this history.
    pub fn continues(&self, Asked { epoch, offset }: Asked) -> bool {
        epoch == Some(self.epoch) && offset <= self.log.top()
    }

    /// The offset of the oldest message that can be recovered, or of the next one if none can.
    pub fn oldest(&self) -> u64 {
        let (top, limit) = (self.log.top(), self.limits.messages as u64);
        self.log.oldest().max((top + 1).saturating_sub(limit))
    }

    pub fn expire(&mut self, now: Instant) {
        self.log.keep(self.limits.messages, RESERVE, now);
        self.log.expire(self.limits.time, now);
        self.note();
    }

    /// Notes its size.
    pub fn note(&mut self) {
        let (messages, bytes) = self.log.size();
        let own = OWN + messages * Log::<Broadcast>::EACH;
        self.part.set(messages, bytes + OWN, own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_messages_in_either_direction_or_says_that_some_are_gone() {
        let share = Arc::new(Share::default());
        let limits = HistoryLimits { messages: 5, ..HistoryLimits::NONE };
        let (history, now) = (RoomHistory::new(Epoch(7), limits, &share), Instant::now());
        for n in 1..=9 {
            let memory = Arc::default();
            history.publish(now, |at| Broadcast::kept(&n.to_string(), at, false, false, &memory));
        }
        let read = |since, messages, bytes, is_reverse| {
            let (top, page) = history.page(Page { since, messages, bytes, is_reverse }, now);
            assert_eq!(top.offset, 9);
            let number = |one: Broadcast| {
                let number: u64 = str::from_utf8(one.payload()).unwrap().parse().unwrap();
                assert_eq!(number, one.position().unwrap().offset);
                number
            };
            page.map(|page| page.into_iter().map(number).collect::<Vec<_>>())
        };
        assert_eq!(read(None, 9, 99, false), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(read(None, 2, 99, false), Some(vec![5, 6]));
        assert_eq!(read(None, 2, 99, true), Some(vec![9, 8]));
        assert_eq!(read(Some(6), 2, 99, false), Some(vec![7, 8]));
        assert_eq!(read(Some(8), 9, 99, true), Some(vec![7, 6, 5]));
        assert_eq!(read(Some(4), 9, 3, false), Some(vec![5, 6, 7]), "three bytes are enough");
        assert_eq!(read(Some(9), 9, 99, false), Some(vec![]));
        assert_eq!(read(Some(3), 9, 99, false), None, "4 is gone");
        assert_eq!(read(Some(10), 9, 99, false), None);
        assert_eq!(read(Some(u64::MAX), 9, 99, false), None);
        assert_eq!(read(Some(0), 9, 99, true), Some(vec![]));
    }
}
