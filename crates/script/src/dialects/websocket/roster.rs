//! Who is owed which broadcast, over all members and all threads of a load.
//!
//! A broadcast is owed to every member that was answered before it was sent, until that member leaves. The
//! upgrade alone shows less: many servers enter a member only after they have written it. Each has a number, in the order in which they are sent; a member that has joined is owed all from
//! the next number on. So a member needs to keep no more than where it joined and what has come since.

use crate::time::Nanos;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering::*},
};

/// Broadcasts that may be on their way at a time; a power of two.
pub(super) const ON_THEIR_WAY: usize = 1 << 14;

/// What is known of all broadcasts.
#[derive(Debug)]
pub(super) struct Roster {
    /// Changes together: a member that joins is owed all that is sent afterwards, and no other is.
    members: Mutex<u32>,
    /// The next number. Changed under the lock, read without.
    next: AtomicU64,
    /// By number, modulo their count.
    broadcasts: Box<[Broadcast]>,
    /// Broadcasts that somebody is still owed.
    owed: AtomicU64,
    /// Connections that have begun, members or not.
    begun: AtomicU32,
    /// Most of them at a time.
    most: AtomicU32,
}

/// One broadcast.
#[derive(Debug, Default)]
struct Broadcast {
    number: AtomicU64,
    sender: AtomicU32,
    sent_at: AtomicU64,
    /// Members to whom it was owed.
    members: AtomicU32,
    /// Of those, how many have not got it.
    left: AtomicU32,
}

/// What was said of a broadcast when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub sender: u32,
    pub at: Nanos,
    /// Members to whom it was owed.
    pub members: u32,
}

