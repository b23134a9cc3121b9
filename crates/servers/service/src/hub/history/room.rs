//! The history of one room.

use super::{
    follower::{Follower, Start},
    log::Log,
    position::{Asked, Epoch, HistoryLimits, Position},
    share::{Part, Share},
};
use crate::hub::broadcast::Broadcast;
use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// What a history needs beside its messages, in bytes, about.
const OWN: usize = 512;

/// The history of one room, for all cores.
#[derive(Debug)]
pub(in super::super) struct RoomHistory {
    epoch: Epoch,
    inside: Mutex<Inside>,
    share: Arc<Share>,
}

#[derive(Debug)]
struct Inside {
    log: Log<Broadcast>,
    limits: HistoryLimits,
    part: Part,
}

impl RoomHistory {
    pub(super) fn new(epoch: Epoch, limits: HistoryLimits, share: &Arc<Share>) -> RoomHistory {
        let mut inside = Inside { log: Log::default(), limits, part: Part::new(share) };
        inside.note();
        RoomHistory { epoch, inside: Mutex::new(inside), share: Arc::clone(share) }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Nothing panics while holding the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of all histories.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Limits it from now on.
    pub fn limit(&self, limits: HistoryLimits) {
        self.lock().limits = limits;
    }

    /// Adds a message. `frame` makes it with its position. Whoever publishes it must then post it to the room:
    /// members read the history only if a push says that there is something. It may be gone from the history at once,
    /// if there is no memory for it.
    pub fn publish(&self, now: Instant, frame: impl FnOnce(Position) -> Broadcast) -> Broadcast {
        let mut inside = self.lock();
        let position = Position { epoch: self.epoch, offset: inside.log.top() + 1 };
        let message = frame(position);
        let Inside { log, limits, .. } = &mut *inside;
        log.append(message.clone(), message.footprint(), now);
        log.keep(limits.messages);
        log.expire(limits.time, now);
        inside.note();
        while !inside.part.fits() && inside.log.size().0 > 0 {
            inside.log.remove_oldest();
            inside.note();
        }
        message
    }

    /// A member joins. See [`Follower::join`].
    pub fn join(&self, asked: Option<Asked>, now: Instant) -> (Follower, Start) {
        let mut inside = self.lock();
        inside.expire(now);
        let joined = Follower::join(self.epoch, inside.log.top(), inside.log.oldest(), asked);
        drop(inside);
        let counted = match (asked, joined.1.has_gap) {
            (None, _) => None,
            (Some(_), false) => Some(&self.share.recoveries),
            (Some(_), true) => Some(&self.share.failed_recoveries),
        };
        counted.map(|counter| counter.add(1));
        joined
    }

    /// The offset of the newest message.
    pub fn top(&self) -> u64 {
        self.lock().log.top()
    }

    /// Shows messages from one offset to another, both included, until `show` breaks. Returns the offset of the first
    /// one that could be shown; those before it are gone.
    pub fn read(
        &self,
        from: u64,
        to: u64,
        mut show: impl FnMut(u64, &Broadcast) -> ControlFlow<()>,
    ) -> u64 {
        let inside = self.lock();
        for (offset, message) in inside.log.from(from).take_while(|(offset, _)| *offset <= to) {
            if show(offset, message).is_break() {
                break;
            }
        }
        from.max(inside.log.oldest())
    }

    /// Removes what is too old. Returns whether nothing is left.
    pub(super) fn expire(&self, now: Instant) -> bool {
        let mut inside = self.lock();
        inside.expire(now);
        inside.log.size().0 == 0
    }

    /// The limits.
    pub(super) fn limits(&self) -> HistoryLimits {
        self.lock().limits
    }
}

impl Inside {
    fn expire(&mut self, now: Instant) {
        self.log.expire(self.limits.time, now);
        self.note();
    }

    /// Notes its size.
    fn note(&mut self) {
        let (messages, bytes) = self.log.size();
        let own = OWN + messages * Log::<Broadcast>::EACH;
        self.part.set(messages, bytes + OWN, own);
    }
}
