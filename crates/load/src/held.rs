//! Last bytes of requests that are held back: whose, since when, and how many more. What that is for
//! stands in `worker::holding`.

use crate::{
    Plan, Until,
    clock::{MS, Nanos},
    shared::Phase,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::VecDeque;

/// Of a connection whose last byte is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// When it is to be written.
    pub until: Nanos,
    /// Requests that were asked for since then, and are not written at all.
    pub behind: u32,
}

impl Held {
    /// `k` more requests are asked for.
    pub fn asks(&mut self, k: u32) {
        self.behind += k;
    }
}

/// How long a byte is held back. A server that has not read it has nothing to say for as long.
const HELD: Nanos = 50 * MS;
/// How many are held back by a thread, in the warm-up and after the window, at most one for each of its
/// connections.
const SAMPLE: u32 = 8;
/// Longest pause between two of the warm-up.
const PAUSE: Nanos = 20 * MS;

/// What one thread holds back.
pub(crate) struct Holding {
    /// None at all.
    never: bool,
    sample: u32,
    /// How many more are to be held back in this phase.
    left: u32,
    /// The next one not before this moment.
    next: Nanos,
    random: SmallRng,
    /// When to release which slots; the earliest first.
    held: VecDeque<(Nanos, u32)>,
}

impl Holding {
    /// Of the thread of this number with so many connections that ask.
    pub fn new(plan: &Plan, thread: usize, active: usize) -> Self {
        let by_time = matches!(plan.until, Until::Elapsed(_));
        Holding {
            never: !plan.withholds || !by_time || plan.tls.is_some(),
            sample: SAMPLE.min(active as u32),
            left: 0,
            next: 0,
            random: SmallRng::seed_from_u64(plan.seed ^ (thread as u64) << 32),
            held: VecDeque::new(),
        }
    }

    /// When the next byte is due; never, where none is held back.
    pub fn due(&self) -> Nanos {
        self.held.front().map_or(Nanos::MAX, |(due, _)| *due)
    }

    /// Whether the end of what is to be written now, so many bytes, is held back.
    pub fn takes(&mut self, phase: Phase, bytes: usize, now: Nanos) -> bool {
        let may = self.left > 0 && bytes > 1;
        if !may || (phase == Phase::WarmingUp && now < self.next) {
            return false;
        }
        self.left -= 1;
        self.next = now + self.random.random_range(0..PAUSE);
        true
    }

    /// A phase begins in which a sample is to be taken, or none.
    pub fn begin(&mut self, samples: bool, now: Nanos) {
        self.left = if samples && !self.never { self.sample } else { 0 };
        self.next = now + self.random.random_range(0..PAUSE);
    }

    /// Whether more are to be held back in this phase.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.left > 0
    }

    /// From now on a byte of the connection in this slot is held back.
    pub fn hold(&mut self, slot: u32, now: Nanos) -> Held {
        let until = now + HELD;
        self.held.push_back((until, slot));
        Held { until, behind: 0 }
    }

    /// Takes the next byte off that was due until `now`: since when, and in which slot.
    pub fn next_due(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        self.held.pop_front_if(|(due, _)| *due <= now)
    }
}
