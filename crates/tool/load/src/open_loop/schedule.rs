//! The send times of an open loop: computed ahead, in nanoseconds, from a seed. Reads no clock; times
//! count from the start of the schedule.
//!
//! All threads share one schedule and take its sends in turn: thread `i % threads` takes send `i`. So
//! the arrivals do not depend on the number of threads, nor on the number of processes that run them.
//! Each thread also draws the gaps of the others, which costs a few nanoseconds each.

use crate::clock::{Nanos, SECOND};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_record::Arrivals;
use std::{collections::VecDeque, num::NonZeroU32};

/// Maximum number of sends computed ahead: 512 KiB, enough for a few seconds at usual rates.
const AHEAD: usize = 1 << 16;
/// Number of sends that [`Schedule::make_ahead`] adds. This takes a microsecond or two per thread of the
/// load.
const PORTION: usize = 64;

/// The load thread that a schedule is for, and the number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub thread: usize,
    pub threads: usize,
}

impl Part {
    /// This thread's share of `n` items that the threads take in turn.
    pub fn share(self, n: usize) -> usize {
        n / self.threads + usize::from(self.thread < n % self.threads)
    }
}

/// The intended sends of one load thread, in order. It is endless; the caller decides when to stop.
pub(crate) struct Schedule {
    source: Source,
    /// Computed sends that were not taken yet. Never empty.
    ahead: VecDeque<Nanos>,
}

impl Schedule {
    /// `stream` distinguishes schedules with the same seed.
    pub fn new(arrivals: Arrivals, rate: NonZeroU32, part: Part, seed: u64, stream: u64) -> Self {
        let source = Source::new(arrivals, rate, part, seed, stream);
        let mut schedule = Schedule { source, ahead: VecDeque::with_capacity(AHEAD) };
        schedule.ahead.extend((0..AHEAD).map(|_| schedule.source.next()));
        schedule
    }

    /// Replaces it by another schedule, as [`Schedule::new`] would create it with stream 0, but computes
    /// only a few sends now.
    pub fn restart(&mut self, arrivals: Arrivals, rate: NonZeroU32, part: Part, seed: u64) {
        self.source = Source::new(arrivals, rate, part, seed, 0);
        self.ahead.clear();
        self.ahead.extend((0..PORTION).map(|_| self.source.next()));
    }

    /// Returns the next send, counted from the start.
    #[inline]
    pub fn first(&self) -> Nanos {
        self.ahead[0]
    }

    /// Takes the next send. Computes a new one only if it was the last.
    #[inline]
    pub fn take(&mut self) -> Nanos {
        if self.ahead.len() == 1 {
            self.ahead.push_back(self.source.next());
        }
        self.ahead.pop_front().unwrap_or(Nanos::MAX)
    }

    /// Computes [`PORTION`] more sends, if at least as many were taken. For moments when nothing is due.
    pub fn make_ahead(&mut self) {
        if self.ahead.len() + PORTION <= AHEAD {
            self.ahead.extend((0..PORTION).map(|_| self.source.next()));
        }
    }
}

/// Computes sends, one after the other.
enum Source {
    Poisson {
        random: Box<StdRng>,
        mean_gap: f64,
        /// Time of the last send in nanoseconds, with a fraction. After a day its resolution is still a
        /// 64th of a nanosecond.
        at: f64,
        /// Sends of other threads before the next one.
        skip: usize,
        /// Sends of other threads between two of this thread.
        others: usize,
    },
    Constant {
        rate: u64,
        /// Number of the next send, counted over all threads.
        next: u64,
        step: u64,
    },
}

impl Source {
    fn new(arrivals: Arrivals, rate: NonZeroU32, part: Part, seed: u64, stream: u64) -> Self {
        match arrivals {
            Arrivals::Poisson => Source::poisson(rate, part, seed, stream),
            Arrivals::Constant => Source::constant(rate, part),
        }
    }

