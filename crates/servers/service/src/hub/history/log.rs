//! The messages of a room, in the order of their offsets.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The newest messages of a room. They have successive offsets, up to [`Log::top`].
#[derive(Debug)]
pub(super) struct Log<P> {
    top: u64,
    kept: VecDeque<Kept<P>>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept<P> {
    message: P,
    bytes: usize,
    at: Instant,
}

impl<P> Default for Log<P> {
    fn default() -> Self {
        Log { top: 0, kept: VecDeque::new(), bytes: 0 }
    }
}

impl<P> Log<P> {
    /// The memory that a message needs beside its own, in bytes.
    pub const EACH: usize = size_of::<Kept<P>>();

    /// The offset of the newest message; 0 if there was none yet.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The offset of the oldest message that is kept, or of the next one if none is.
    pub fn oldest(&self) -> u64 {
        self.top + 1 - self.kept.len() as u64
    }

    /// The number of messages that are kept, and the memory that they need, in bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    /// Adds a message, whose offset is one more than [`Log::top`]. `bytes`: the memory that it needs.
    pub fn append(&mut self, message: P, bytes: usize, now: Instant) {
        let bytes = bytes + Self::EACH;
        self.top += 1;
        self.bytes += bytes;
        self.kept.push_back(Kept { message, bytes, at: now });
    }

    /// Forgets all messages: the newest one has this offset.
    pub fn start_at(&mut self, top: u64) {
        *self = Log { top, ..Log::default() };
    }

    /// Adds a message in front, whose offset is one less than [`Log::oldest`]. It counts as new, so that it stays until those
    /// who wait for it have it.
    pub fn prepend(&mut self, message: P, bytes: usize, now: Instant) {
        let bytes = bytes + Self::EACH;
        self.bytes += bytes;
        self.kept.push_front(Kept { message, bytes, at: now });
    }

    /// Removes the oldest messages until there are at most so many, or the others are younger and need less than the
    /// `reserve`.
    pub fn keep(&mut self, messages: usize, reserve: (Duration, usize), now: Instant) {
        let (time, bytes) = reserve;
        while self.kept.len() > messages
            && self.kept.front().is_some_and(|oldest| {
                now.saturating_duration_since(oldest.at) >= time || self.bytes > bytes
            })
        {
            self.remove_oldest();
        }
    }

    /// Removes the messages that are older than this.
    pub fn expire(&mut self, time: Duration, now: Instant) {
        let is_old = |kept: &Kept<P>| now.saturating_duration_since(kept.at) >= time;
        while self.kept.front().is_some_and(is_old) {
            self.remove_oldest();
        }
    }

    /// Removes the oldest message, if there is one.
    pub fn remove_oldest(&mut self) {
        if let Some(kept) = self.kept.pop_front() {
            self.bytes -= kept.bytes;
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
        }
    }

    /// The message with this offset, if it is kept.
    pub fn get(&self, offset: u64) -> Option<&P> {
        let at = usize::try_from(offset.checked_sub(self.oldest())?).ok()?;
        self.kept.get(at).map(|kept| &kept.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_messages_come_in_front_and_stay_for_their_time() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut log = Log::default();
        log.start_at(7);
        assert_eq!((log.top(), log.oldest(), log.size()), (7, 8, (0, 0)));
        log.append(8, 10, at(1));
        log.prepend(7, 10, at(5));
        log.prepend(6, 10, at(6));
        assert_eq!((log.top(), log.oldest(), log.get(6), log.get(8)), (8, 6, Some(&6), Some(&8)));
        log.expire(Duration::from_secs(3), at(8));
        assert_eq!((log.oldest(), log.size().0), (6, 3), "the last one is old, but not the first");
        log.expire(Duration::from_secs(3), at(9));
        assert_eq!(log.size(), (0, 0));
    }

    #[test]
    fn it_keeps_the_newest_by_number_and_by_age() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut log = Log::default();
        assert_eq!((log.top(), log.oldest(), log.get(0), log.get(1)), (0, 1, None, None));
        for n in 1..=6_u64 {
            log.append(n, 10, at(n));
        }
        let all = |log: &Log<u64>| (0..9).filter_map(|at| log.get(at).copied()).collect::<Vec<_>>();
        assert_eq!(all(&log), [1, 2, 3, 4, 5, 6]);
        let each = 10 + Log::<u64>::EACH;
        log.keep(4, (Duration::from_secs(6), 6 * each), at(6));
        assert_eq!(all(&log), [1, 2, 3, 4, 5, 6], "they are in the reserve");
        log.keep(4, (Duration::from_secs(6), 6 * each - 1), at(6));
        assert_eq!(all(&log), [2, 3, 4, 5, 6], "too many bytes");
        log.keep(4, (Duration::from_secs(4), 6 * each), at(6));
        assert_eq!((all(&log), log.get(3), log.get(u64::MAX)), (vec![3, 4, 5, 6], Some(&3), None));
        log.expire(Duration::from_secs(3), at(7));
        assert_eq!((all(&log), log.oldest()), (vec![5, 6], 5), "exactly the time is too old");
        assert_eq!(log.size(), (2, 2 * (10 + Log::<u64>::EACH)));
        log.expire(Duration::from_secs(3), at(60));
        assert_eq!((log.top(), log.oldest(), log.size()), (6, 7, (0, 0)));
    }
}
