//! Tracks which members are owed which broadcast, over all members, threads and processes of a load.
//!
//! A broadcast is owed to every member that had its first reply before the broadcast was sent, and had
//! not started to leave by then. The upgrade alone shows less: many servers register a member only
//! after they have sent the upgrade. Broadcasts are numbered in the order in which they are sent. A
//! member is owed all from the next number when it joins, up to the next number when it starts to
//! leave. It therefore only keeps these two numbers and what it has received since.
//!
//! All state is in words of memory that several load processes may share.

mod fates;
pub(super) mod few_listeners;
mod listeners;
mod missing;

pub(super) use fates::{Delivered, Fate, Receiver, Settled};
pub(super) use missing::Missing;

use crate::time::Nanos;
use std::{
    hint,
    sync::atomic::{AtomicU64, Ordering::*},
    thread,
};

/// Maximum number of broadcasts in flight; a power of two.
pub(super) const MAX_IN_FLIGHT: usize = 1 << 14;

/// Number of words in total: [`Head`], then one [`Broadcast`] and then one [`Further`] for each number,
/// modulo [`MAX_IN_FLIGHT`].
pub(super) const WORDS: usize = HEAD + (BROADCAST + FURTHER) * MAX_IN_FLIGHT;
/// Number of words in the head: two cache lines.
const HEAD: usize = 2 * BROADCAST;
/// Number of words in a broadcast: a cache line.
const BROADCAST: usize = 8;
/// Number of further words of a broadcast.
const FURTHER: usize = 7;

/// The words of the head.
#[derive(Clone, Copy)]
enum Head {
    /// 1 while a process changes words that belong together: a member that joins is owed exactly the
    /// broadcasts sent after that.
    Lock,
    /// Number of members. Changed under the lock.
    Members,
    /// The next number. Changed under the lock, read without it.
    Next,
    /// Number of broadcasts that at least one member is still owed.
    Owed,
    /// Number of connections that were members until the server closed them, and are none again.
    Away,
    /// Number of members whose connections the server has closed so far.
    Lost,
    /// Number of connections opened so far, members or not.
    Opened = BROADCAST as isize,
    /// Number of connections closed so far.
    Closed,
    /// Number of members that have started to leave so far.
    Leavers,
    /// When [`Head::ClosedThen`] was last updated. Changed under the lock.
    UpdatedAt,
    /// Number of connections closed by that time. Changed under the lock.
    ClosedThen,
    /// Number of connections closed by the update before that one, at least [`NOTICED`] earlier.
    /// Changed under the lock.
    Forgotten,
}

/// The words of a broadcast.
#[derive(Clone, Copy)]
enum Broadcast {
    Number,
    Sender,
    SentAt,
    /// Number of members that were owed it.
    Members,
    /// Number of these that have not received it.
    Left,
    /// [`Head::Leavers`] when it was sent.
    Leavers,
    /// [`Head::Forgotten`] when it was sent.
    Forgotten,
    /// 1 once it was reported as missing.
    Reported,
}

/// The further words of a broadcast, for what is not checked in every load.
#[derive(Clone, Copy)]
pub(super) enum Further {
    /// The place after which the first member got it; all others must get it there, too.
    After,
    /// 1 more than the broadcast that a member got before it, with a gap between the two.
    Behind,
    /// Its [`Fate`], or [`PUBLISHED`]. Changed under the lock.
    Fate,
    /// Number of members that got it and were owed it when it was sent, counted only by [`Roster::deliver`]. Changed
    /// under the lock.
    Received,
    /// Number of other members that got it. Changed under the lock.
    Others,
    /// Number of members that got a gap instead of it, and have not got it since. Changed under the lock.
    Excused,
    /// Number of members that do not get it because their connections were lost. Changed under the lock.
    Missed,
}

/// The state of all broadcasts.
#[derive(Debug)]
pub(super) struct Roster {
    words: Words,
    /// Whether results may say that a broadcast is not published, or may not be.
    pub may_be_lost: bool,
}

#[derive(Debug)]
enum Words {
    Own(Box<[AtomicU64]>),
    /// Words shared with other processes.
    Shared(&'static [AtomicU64]),
}

/// A broadcast as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub sender: u32,
    pub at: Nanos,
    /// Number of members that were owed it.
    pub members: u32,
}

/// Too many broadcasts are in flight to track another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// A spin lock for words that change together. If a process dies while it holds the lock, the others
/// wait until the leading process ends them.
pub(super) struct Lock<'a>(&'a AtomicU64);

