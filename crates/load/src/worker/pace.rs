//! A fixed rate on one load thread: when each request is due, and which connection sends it.
//!
//! A request that is due while every connection has its pipeline full is sent as soon as one is
//! answered. Latency counts from when a request is written, not from when it was due: it is service
//! time only, and says nothing of how long requests waited to be sent.

use super::{Worker, turns::Turns};
use crate::{
    clock::{self, Nanos, SECOND},
    connection::State,
};
use std::num::NonZeroU32;

/// The schedule of one load thread, and the connections that may send.
pub(super) struct Pace {
    schedule: Schedule,
    pub turns: Turns,
}

impl Pace {
    pub fn new(rate: NonZeroU32, thread: usize, threads: usize, slots: usize) -> Self {
        Pace { schedule: Schedule::new(rate, thread, threads), turns: Turns::new(slots) }
    }

    /// A fresh schedule from this moment on; what was due and not sent is forgotten.
    pub fn begin(&mut self, start: Nanos, end: Nanos) {
        self.schedule.begin(start, end);
    }

    /// When the next request is due; never, when all were sent.
    pub fn next_due(&self) -> Nanos {
        self.schedule.due()
    }

    /// How many requests of this thread were due before `now` and are not sent.
    pub fn unsent(&self, now: Nanos) -> u64 {
        self.schedule.waiting(now)
    }
}

impl Worker<'_> {
    /// Sends what is due, as far as connections are free.
    pub(super) fn send_due(&mut self) {
        if self.depth == 0 || self.pace.is_none() {
            return;
        }
        loop {
            self.now = clock::now();
            let Some(pace) = self.pace.as_mut().filter(|pace| pace.next_due() <= self.now) else {
                return;
            };
            let Some((slot, since)) = pace.turns.next() else { return };
            let connection = &self.connections[slot as usize];
            let owed = connection.cursor.owed();
            if connection.state != State::Open || owed >= self.depth {
                continue;
            }
            pace.schedule.sent();
            if owed + 1 < self.depth {
                pace.turns.freed(slot, since);
            }
            self.ask(slot, 1);
        }
    }
}

/// When the requests of one thread are due: request `i` of all threads is due `i / rate` seconds
/// after the start, and every thread has each `threads`-th of them.
#[derive(Debug)]
struct Schedule {
    rate: u64,
    first: u64,
    step: u64,
    start: Nanos,
    end: Nanos,
    /// The next request to send, counted over all threads.
    next: u64,
    due: Nanos,
}

impl Schedule {
    fn new(rate: NonZeroU32, thread: usize, threads: usize) -> Self {
        let (first, step) = (thread as u64, threads as u64);
        let rate = u64::from(rate.get());
        Schedule { rate, first, step, start: 0, end: 0, next: first, due: Nanos::MAX }
    }

    /// Requests that would be due at `end` or later are not.
    fn begin(&mut self, start: Nanos, end: Nanos) {
        (self.start, self.end, self.next) = (start, end, self.first);
        self.due = self.due_of(self.next);
    }

    fn due(&self) -> Nanos {
        self.due
    }

    /// The request that was due next is sent.
    fn sent(&mut self) {
        self.next += self.step;
        self.due = self.due_of(self.next);
    }

    fn due_of(&self, i: u64) -> Nanos {
        // In two steps: `i * SECOND` alone would overflow after some minutes at a high rate.
        let due = self.start + i / self.rate * SECOND + i % self.rate * SECOND / self.rate;
        if due < self.end { due } else { Nanos::MAX }
    }

    /// Requests that were due before `now` and are not sent.
    fn waiting(&self, now: Nanos) -> u64 {
        let elapsed = u128::from(now.min(self.end).saturating_sub(self.start));
        // Request i is due before then if i * SECOND < elapsed * rate, rounded down to nanoseconds.
        let due = (elapsed * u128::from(self.rate)).div_ceil(u128::from(SECOND)) as u64;
        due.saturating_sub(self.next).div_ceil(self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MS;

    fn schedule(rate: u32, thread: usize, threads: usize) -> Schedule {
        Schedule::new(NonZeroU32::new(rate).unwrap(), thread, threads)
    }

    #[test]
    fn threads_interleave_at_even_intervals_and_share_exactly() {
        let (start, end) = (7 * SECOND, 7 * SECOND + 250 * MS);
        let mut all = Vec::new();
        for thread in 0..3 {
            let mut schedule = schedule(40_000, thread, 3);
            schedule.begin(start, end);
            let due_in_all = schedule.waiting(Nanos::MAX);
            let before = all.len();
            while schedule.due() < Nanos::MAX {
                all.push(schedule.due());
                schedule.sent();
            }
            assert_eq!((all.len() - before) as u64, due_in_all);
            assert_eq!(schedule.waiting(Nanos::MAX), 0);
        }
        all.sort_unstable();
        let even: Vec<_> = (0..10_000).map(|i| start + i * 25_000).collect();
        assert_eq!(all, even);
    }

    #[test]
    fn what_waits_is_what_was_due_and_is_not_sent() {
        let mut schedule = schedule(1_000, 1, 2);
        schedule.begin(0, SECOND);
        assert_eq!(
            [0, MS, MS + 1, 3 * MS, 3 * MS + 1].map(|at| schedule.waiting(at)),
            [0, 0, 1, 1, 2]
        );
        schedule.sent();
        assert_eq!(schedule.waiting(3 * MS + 1), 1);
        assert_eq!(schedule.waiting(10 * SECOND), 499);
    }

    #[test]
    fn the_highest_rate_does_not_overflow_in_a_long_run() {
        let mut schedule = schedule(u32::MAX, 0, 1);
        schedule.begin(SECOND, Nanos::MAX);
        schedule.next = 86_400 * u64::from(u32::MAX) - 1;
        schedule.sent();
        assert_eq!(schedule.due(), 86_401 * SECOND);
    }
}
