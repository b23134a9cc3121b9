//! An injected handicap: a service that burns a known number of nanoseconds of CPU before each
//! call. It tests whether a referee detects a known difference. A server without the handicap
//! contains none of this code.

use regatta_service::{CallOutcome, Codec, Now, Service};
use std::time::{Duration, Instant};

/// Number of calls per timing.
const CALLS: u32 = 2_000;
/// Number of timings, of which the fastest counts: losing the CPU makes a timing longer, never
/// shorter.
const TIMINGS: u32 = 10;
/// Maximum excess of a call, in nanoseconds, that the next calls compensate by burning less: some readings of the
/// clock, and handlers of interrupts, whose time the kernel counts as that of the process that they interrupt. After
/// a longer excess, another process had the CPU.
const MOST_CARRIED: i64 = 100_000;

/// A service with a handicap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burning<S> {
    burn: Burn,
    began: Instant,
    service: S,
}

impl<S> Burning<S> {
    /// Burns `cost` before each call of `service`, on average and including its own overhead.
    /// Calibrates itself for some milliseconds. The minimum is the time of two clock readings.
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
    ) -> CallOutcome<S::Job> {
        let began = self.began;
        self.burn.spend(|| age(began));
        self.service.call(local, now, request, reply)
    }

    fn end(&mut self, reply: &mut Vec<u8>) {
        self.service.end(reply);
    }
}

#[inline]
fn age(began: Instant) -> i64 {
    began.elapsed().as_nanos() as i64
}

/// Spins on the clock. A reading takes about 25 ns, so a single spin overruns by a part of that.
/// The next one is shorter by as much, which makes the mean exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Burn {
    /// The average cost of a spin in nanoseconds, without the parts that it cannot measure: those
    /// before its first reading and after its last.
    seen: i64,
    /// The total deficit of the spins so far in nanoseconds; negative if they burnt too much.
    owed: i64,
}

impl Burn {
    /// Creates a spin of `cost` nanoseconds. `time` measures the average cost of a spin.
    fn calibrated(cost: i64, mut time: impl FnMut(Burn) -> f64) -> Burn {
        // The unmeasured part is the same for long and short spins, and short ones are timed
        // faster.
        let seen = cost.min(1_000);
        let costs =
            (0..TIMINGS).map(|_| time(Burn { seen, owed: 0 })).fold(f64::INFINITY, f64::min);
        let unseen = costs.round() as i64 - seen;
        Burn { seen: cost - unseen, owed: 0 }
    }

    /// Spins once. `clock` returns nanoseconds.
    #[inline]
    fn spend(&mut self, clock: impl Fn() -> i64) {
        self.owed += self.seen;
        let began = clock();
        loop {
            let spent = clock() - began;
            if spent >= self.owed {
                let (left, excess) = (self.owed.min(0), spent - self.owed.max(0));
                self.owed = left - if excess <= MOST_CARRIED { excess } else { 0 };
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A simulated clock without disturbances. Each reading takes a fixed time.
    struct Clock {
        now: Cell<i64>,
        reading: i64,
    }

    impl Clock {
        fn read(&self) -> i64 {
            self.now.set(self.now.get() + self.reading);
            self.now.get()
        }

        /// Returns the average cost of a spin, including the part of a call outside of its
        /// readings.
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
    fn a_calibrated_burn_has_the_requested_mean() {
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
    fn disturbed_timings_are_ignored() {
        let mut calls = 0;
        let burn = Burn::calibrated(300, |burn| {
            calls += 1;
            let disturbed = if calls % 2 == 0 { 10_000.0 } else { 0.0 };
            burn.seen as f64 + 47.0 + disturbed
        });
        assert_eq!(burn, Burn { seen: 253, owed: 0 });
    }

    #[test]
    fn time_of_interrupts_is_burnt_and_that_of_other_processes_is_not() {
        let jumped = |jump: i64| {
            let clock = Clock { now: Cell::new(0), reading: 10 };
            let mut burn = Burn { seen: 500, owed: 0 };
            burn.spend(|| clock.read() + if clock.now.get() > 10 { jump } else { 0 });
            (burn, clock)
        };
        let owed = |jump| jumped(jump).0.owed;
        assert_eq!(owed(MOST_CARRIED + 490), -MOST_CARRIED);
        assert_eq!(owed(MOST_CARRIED + 491), 0);
        let (mut burn, clock) = jumped(1_190);
        let spends = [(); 3].map(|()| {
            let before = clock.now.get();
            burn.spend(|| clock.read());
            clock.now.get() - before
        });
        assert_eq!(spends, [20, 300, 510], "the reading before, and what is still owed");
    }

    #[test]
    fn the_minimum_is_two_readings() {
        let clock = Clock { now: Cell::new(0), reading: 40 };
        let burn = Burn::calibrated(10, |burn| clock.cost_of(burn));
        assert_eq!(clock.cost_of(burn), 87.0);
    }
}
