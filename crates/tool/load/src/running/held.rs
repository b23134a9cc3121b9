//! Bookkeeping of the last bytes of requests that are held back: which connections, until when, and how
//! many more. `worker::holding` explains the purpose.

use crate::{
    Plan, Until,
    clock::{MS, Nanos},
    running::shared::Phase,
    sockets::connection::Held,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::VecDeque;

/// How long a byte is held back. A correct server cannot reply in that time.
const HELD: Nanos = 50 * MS;
/// Number of bytes that a thread holds back in the warm-up, and again after the window; at most its
/// number of active connections.
const SAMPLE: u32 = 8;
/// Upper limit of the random pause in the warm-up before a thread may hold back its next byte.
const PAUSE: Nanos = 20 * MS;

/// The bytes that one thread holds back.
pub(crate) struct Holding {
    /// Never hold back a byte.
    never: bool,
    sample: u32,
    /// Bytes still to be held back in this phase.
    left: u32,
    /// Earliest time for the next one in the warm-up.
    next: Nanos,
    random: SmallRng,
    /// Slots with the time to release them, earliest first.
    held: VecDeque<(Nanos, u32)>,
}

impl Holding {
    /// For load thread `thread` with `active` active connections.
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

    /// When the next byte is due; [`Nanos::MAX`] if none is held back.
    pub fn due(&self) -> Nanos {
        self.held.front().map_or(Nanos::MAX, |(due, _)| *due)
    }

    /// Whether to hold back the last of the `bytes` bytes that would be written now.
    pub fn takes(&mut self, phase: Phase, bytes: usize, now: Nanos) -> bool {
        let may = self.left > 0 && bytes > 1;
        if !may || (phase == Phase::WarmingUp && now < self.next) {
            return false;
        }
        self.left -= 1;
        self.next = now + self.random.random_range(0..PAUSE);
        true
    }

    /// Starts a phase, with or without a sample.
    pub fn begin(&mut self, samples: bool, now: Nanos) {
        self.left = if samples && !self.never { self.sample } else { 0 };
        self.next = now + self.random.random_range(0..PAUSE);
    }

    /// Whether more bytes are to be held back in this phase.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.left > 0
    }

    /// Holds back a byte of the connection in this slot from now on.
    pub fn hold(&mut self, slot: u32, now: Nanos) -> Held {
        let until = now + HELD;
        self.held.push_back((until, slot));
        Held { until, behind: 0 }
    }

    /// Removes the next byte that is due at `now`: returns its due time and its slot.
    pub fn next_due(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        self.held.pop_front_if(|(due, _)| *due <= now)
    }
}
