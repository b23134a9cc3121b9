//! Which members must get which broadcast, over all members, threads and processes of a load.
//!
//! A broadcast is owed to every member that was answered before it was sent and has not begun to leave by
//! then. The upgrade alone shows less: many servers enter a member only after they have written it.
//! Broadcasts are numbered in the order in which they are sent; a member is owed all from the number that is
//! next when it joins, up to the one that is next when it begins to leave. So a member needs to keep no more
//! than these two and what has come since.
//!
//! All of it is words of memory, which several load processes may share.

use crate::time::Nanos;
use std::{
    hint,
    ops::RangeInclusive,
    sync::atomic::{AtomicU64, Ordering::*},
    thread,
};

/// Broadcasts that may be on their way at a time; a power of two.
pub(super) const ON_THEIR_WAY: usize = 1 << 14;

/// A server has noticed after this long that a connection has ended, and counts it no more.
const NOTICED: Nanos = 2_000_000_000;

/// Words of the whole: [`Head`], then [`Broadcast`] for each number, modulo their count.
pub(super) const WORDS: usize = HEAD + BROADCAST * ON_THEIR_WAY;
/// Words of the head: two cache lines.
const HEAD: usize = 2 * BROADCAST;
/// Words of a broadcast: a cache line.
const BROADCAST: usize = 8;

/// The words of the head.
#[derive(Clone, Copy)]
enum Head {
    /// 1 while somebody changes what changes together: a member that joins is owed all that is sent
    /// afterwards, and no other is.
    Lock,
    /// Members. Under the lock.
    Members,
    /// The next number. Changed under the lock, read without.
    Next,
    /// Broadcasts that somebody is still owed.
    Owed,
    /// Connections that have begun so far, members or not.
    Begun = BROADCAST as isize,
    /// Those that have ended so far.
    Ended,
    /// Members that have begun to leave so far.
    Leavers,
    /// When [`Head::EndedThen`] was last read. Under the lock.
    LookedAt,
    /// Connections that had ended then. Under the lock.
    EndedThen,
    /// Connections that had ended at the look before that one, so at least [`NOTICED`] earlier. Under the
    /// lock.
    Forgotten,
}

/// The words of a broadcast.
#[derive(Clone, Copy)]
enum Broadcast {
    Number,
    Sender,
    SentAt,
    /// Members to whom it was owed.
    Members,
    /// Of those, how many have not got it.
    Left,
    /// [`Head::Leavers`] when it was sent.
    Leavers,
    /// [`Head::Forgotten`] when it was sent.
    Forgotten,
}

/// What is known of all broadcasts.
#[derive(Debug)]
pub(super) struct Roster(Words);

#[derive(Debug)]
enum Words {
    Own(Box<[AtomicU64]>),
    /// With other processes.
    Shared(&'static [AtomicU64]),
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

/// Held while what belongs together is changed. A process that dies meanwhile leaves the others waiting;
/// their leader then ends them.
struct Lock<'a>(&'a AtomicU64);

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
    /// In words of its own, or in `shared` ones: [`WORDS`] of them, zeros at first.
    pub fn new(shared: Option<&'static [AtomicU64]>) -> Roster {
        Roster(match shared {
            Some(words) => {
                assert!(words.len() >= WORDS, "{} words are too few", words.len());
                Words::Shared(words)
            }
            None => Words::Own((0..WORDS).map(|_| AtomicU64::new(0)).collect()),
        })
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        match &self.0 {
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
        let at = number as usize % ON_THEIR_WAY;
        &self.words()[HEAD + at * BROADCAST + word as usize]
    }

    fn lock(&self) -> Lock<'_> {
        Lock::of(self.head(Head::Lock))
    }

    /// One more member: the number of the first broadcast that it is owed.
    pub fn join(&self) -> u64 {
        let _lock = self.lock();
        self.head(Head::Members).fetch_add(1, Relaxed);
        self.head(Head::Next).load(Relaxed)
    }

    /// A member begins to leave: the number of the first broadcast that it is not owed.
    pub fn leave(&self) -> u64 {
        let _lock = self.lock();
        self.head(Head::Members).fetch_sub(1, Relaxed);
        self.head(Head::Leavers).fetch_add(1, Relaxed);
        self.head(Head::Next).load(Relaxed)
    }

    /// A connection has ended whose member was owed these and has not got them: nobody waits for them.
    pub fn forgive(&self, without: impl Iterator<Item = u64>) {
        without.for_each(|number| {
            self.one_less(number);
        });
    }