/// So many broadcasts are on their way that no more can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Roster {
    pub fn new() -> Roster {
        Roster {
            members: Mutex::default(),
            next: AtomicU64::new(0),
            broadcasts: (0..ON_THEIR_WAY).map(|_| Broadcast::default()).collect(),
            owed: AtomicU64::new(0),
            begun: AtomicU32::new(0),
            most: AtomicU32::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, u32> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broadcast(&self, number: u64) -> &Broadcast {
        &self.broadcasts[number as usize % ON_THEIR_WAY]
    }

    /// One more member: the number of the first broadcast that it is owed.
    pub fn join(&self) -> u64 {
        let mut members = self.lock();
        *members += 1;
        self.next.load(Relaxed)
    }

    /// A member leaves, who has not got these.
    pub fn leave(&self, without: impl Iterator<Item = u64>) {
        let mut members = self.lock();
        *members -= 1;
        without.for_each(|number| {
            self.one_less(number);
        });
    }

    /// A broadcast is about to be sent: its number.
    ///
    /// # Errors
    /// The one whose place it would take is still owed to somebody.
    pub fn send(&self, sender: u32, at: Nanos) -> Result<u64, TooMany> {
        let members = self.lock();
        let number = self.next.load(Relaxed);
        let broadcast = self.broadcast(number);
        if broadcast.left.load(Acquire) > 0 {
            return Err(TooMany);
        }
        broadcast.number.store(number, Relaxed);
        broadcast.sender.store(sender, Relaxed);
        broadcast.sent_at.store(at, Relaxed);
        broadcast.members.store(*members, Relaxed);
        broadcast.left.store(*members, Relaxed);
        if *members > 0 {
            self.owed.fetch_add(1, Relaxed);
        }
        // Who reads the number sees what belongs to it.
        self.next.store(number + 1, Release);
        Ok(number)
    }

    /// The number of the next broadcast: those before it were sent.
    pub fn next(&self) -> u64 {
        self.next.load(Acquire)
    }

    /// What was said of a broadcast; `None` if it was not sent, or too long ago.
    pub fn sent(&self, number: u64) -> Option<Sent> {
        if number >= self.next() {
            return None;
        }
        let broadcast = self.broadcast(number);
        let sent = Sent {
            sender: broadcast.sender.load(Relaxed),
            at: broadcast.sent_at.load(Relaxed),
            members: broadcast.members.load(Relaxed),
        };
        (broadcast.number.load(Relaxed) == number).then_some(sent)
    }

    /// A member that is owed this broadcast has got it: whether it was the last one.
    pub fn delivered(&self, number: u64) -> bool {
        self.one_less(number)
    }

    fn one_less(&self, number: u64) -> bool {
        let is_last = self.broadcast(number).left.fetch_sub(1, AcqRel) == 1;
        if is_last {
            self.owed.fetch_sub(1, Relaxed);
        }
        is_last
    }

    /// A connection begins, which may become a member.
    pub fn begin(&self) {
        let begun = self.begun.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(begun, Relaxed);
    }

    /// A connection ends.
    pub fn end(&self) {
        self.begun.fetch_sub(1, Relaxed);
    }

    /// Most connections at a time so far: a server may count each as a member from its upgrade on.
    pub fn most(&self) -> u32 {
        self.most.load(Relaxed)
    }

    /// Whether somebody is still owed a broadcast.
    pub fn owes(&self) -> bool {
        self.owed.load(Relaxed) > 0
    }

    /// The broadcasts that are still owed: what was said of each, and how many members lack it.
    pub fn missing(&self) -> Vec<(u64, Sent, u32)> {
        let next = self.next();
        let first = next.saturating_sub(ON_THEIR_WAY as u64);
        let each = (first..next).filter_map(|number| {
            let left = self.broadcast(number).left.load(Acquire);
            let sent = self.sent(number)?;
            (left > 0).then_some((number, sent, left))
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_owed_is_what_was_sent_after_the_joining_and_before_the_leaving() {
        let roster = Roster::new();
        assert_eq!(roster.join(), 0);
        assert_eq!(roster.send(7, 100), Ok(0));
        assert_eq!(roster.join(), 1, "the first is not owed to the second");
        assert_eq!(roster.send(8, 200), Ok(1));
        assert_eq!(roster.sent(0), Some(Sent { sender: 7, at: 100, members: 1 }));
        assert_eq!(roster.sent(1), Some(Sent { sender: 8, at: 200, members: 2 }));
        assert_eq!(roster.sent(2), None);
        assert!(roster.delivered(0), "it had one member");
        assert!(!roster.delivered(1));
        assert!(roster.owes());
        assert_eq!(roster.missing(), [(1, Sent { sender: 8, at: 200, members: 2 }, 1)]);
        roster.leave([1].into_iter());
        assert!(!roster.owes() && roster.missing().is_empty());
        assert_eq!(roster.send(8, 300), Ok(2));
        assert_eq!(roster.sent(2).unwrap().members, 1);
    }

    #[test]
    fn what_nobody_is_owed_is_not_waited_for() {
        let roster = Roster::new();
        assert_eq!(roster.send(1, 1), Ok(0));
        assert!(!roster.owes());
    }

    #[test]
    fn no_more_are_followed_than_there_is_room_for() {
        let roster = Roster::new();
        roster.join();
        for number in 0..ON_THEIR_WAY as u64 {
            assert_eq!(roster.send(1, number), Ok(number));
        }
        assert_eq!(roster.send(1, 0), Err(TooMany));
        assert!(roster.delivered(0));
        assert_eq!(roster.send(1, 5), Ok(ON_THEIR_WAY as u64));
        assert_eq!(roster.sent(0), None, "its place is taken");
    }

    #[test]
    fn threads_agree_on_who_was_the_last() {
        const MEMBERS: u32 = 4;
        const BROADCASTS: u64 = 10_000;
        let roster = Roster::new();
        (0..MEMBERS).for_each(|_| assert_eq!(roster.join(), 0));
        let lasts = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for at in 0..BROADCASTS {
                    while roster.send(0, at).is_err() {
                        thread::yield_now();
                    }
                }
            });
            for _ in 0..MEMBERS {
                scope.spawn(|| {
                    for number in 0..BROADCASTS {
                        while number >= roster.next() {
                            thread::yield_now();
                        }
                        assert_eq!(roster.sent(number).map(|sent| sent.at), Some(number));
                        lasts.fetch_add(u32::from(roster.delivered(number)), Relaxed);
                    }
                });
            }
        });
        assert_eq!(u64::from(lasts.into_inner()), BROADCASTS);
        assert!(!roster.owes());
    }
}