    fn poisson(rate: NonZeroU32, part: Part, seed: u64, stream: u64) -> Self {
        // Odd multiples of the golden ratio: no stream starts with the same seed as another stream or
        // as the requests.
        let nth = 2 * stream + 1;
        let random =
            Box::new(StdRng::seed_from_u64(seed ^ nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let mean_gap = SECOND as f64 / f64::from(rate.get());
        let (skip, others) = (part.thread, part.threads - 1);
        Source::Poisson { random, mean_gap, at: 0.0, skip, others }
    }

    fn constant(rate: NonZeroU32, Part { thread, threads }: Part) -> Self {
        Source::Constant { rate: rate.get().into(), next: thread as u64, step: threads as u64 }
    }

    #[inline]
    fn next(&mut self) -> Nanos {
        match self {
            Source::Poisson { random, mean_gap, at, skip, others } => {
                // Gaps are added one at a time, so that all threads round in the same way.
                for _ in 0..=std::mem::replace(skip, *others) {
                    // The inverse of the exponential distribution function (Devroye, "Non-Uniform
                    // Random Variate Generation", 1986, II.2).
                    *at -= *mean_gap * (1.0 - random.random::<f64>()).ln();
                }
                *at as Nanos
            }
            Source::Constant { rate, next, step } => {
                let i = *next;
                *next += *step;
                // In two steps, because `i * SECOND` would overflow after half an hour at
                // `Plan::MAX_RATE`.
                i / *rate * SECOND + i % *rate * SECOND / *rate
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MS;

    fn schedule(arrivals: Arrivals, rate: u32, part: Part, seed: u64, stream: u64) -> Schedule {
        Schedule::new(arrivals, NonZeroU32::new(rate).unwrap(), part, seed, stream)
    }

    const ALONE: Part = Part { thread: 0, threads: 1 };

    fn until(mut schedule: Schedule, end: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| (schedule.first() < end).then(|| schedule.take())).collect()
    }

    #[test]
    fn constant_threads_interleave_at_even_intervals_and_share_exactly() {
        let mut all = Vec::new();
        for thread in 0..3 {
            let part = Part { thread, threads: 3 };
            all.extend(until(schedule(Arrivals::Constant, 40_000, part, 1, 0), 250 * MS));
        }
        all.sort_unstable();
        assert_eq!(all, (0..10_000).map(|i| i * 25_000).collect::<Vec<_>>());
    }

    #[test]
    fn the_highest_constant_rate_does_not_overflow_in_a_long_run() {
        let rate = NonZeroU32::MAX;
        let mut source = Source::constant(rate, ALONE);
        let Source::Constant { next, .. } = &mut source else { unreachable!() };
        *next = 86_400 * u64::from(rate.get());
        assert_eq!(source.next(), 86_400 * SECOND);
    }

    #[test]
    fn the_schedule_does_not_depend_on_the_number_of_threads() {
        for arrivals in Arrivals::ALL {
            let of = |threads| {
                let of_one = |thread| {
                    let part = Part { thread, threads };
                    until(schedule(arrivals, 10_000, part, 7, 0), 10 * SECOND)
                };
                let mut all: Vec<Nanos> = (0..threads).flat_map(of_one).collect();
                all.sort_unstable();
                all
            };
            let alone = of(1);
            // 100,000 are expected, of Poisson arrivals with a standard deviation of 316.
            assert!((98_500..101_500).contains(&alone.len()), "{}", alone.len());
            for threads in [2, 3, 9] {
                assert!(of(threads) == alone, "{arrivals:?} of {threads} threads");
            }
        }
    }

    #[test]
    fn a_seed_determines_the_schedule_and_threads_and_streams_differ() {
        let first = |seed, thread, stream| {
            let part = Part { thread, threads: 2 };
            until(schedule(Arrivals::Poisson, 1_000, part, seed, stream), SECOND)
        };
        assert_eq!(first(1, 0, 0), first(1, 0, 0));
        let all = [first(1, 0, 0), first(1, 1, 0), first(1, 0, 1), first(1, 1, 1), first(2, 0, 0)];
        for (i, one) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|other| other != one));
        }
    }

    #[test]
    fn a_restarted_schedule_is_the_new_one_of_its_seed() {
        for arrivals in Arrivals::ALL {
            let part = Part { thread: 1, threads: 3 };
            let mut restarted = schedule(arrivals, 5_000, part, 1, 4);
            restarted.take();
            restarted.restart(arrivals, NonZeroU32::new(5_000).unwrap(), part, 9);
            let new = until(schedule(arrivals, 5_000, part, 9, 0), SECOND);
            assert_eq!(until(restarted, SECOND), new, "{arrivals:?}");
        }
    }

    #[test]
    fn sends_made_later_continue_those_made_at_the_start() {
        let (mut dry, mut fed) = (
            schedule(Arrivals::Poisson, 1_000, ALONE, 3, 0),
            schedule(Arrivals::Poisson, 1_000, ALONE, 3, 0),
        );
        for i in 0..3 * AHEAD {
            if i % 50 == 0 {
                fed.make_ahead();
            }
            assert_eq!(dry.first(), fed.first());
            assert_eq!(dry.take(), fed.take());
        }
        assert!(fed.ahead.len() > AHEAD / 2 && fed.ahead.capacity() < 2 * AHEAD);
    }
}