    /// A broadcast is about to be sent: its number.
    ///
    /// # Errors
    /// The one whose place it would take is still owed to somebody.
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
        if members > 0 {
            self.head(Head::Owed).fetch_add(1, Relaxed);
        }
        // Whoever reads the number sees what belongs to it.
        self.head(Head::Next).store(number + 1, Release);
        Ok(number)
    }

    /// The number of the next broadcast: those before it were sent.
    pub fn next(&self) -> u64 {
        self.head(Head::Next).load(Acquire)
    }

    /// What was said of a broadcast; `None` if it was not sent, or too long ago.
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

    /// A member that is owed this broadcast has got it: whether it was the last one.
    pub fn delivered(&self, number: u64) -> bool {
        self.one_less(number)
    }

    fn one_less(&self, number: u64) -> bool {
        let is_last = self.broadcast(number, Broadcast::Left).fetch_sub(1, AcqRel) == 1;
        if is_last {
            self.head(Head::Owed).fetch_sub(1, Relaxed);
        }
        is_last
    }

    /// Connections that had ended so long before this moment that no server counts them any more. Under the
    /// lock.
    fn forgotten(&self, at: Nanos) -> u64 {
        let [looked_at, then, forgotten] =
            [Head::LookedAt, Head::EndedThen, Head::Forgotten].map(|word| self.head(word));
        if at.saturating_sub(looked_at.load(Relaxed)) >= NOTICED {
            forgotten.store(then.load(Relaxed), Relaxed);
            then.store(self.head(Head::Ended).load(Relaxed), Relaxed);
            looked_at.store(at, Relaxed);
        }
        forgotten.load(Relaxed)
    }

    /// A connection begins, which may become a member.
    pub fn begin(&self) {
        self.head(Head::Begun).fetch_add(1, Relaxed);
    }

    /// A connection ends.
    pub fn end(&self) {
        self.head(Head::Ended).fetch_add(1, Relaxed);
    }

    /// How many listeners a server may count that tells the result of a broadcast now. It counts at least
    /// the members that were there when it was sent and have not begun to leave since. It counts at most all
    /// connections that have begun (it may enter one with its upgrade), but for those that had ended long
    /// before it was sent.
    pub fn listeners(&self, number: u64) -> RangeInclusive<u64> {
        let of = |word| self.broadcast(number, word).load(Relaxed);
        let (members, leavers) = (of(Broadcast::Members), of(Broadcast::Leavers));
        let (forgotten, is_known) = (of(Broadcast::Forgotten), self.sent(number).is_some());
        let begun = self.head(Head::Begun).load(Relaxed);
        if !is_known {
            return 0..=begun;
        }
        let left_since = self.head(Head::Leavers).load(Relaxed).saturating_sub(leavers);
        members.saturating_sub(left_since)..=begun.saturating_sub(forgotten).max(members)
    }

    /// Whether somebody is still owed a broadcast.
    pub fn owes(&self) -> bool {
        self.head(Head::Owed).load(Relaxed) > 0
    }

    /// The broadcasts that are still owed: what was said of each, and how many members lack it.
    pub fn missing(&self) -> Vec<(u64, Sent, u64)> {
        let next = self.next();
        let first = next.saturating_sub(ON_THEIR_WAY as u64);
        let each = (first..next).filter_map(|number| {
            let left = self.broadcast(number, Broadcast::Left).load(Acquire);
            let sent = self.sent(number)?;
            (left > 0).then_some((number, sent, left))
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn what_is_owed_is_what_was_sent_after_the_joining_and_before_the_leaving() {
        let roster = Roster::new(None);
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
        assert_eq!(roster.leave(), 2, "it is owed what was sent before");
        assert!(roster.owes());
        roster.forgive([1].into_iter());
        assert!(!roster.owes() && roster.missing().is_empty());
        assert_eq!(roster.send(8, 300), Ok(2));
        assert_eq!(roster.sent(2).unwrap().members, 1);
    }

    #[test]
    fn listeners_are_those_who_are_there_from_the_send_to_the_result_and_who_may_be() {
        let roster = Roster::new(None);
        (0..5).for_each(|_| roster.begin());
        (0..4).for_each(|_| assert_eq!(roster.join(), 0));
        let at = |second: u64| (100 + second) * 1_000_000_000;
        assert_eq!(roster.send(7, at(0)), Ok(0));
        assert_eq!(roster.listeners(0), 4..=5, "one has no answer yet");
        roster.leave();
        assert_eq!(roster.listeners(0), 3..=5, "it may have left before it was counted");
        roster.end();
        roster.begin();
        for second in 1..4 {
            assert_eq!(roster.send(7, at(second)), Ok(second));
            assert_eq!(
                roster.listeners(second),
                3..=6,
                "the server may not know that one has ended"
            );
        }
        // That was seen to have ended after 2 s, which is 2 s ago.
        assert_eq!(roster.send(7, at(4)), Ok(4));
        assert_eq!(roster.listeners(4), 3..=5);
        assert_eq!(roster.listeners(3), 3..=6, "for what was sent before, it may have been there");
        assert_eq!(*roster.listeners(99).start(), 0, "nothing is known of it");
    }

    #[test]
    fn what_nobody_is_owed_is_not_waited_for() {
        let roster = Roster::new(None);
        assert_eq!(roster.send(1, 1), Ok(0));
        assert!(!roster.owes());
    }

    #[test]
    fn no_more_are_followed_than_there_is_room_for() {
        let roster = Roster::new(None);
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
                        lasts.fetch_add(u32::from(roster.delivered(number)), Relaxed);
                    }
                });
            }
        });
        assert_eq!(u64::from(lasts.into_inner()), BROADCASTS);
        assert!(!roster.owes());
    }

    /// As in two processes, whose members hear each other.
    #[test]
    fn what_two_share_is_one_roster() {
        let words = Box::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>());
        let (one, other) = (Roster::new(Some(words)), Roster::new(Some(words)));
        assert_eq!((one.join(), other.join()), (0, 0));
        (0..3).for_each(|_| other.begin());
        assert_eq!(one.send(7, 100), Ok(0));
        assert_eq!(other.sent(0), Some(Sent { sender: 7, at: 100, members: 2 }));
        assert!(!other.delivered(0) && other.owes());
        assert!(one.delivered(0) && !other.owes());
        assert_eq!((one.listeners(0), other.next()), (2..=3, 1));
        assert_eq!(other.leave(), 1);
        assert_eq!(one.send(7, 200), Ok(1));
        assert_eq!(other.missing(), [(1, Sent { sender: 7, at: 200, members: 1 }, 1)]);
    }
}
