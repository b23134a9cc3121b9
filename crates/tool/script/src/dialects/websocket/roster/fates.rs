//! Whether broadcasts are owed: their results, and gaps, may say otherwise.

use super::{Broadcast, Further, Head, Roster};
use std::sync::atomic::Ordering::*;

/// In place of [`Fate::Owed`]: the result has come, and says that it is published.
pub(super) const PUBLISHED: u64 = 3;

/// Whether a broadcast is owed, if its result may say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialects::websocket) enum Fate {
    /// Every member is owed it that was owed it when it was sent.
    Owed,
    /// Its result says that it is not published: nobody may get it.
    NotPublished,
    /// Its result says that this is not known: nobody is owed it, and every member may get it.
    Unknown,
}

/// What became of a broadcast until its result said that it is not published, or may not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::dialects::websocket) struct Settled {
    /// Number of members that got it and were owed it when it was sent.
    pub received: u64,
    /// Number of other members that got it.
    pub others: u64,
    /// Number of members that got a gap before, and not the broadcast.
    pub missed: u64,
}

/// To whom a copy comes, as [`Roster::deliver`] records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialects::websocket) enum Receiver {
    /// A member that is owed it.
    Owed,
    /// A member that got a gap before it.
    Excused,
    /// Another member.
    Other,
}

/// What a copy is, as [`Roster::deliver`] records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dialects::websocket) enum Delivered {
    /// It was owed, or came after a gap. `last`: all members that were owed it have got it now.
    Owed { last: bool },
    /// It is unknown whether it is published, and the member was owed it when it was sent.
    Unknown,
    /// The member was not owed it.
    Unowed,
    /// It was to reach nobody.
    Refused,
}

impl Roster {
    /// The fate of a broadcast that was sent; `None` if that was too long ago.
    pub fn fate(&self, number: u64) -> Option<Fate> {
        self.is_known(number).then(|| match self.further(number, Further::Fate).load(Relaxed) {
            0 | PUBLISHED => Fate::Owed,
            1 => Fate::NotPublished,
            _ => Fate::Unknown,
        })
    }

    /// Whether some members may get a broadcast and others not: no result says that it is published.
    pub fn is_uncertain(&self, number: u64) -> bool {
        let fate = self.further(number, Further::Fate).load(Relaxed);
        self.is_known(number) && fate != PUBLISHED
    }

    /// Whether a member must get these two broadcasts in the order of their numbers: they are of one sender. One for
    /// which it is not known whether it is published may come at any time, and one that is not published never.
    pub fn are_in_order(&self, number: u64, later: u64) -> bool {
        let sender = |number| self.sent(number).map(|sent| sent.sender);
        let is_owed = |number| self.fate(number) == Some(Fate::Owed);
        sender(number) == sender(later) && is_owed(number) && is_owed(later)
    }

    /// A result says that this broadcast is not published, or may not be: it is no longer owed to anybody.
    pub fn settle(&self, number: u64, fate: Fate) -> Settled {
        let _lock = self.lock();
        if self.fate(number) != Some(Fate::Owed) {
            return Settled::default();
        }
        self.further(number, Further::Fate).store(fate as u64, Relaxed);
        if self.broadcast(number, Broadcast::Left).swap(0, AcqRel) > 0 {
            self.head(Head::Owed).fetch_sub(1, Relaxed);
        }
        let of = |word| self.further(number, word).load(Relaxed);
        let [received, others, missed] =
            [Further::Received, Further::Others, Further::Excused].map(of);
        Settled { received, others, missed }
    }

    /// Records a copy of a broadcast that may be given up, or may no longer be owed. It is the last one only if every
    /// member that was owed it has got it, also those that got a gap before or lost their connection.
    pub fn deliver(&self, number: u64, receiver: Receiver) -> Delivered {
        let _lock = self.lock();
        let add = |word| self.further(number, word).fetch_add(1, Relaxed);
        let fate = match self.fate(number) {
            None | Some(Fate::NotPublished) => return Delivered::Refused,
            Some(fate) => fate,
        };
        if receiver == Receiver::Other {
            add(Further::Others);
            return Delivered::Unowed;
        }
        add(Further::Received);
        match receiver {
            _ if fate == Fate::Unknown => return Delivered::Unknown,
            Receiver::Excused => {
                self.further(number, Further::Excused).fetch_sub(1, Relaxed);
            }
            Receiver::Owed | Receiver::Other => {
                self.decrement_left(number);
            }
        }
        let open = [Further::Excused, Further::Missed].map(|word| self.further(number, word));
        let is_open = open.iter().any(|word| word.load(Relaxed) > 0);
        let left = self.broadcast(number, Broadcast::Left).load(Acquire);
        Delivered::Owed { last: left == 0 && !is_open }
    }

    /// Cancels a broadcast that a member was owed and has not received, because it got a gap. Returns whether the
    /// broadcast was still owed. Without its copy, the broadcast has no last delivery.
    pub fn excuse(&self, number: u64) -> bool {
        let _lock = self.lock();
        let is_owed = self.fate(number) == Some(Fate::Owed);
        if is_owed {
            self.further(number, Further::Excused).fetch_add(1, Relaxed);
            self.decrement_left(number);
        }
        is_owed
    }

    /// Cancels a broadcast that a member was owed and has not received: the load has closed its connection, or does
    /// not read it any longer. Returns whether the broadcast was still owed.
    pub fn forgive(&self, number: u64) -> bool {
        let _lock = self.lock();
        let is_owed = self.fate(number) == Some(Fate::Owed);
        if is_owed {
            self.decrement_left(number);
        }
        is_owed
    }
}
