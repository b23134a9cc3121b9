//! A planted handicap: a service that burns a known number of nanoseconds of CPU before each call.
//! It shows whether a referee finds a difference that is known. A server without it runs code that
//! knows nothing of it.

use regatta_service::{Called, Codec, Now, Service};
use std::time::{Duration, Instant};

/// Calls of one timing.
const CALLS: u32 = 2_000;
/// Timings, of which the fastest counts: whoever takes the CPU away meanwhile makes a timing longer,
/// never shorter.
const TIMINGS: u32 = 10;
/// Most that a call may have burnt too much for the next one to burn less, nanoseconds: some
/// readings of the clock. More than that was somebody else's time, not burnt by us.
const MOST_CARRIED: i64 = 200;

/// A service behind a burn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burning<S> {
    burn: Burn,
    began: Instant,
    service: S,
}

impl<S> Burning<S> {
    /// Burns `cost` before each call of `service`, on average, all of it included. Calibrates itself
    /// for some milliseconds. Less than two readings of the clock cannot be burnt.
    pub(crate) fn new(cost: Duration, service: S) -> Self {
        let began = Instant::now();
        let cost = cost.as_nanos() as i64;
        let burn = Burn::calibrated(cost, |mut burn| {
            let before = Instant::now();
            for _ in 0..CALLS {
                std::hint::black_box(&mut burn).spend(|| age(began));
            }
            before.elapsed().as_nanos() as f64 / f64::from(CALLS)
        });
        Burning { burn, began, service }
    }
}

impl<S: Service> Service for Burning<S> {
    type Codec = S::Codec;
    type Job = S::Job;
    type Local = S::Local;

    #[inline]
    fn call(
        &mut self,
        local: &mut S::Local,
        now: Now,
        request: <S::Codec as Codec>::Request<'_>,
        reply: &mut Vec<u8>,
    ) -> Called<S::Job> {
        let began = self.began;
        self.burn.spend(|| age(began));
        self.service.call(local, now, request, reply)
    }
}

#[inline]
fn age(began: Instant) -> i64 {
    began.elapsed().as_nanos() as i64
}

/// Spins on the clock. A reading takes some 25 ns, so a single spin is longer than it should be by a
/// part of that; the next one is shorter by as much, which makes the mean exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Burn {
    /// What a spin costs on average, less what it cannot see of itself: what comes before its
    /// first reading and after its last. Nanoseconds.
    seen: i64,
    /// What the spins until now have burnt too little; below 0: too much. Nanoseconds.
    owed: i64,
}

impl Burn {
    /// A spin of `cost` nanoseconds. `time` tells what such a spin costs on average.
    fn calibrated(cost: i64, mut time: impl FnMut(Burn) -> f64) -> Burn {
        // What is not seen is the same for long spins and short ones, and these are soon timed.
        let seen = cost.min(1_000);
        let costs =
            (0..TIMINGS).map(|_| time(Burn { seen, owed: 0 })).fold(f64::INFINITY, f64::min);
        let unseen = costs.round() as i64 - seen;
        Burn { seen: cost - unseen, owed: 0 }
    }

    /// `clock` tells nanoseconds.
    #[inline]
    fn spend(&mut self, clock: impl Fn() -> i64) {
        self.owed += self.seen;
        let began = clock();
        loop {
            let spent = clock() - began;
            if spent >= self.owed {
                self.owed = (self.owed - spent).max(-MOST_CARRIED);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock of which each reading takes its time, and that nobody disturbs.
    struct Clock {
        now: Cell<i64>,
        reading: i64,
    }

    impl Clock {
        fn read(&self) -> i64 {
            self.now.set(self.now.get() + self.reading);
            self.now.get()
        }

        /// What a spin costs on average, with what a call takes beside its readings.
        fn cost_of(&self, mut burn: Burn) -> f64 {
            const BESIDE: i64 = 7;
            let began = self.now.get();
            for _ in 0..1_000 {
                burn.spend(|| self.read());
                self.now.set(self.now.get() + BESIDE);
            }
            (self.now.get() - began) as f64 / 1_000.0
        }
    }

    #[test]
    fn calibrated_the_mean_is_what_was_asked() {
        for reading in [1, 19, 25, 40] {
            for cost in [100, 150, 500, 1_500] {
                let clock = Clock { now: Cell::new(0), reading };
                let burn = Burn::calibrated(cost, |burn| clock.cost_of(burn));
                let costs = clock.cost_of(burn);
                let off = (costs - cost as f64).abs();
                assert!(off < 1.0, "readings of {reading} ns: {costs} ns instead of {cost}");
            }
        }
    }

    #[test]
    fn disturbed_timings_do_not_count() {
        let mut calls = 0;
        let burn = Burn::calibrated(300, |burn| {
            calls += 1;
            let disturbed = if calls % 2 == 0 { 10_000.0 } else { 0.0 };
            burn.seen as f64 + 47.0 + disturbed
        });
        assert_eq!(burn, Burn { seen: 253, owed: 0 });
    }

    #[test]
    fn time_that_was_taken_from_a_spin_is_not_saved_by_the_next_ones() {
        let clock = Clock { now: Cell::new(0), reading: 10 };
        let mut burn = Burn { seen: 500, owed: 0 };
        let jump = Cell::new(5_000_000);
        burn.spend(|| clock.read() + if clock.now.get() > 10 { jump.get() } else { 0 });
        assert_eq!(burn.owed, -MOST_CARRIED);
        let before = clock.now.get();
        burn.spend(|| clock.read());
        assert_eq!(clock.now.get() - before, 310, "the reading before, and 300 of the 500");
    }

    #[test]
    fn the_least_is_two_readings() {
        let clock = Clock { now: Cell::new(0), reading: 40 };
        let burn = Burn::calibrated(10, |burn| clock.cost_of(burn));
        assert_eq!(clock.cost_of(burn), 87.0);
    }
}