impl<'a> Lock<'a> {
    fn of(word: &'a AtomicU64) -> Self {
        let mut tries = 0;
        while word.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            tries += 1;
            match tries % 64 {
                0 => thread::yield_now(),
                _ => hint::spin_loop(),
            }
        }
        Lock(word)
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl Roster {
    /// Creates a roster in its own words, or in `shared` ones: [`WORDS`] words, initially zero.
    pub fn new(shared: Option<&'static [AtomicU64]>) -> Roster {
        let words = match shared {
            Some(words) => {
                assert!(words.len() >= WORDS, "{} words are too few", words.len());
                Words::Shared(words)
            }
            None => Words::Own((0..WORDS).map(|_| AtomicU64::new(0)).collect()),
        };
        Roster { words, may_be_lost: false }
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        match &self.words {
            Words::Own(words) => words,
            Words::Shared(words) => words,
        }
    }

    #[inline]
    fn head(&self, word: Head) -> &AtomicU64 {
        &self.words()[word as usize]
    }

    #[inline]
    fn broadcast(&self, number: u64, word: Broadcast) -> &AtomicU64 {
        let at = number as usize % MAX_IN_FLIGHT;
        &self.words()[HEAD + at * BROADCAST + word as usize]
    }

    #[inline]
    pub(super) fn further(&self, number: u64, word: Further) -> &AtomicU64 {
        &self.words()[Roster::further_at(number) + word as usize]
    }

    /// The index of the first further word of a broadcast.
    #[inline]
    fn further_at(number: u64) -> usize {
        HEAD + BROADCAST * MAX_IN_FLIGHT + number as usize % MAX_IN_FLIGHT * FURTHER
    }

    pub(super) fn lock(&self) -> Lock<'_> {
        Lock::of(self.head(Head::Lock))
    }

    /// Whether the words of this number are those of this broadcast, not of a later one.
    pub(super) fn is_known(&self, number: u64) -> bool {
        self.broadcast(number, Broadcast::Number).load(Acquire) == number
    }

    /// Adds a member. Returns the number of the first broadcast that it is owed.
    pub fn join(&self) -> u64 {
        let _lock = self.lock();
        self.head(Head::Members).fetch_add(1, Relaxed);
        self.head(Head::Next).load(Relaxed)
    }

    /// Counts a member that starts to leave. Returns the number of the first broadcast that it is not
    /// owed.
    pub fn leave(&self) -> u64 {
        let _lock = self.lock();
        self.head(Head::Members).fetch_sub(1, Relaxed);
        self.head(Head::Leavers).fetch_add(1, Relaxed);
        self.head(Head::Next).load(Relaxed)
    }

    /// The same of a member whose connection the server has closed. It is owed nothing until it joins again, which the
    /// server may delay.
    pub fn lose(&self) -> u64 {
        let _lock = self.lock();
        self.head(Head::Members).fetch_sub(1, Relaxed);
        for count in [Head::Leavers, Head::Lost, Head::Away] {
            self.head(count).fetch_add(1, Relaxed);
        }
        self.head(Head::Next).load(Relaxed)
    }

    /// The server has closed the connection of a member that had started to leave.
    pub fn lose_leaver(&self) {
        self.head(Head::Lost).fetch_add(1, Relaxed);
    }

    /// Counts a member of [`Roster::lose`] that joins again.
    pub fn comes_back(&self) {
        self.head(Head::Away).fetch_sub(1, Relaxed);
    }

    /// Number of members that would be owed the next broadcast if the server had not closed their connections.
    #[inline]
    pub fn away(&self) -> u64 {
        self.head(Head::Away).load(Relaxed)
    }

    /// Whether no member is owed any of the broadcasts before this one.
    pub fn is_complete_before(&self, number: u64) -> bool {
        let first = number.saturating_sub(MAX_IN_FLIGHT as u64);
        (first..number).all(|number| self.broadcast(number, Broadcast::Left).load(Acquire) == 0)
    }

    /// Registers a broadcast that is about to be sent. Returns its number.
    ///
    /// # Errors
    /// The broadcast whose slot it would take is still owed to a member.
    pub fn send(&self, sender: u32, at: Nanos) -> Result<u64, TooMany> {
        let _lock = self.lock();
        let number = self.head(Head::Next).load(Relaxed);
        if self.broadcast(number, Broadcast::Left).load(Acquire) > 0 {
            return Err(TooMany);
        }
        let members = self.head(Head::Members).load(Relaxed);
        let set = |word, to| self.broadcast(number, word).store(to, Relaxed);
        set(Broadcast::Number, number);
        set(Broadcast::Sender, sender.into());
        set(Broadcast::SentAt, at);
        set(Broadcast::Members, members);
        set(Broadcast::Left, members);
        set(Broadcast::Leavers, self.head(Head::Leavers).load(Relaxed));
        set(Broadcast::Forgotten, self.forgotten(at));
        set(Broadcast::Reported, 0);
        for word in 0..FURTHER {
            self.words()[Roster::further_at(number) + word].store(0, Relaxed);
        }
        if members > 0 {
            self.head(Head::Owed).fetch_add(1, Relaxed);
        }
        // A reader of the number sees the words of its broadcast.
        self.head(Head::Next).store(number + 1, Release);
        Ok(number)
    }

    /// The number of the next broadcast; all before it have been sent.
    pub fn next(&self) -> u64 {
        self.head(Head::Next).load(Acquire)
    }

    /// Returns a broadcast as it was sent; `None` if it was not sent, or too long ago.
    pub fn sent(&self, number: u64) -> Option<Sent> {
        if number >= self.next() {
            return None;
        }
        let of = |word| self.broadcast(number, word).load(Relaxed);
        let sent = Sent {
            sender: of(Broadcast::Sender) as u32,
            at: of(Broadcast::SentAt),
            members: of(Broadcast::Members) as u32,
        };
        (of(Broadcast::Number) == number).then_some(sent)
    }

    /// Records a delivery to a member that is owed it. Returns whether this was the last one.
    pub fn record_delivery(&self, number: u64) -> bool {
        self.decrement_left(number)
    }

    fn decrement_left(&self, number: u64) -> bool {
        let is_last = self.broadcast(number, Broadcast::Left).fetch_sub(1, AcqRel) == 1;
        if is_last {
            self.head(Head::Owed).fetch_sub(1, Relaxed);
        }
        is_last
    }

    /// Whether any member is still owed a broadcast.
    pub fn owes(&self) -> bool {
        self.head(Head::Owed).load(Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_member_is_owed_broadcasts_between_joining_and_leaving() {
        let roster = Roster::new(None);
        assert_eq!(roster.join(), 0);
        assert_eq!(roster.send(7, 100), Ok(0));
        assert_eq!(roster.join(), 1, "the second member is not owed the first broadcast");
        assert_eq!(roster.send(8, 200), Ok(1));
        assert_eq!(roster.sent(0), Some(Sent { sender: 7, at: 100, members: 1 }));
        assert_eq!(roster.sent(1), Some(Sent { sender: 8, at: 200, members: 2 }));
        assert_eq!(roster.sent(2), None);
        assert!(roster.record_delivery(0), "one member was owed it");
        assert!(!roster.record_delivery(1));
        assert!(roster.owes());
        let sent = Sent { sender: 8, at: 200, members: 2 };
        assert_eq!(roster.missing(), [Missing { number: 1, sent, deliveries: 1, is_first: true }]);
        assert_eq!(roster.leave(), 2, "it is owed earlier broadcasts");
        assert!(roster.owes());
        assert!(roster.forgive(1));
        assert!(!roster.owes() && roster.missing().is_empty());
        assert_eq!(roster.send(8, 300), Ok(2));
        assert_eq!(roster.sent(2).unwrap().members, 1);
    }

    #[test]
    fn bounds_the_listener_count_of_a_broadcast() {
        let roster = Roster::new(None);
        (0..5).for_each(|_| roster.connection_opened());
        (0..4).for_each(|_| assert_eq!(roster.join(), 0));
        let at = |second: u64| (100 + second) * 1_000_000_000;
        assert_eq!(roster.send(7, at(0)), Ok(0));
        assert_eq!(roster.listeners(0), 4..=5, "one connection has no reply yet");
        roster.leave();
        assert_eq!(roster.listeners(0), 3..=5, "it may have left before it was counted");
        roster.connection_closed();
        roster.connection_opened();
        for second in 1..4 {
            assert_eq!(roster.send(7, at(second)), Ok(second));
            assert_eq!(
                roster.listeners(second),
                3..=6,
                "the server may not have noticed that one closed"
            );
        }
        // The close was first seen at 2 s, which is 2 s ago.
        assert_eq!(roster.send(7, at(4)), Ok(4));
        assert_eq!(roster.listeners(4), 3..=5);
        assert_eq!(roster.listeners(3), 3..=6, "an earlier broadcast may have counted it");
        assert_eq!(*roster.listeners(99).start(), 0, "nothing is known of it");
    }

    #[test]
    fn does_not_wait_for_a_broadcast_without_members() {
        let roster = Roster::new(None);
        assert_eq!(roster.send(1, 1), Ok(0));
        assert!(!roster.owes());
    }

    #[test]
    fn rejects_a_broadcast_when_too_many_are_in_flight() {
        let roster = Roster::new(None);
        roster.join();
        for number in 0..MAX_IN_FLIGHT as u64 {
            assert_eq!(roster.send(1, number), Ok(number));
        }
        assert_eq!(roster.send(1, 0), Err(TooMany));
        assert!(roster.record_delivery(0));
        assert_eq!(roster.send(1, 5), Ok(MAX_IN_FLIGHT as u64));
        assert_eq!(roster.sent(0), None, "its slot was reused");
    }

    #[test]
    fn a_settled_broadcast_is_owed_to_nobody() {
        let roster = Roster::new(None);
        (0..2).for_each(|_| assert_eq!(roster.join(), 0));
        (0..3).for_each(|number| assert_eq!(roster.send(1, 0), Ok(number)));
        assert_eq!(roster.deliver(0, Receiver::Owed), Delivered::Owed { last: false });
        assert_eq!(roster.deliver(0, Receiver::Other), Delivered::Unowed, "it joined later");
        let settled = roster.settle(0, Fate::Unknown);
        assert_eq!(settled, Settled { received: 1, others: 1, missed: 0 });
        assert_eq!(roster.deliver(0, Receiver::Owed), Delivered::Unknown, "it may still come");
        assert!(roster.excuse(1), "a member got a gap");
        assert!(roster.forgive(1), "a connection was lost, which is not missed");
        let settled = roster.settle(1, Fate::NotPublished);
        assert_eq!(settled, Settled { received: 0, others: 0, missed: 1 });
        assert_eq!(roster.settle(1, Fate::Unknown), Settled::default(), "it has its result");
        assert_eq!(roster.deliver(1, Receiver::Owed), Delivered::Refused);
        assert!(!roster.forgive(0) && !roster.forgive(1));
        assert!(roster.excuse(2) && roster.owes());
        assert_eq!(roster.deliver(2, Receiver::Other), Delivered::Unowed, "it joined later");
        assert_eq!(roster.deliver(2, Receiver::Owed), Delivered::Owed { last: false });
        let late = roster.deliver(2, Receiver::Excused);
        assert_eq!(late, Delivered::Owed { last: true }, "after a gap");
        assert!(!roster.owes() && roster.missing().is_empty());
        // The slot of a settled broadcast is used again.
        for number in 3..=MAX_IN_FLIGHT as u64 {
            assert_eq!(roster.send(1, 0), Ok(number));
            roster.settle(number, Fate::NotPublished);
        }
        assert_eq!((roster.fate(0), roster.fate(2)), (None, Some(Fate::Owed)));
        assert_eq!(
            roster.deliver(0, Receiver::Owed),
            Delivered::Refused,
            "it is too old to be known"
        );
    }

    #[test]
    fn threads_agree_on_the_last_delivery() {
        const MEMBERS: u32 = 4;
        const BROADCASTS: u64 = 10_000;
        let roster = Roster::new(None);
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
                        lasts.fetch_add(u32::from(roster.record_delivery(number)), Relaxed);
                    }
                });
            }
        });
        assert_eq!(u64::from(lasts.into_inner()), BROADCASTS);
        assert!(!roster.owes());
    }

    /// Models two processes whose members receive each other's broadcasts.
    #[test]
    fn two_processes_can_share_a_roster() {
        let words = Box::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>());
        let (one, other) = (Roster::new(Some(words)), Roster::new(Some(words)));
        assert_eq!((one.join(), other.join()), (0, 0));
        (0..3).for_each(|_| other.connection_opened());
        assert_eq!(one.send(7, 100), Ok(0));
        assert_eq!(other.sent(0), Some(Sent { sender: 7, at: 100, members: 2 }));
        assert!(!other.record_delivery(0) && other.owes());
        assert!(one.record_delivery(0) && !other.owes());
        assert_eq!((one.listeners(0), other.next()), (2..=3, 1));
        assert_eq!(other.leave(), 1);
        assert_eq!(one.send(7, 200), Ok(1));
        let sent = Sent { sender: 7, at: 200, members: 1 };
        assert_eq!(other.missing(), [Missing { number: 1, sent, deliveries: 1, is_first: true }]);
        assert_eq!(one.missing(), [], "it is reported once");
    }
}
