//! Checks whether requests arrived with the requested distribution. The check runs over the times at
//! which a thread sent them, less the wait for a free connection, in constant memory. Reads no clock.
//!
//! Each thread's gaps are counted separately and then merged: threads take the sends of one schedule in
//! turn, so a gap of one of `n` threads is the sum of `n` gaps of the schedule. Consecutive gaps are
//! added up to *strides* with an expected length of at least half a millisecond (shorter above a million
//! requests per second), because a write takes microseconds and two requests that are due at once cannot
//! be written at once. Users notice only bunching over longer times.

use crate::clock::Nanos;
use regatta_record::{ArrivalCheck, Arrivals, ArrivalsSeen};

/// Minimum expected length of a stride, in nanoseconds, unless [`MOST_GAPS`] limits it.
const SHORTEST_STRIDE: f64 = 500_000.0;
/// Maximum number of gaps of the schedule in a stride: enough at any rate that a machine can reach, and
/// few enough to keep [`erlang`] fast.
const MOST_GAPS: usize = 500;
/// Number of steps in which the distribution function is counted.
const STEPS: usize = 1_000;
/// Number of parts of the window whose rates are compared.
const TENTHS: usize = 10;

/// Tolerance of the Kolmogorov-Smirnov distance, in addition to chance (like the next three
/// tolerances). Beyond it, percentiles up to the 95th could shift.
const DISTANCE: f64 = 0.05;
/// Tolerance of the correlation of a stride with the next one. At 0.1 the variance of counts over long
/// times is 20% above that of independent arrivals, and so is the mean queue that they cause.
const CORRELATION: f64 = 0.1;
/// Relative tolerance of the mean rate against the requested rate.
const RATE: f64 = 0.01;
/// Relative tolerance of the rate of a tenth of the window against the mean.
const UNSTEADINESS: f64 = 0.05;
/// Tolerance of the length of a constant stride: the delay of a wake-up, or a share of the length,
/// whichever is larger.
const OFF_NS: f64 = 50_000.0;
const OFF: f64 = 0.05;

/// Arrivals of one thread so far.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    asked: Asked,
    last: Option<Nanos>,
    /// The current stride: its number of gaps so far, and when it began.
    under_way: (u32, Nanos),
    /// Length of the previous stride.
    before: Option<u64>,
    /// Start of the window, and length of a tenth of it.
    window: (Nanos, Nanos),
    /// Length of the slices of a lane so far. Their arrivals count as if one followed the other.
    slices: Nanos,
    /// Subtracted from moments: the time before the first slice, and between slices.
    rested: Nanos,
    seen: ArrivalsSeen,
}

impl Seen {
    /// No arrivals yet, of a thread that sends `1 / threads` of the `rate` per second.
    pub fn new(arrivals: Arrivals, rate: u32, threads: usize) -> Self {
        let asked = Asked::new(arrivals, rate, threads);
        Seen {
            last: None,
            under_way: (0, 0),
            before: None,
            window: (0, 1),
            slices: 0,
            rested: 0,
            seen: ArrivalsSeen::nothing(asked.gaps, STEPS + 1),
            asked,
        }
    }

    /// Counts the arrivals from now on for this window.
    pub fn window_opens(&mut self, at: Nanos, length: Nanos) {
        self.window = (at, (length / TENTHS as u64).max(1));
        self.seen.tenths = [0; TENTHS];
    }

    /// Counts the arrivals from now on for this slice of a lane.
    pub fn slice_opens(&mut self, at: Nanos, length: Nanos) {
        self.rested = at.saturating_sub(self.slices);
        self.slices += length;
        self.window = (at, (length / TENTHS as u64).max(1));
    }

    /// Takes the arrivals so far. The next ones continue the current stride.
    pub fn take(&mut self) -> Seen {
        let next = Seen { seen: ArrivalsSeen::nothing(self.asked.gaps, STEPS + 1), ..self.clone() };
        std::mem::replace(self, next)
    }

    /// Records a request that arrived at this moment. Moments are in order, or nearly.
    #[inline]
    pub fn arrived(&mut self, at: Nanos) {
        let (opened, tenth) = self.window;
        let tenth = (at.saturating_sub(opened) / tenth) as usize;
        self.seen.tenths[tenth.min(TENTHS - 1)] += 1;
        let at = at - self.rested;
        let Some(last) = self.last.replace(at) else {
            self.under_way = (0, at);
            return;
        };
        self.under_way.0 += 1;
        if self.under_way.0 == self.asked.gaps {
            let began = std::mem::replace(&mut self.under_way, (0, at)).1;
            self.stride(at.max(last).saturating_sub(began));
        }
    }

    fn stride(&mut self, length: Nanos) {
        let place = self.asked.place(length as f64);
        let length = self.asked.in_units(length as f64);
        let seen = &mut self.seen;
        seen.places[(place * STEPS as f64) as usize] += 1;
        seen.strides += 1;
        seen.sum += u128::from(length);
        seen.squares += u128::from(length) * u128::from(length);
        if let Some(before) = self.before.replace(length) {
            seen.pairs += 1;
            seen.products += u128::from(before) * u128::from(length);
        }
    }

    /// Returns the counts, to be merged with those of other threads.
    pub fn seen(self) -> ArrivalsSeen {
        self.seen
    }
}

/// The requested arrivals of a load, as each of its threads needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    arrivals: Arrivals,
    /// Requests of all threads per nanosecond.
    rate: f64,
    /// Number of gaps in a stride of one thread, and of gaps of the schedule in it.
    gaps: u32,
    gaps_of_all: u32,
    /// The share of the requests whose arrivals are checked.
    share: f64,
}

impl Asked {
    /// For a load with `threads` threads and `rate` requests per second.
    pub fn new(arrivals: Arrivals, rate: u32, threads: usize) -> Self {
        let rate = f64::from(rate) / 1e9;
        let most = (MOST_GAPS / threads).max(1);
        let gaps = (SHORTEST_STRIDE * rate / threads as f64).ceil().clamp(1.0, most as f64) as u32;
        Asked { arrivals, rate, gaps, gaps_of_all: gaps * threads as u32, share: 1.0 }
    }

    /// Only this share of the requests is checked, e.g. those of half of the threads.
    pub fn of_share(self, share: f64) -> Self {
        Asked { share, ..self }
    }

    /// Expected length of a stride, in nanoseconds.
    fn expected(&self) -> f64 {
        f64::from(self.gaps_of_all) / self.rate
    }

    /// The requested distribution function at this length: the share of shorter strides.
    fn place(&self, length: f64) -> f64 {
        match self.arrivals {
            Arrivals::Poisson => erlang(self.gaps_of_all, length * self.rate),
            Arrivals::Constant => even(length, self.expected()),
        }
    }

    fn in_units(&self, length: f64) -> u64 {
        (length / self.expected() * ArrivalsSeen::UNIT) as u64
    }

    /// Checks the merged counts of all threads, or of those of [`Asked::of_share`]. `window_ns` is the requested and the actual length of
    /// the window.
    pub fn check(&self, seen: &ArrivalsSeen, window_ns: (Nanos, Nanos)) -> ArrivalCheck {
        let (strides, arrived) = (seen.strides, seen.tenths.iter().sum::<u64>());
        let window = window_ns.1.max(1) as f64;
        let rate = arrived as f64 / window;
        let mut check = ArrivalCheck {
            gaps: strides * u64::from(self.gaps),
            rate_per_s: rate * 1e9,
            distance: self.distance(seen),
            lag1: correlation(seen),
            unsteadiness: unsteadiness(seen, window_ns),
            kept: true,
        };
        // Chance: 4 standard deviations for a single number; for the distribution, the
        // Kolmogorov-Smirnov distance that one in a thousand samples exceeds, 1.95 / √n (Smirnov 1948).
        let by_chance = |n: f64, deviations: f64| deviations / n.max(1.0).sqrt();
        let asked = self.rate * self.share;
        let expected = asked * window_ns.1 as f64;
        let independent = match self.arrivals {
            Arrivals::Poisson => check.lag1.abs() <= CORRELATION + by_chance(strides as f64, 4.0),
            // A shifted send lengthens one gap and shortens the next, so these always correlate.
            Arrivals::Constant => true,
        };
        check.kept = check.distance <= DISTANCE + by_chance(strides as f64, 1.95)
            && (rate / asked - 1.0).abs() <= RATE + by_chance(expected, 4.0)
            && check.unsteadiness <= UNSTEADINESS + by_chance(expected / TENTHS as f64, 4.0)
            && independent;
        check
    }

    /// Kolmogorov-Smirnov distance: the largest distance between the distribution function of the
    /// strides and the requested one, evaluated in steps of a thousandth. Constant strides fall into
    /// three classes: too short, right, too long; the distance is the larger share of the outer two.
    fn distance(&self, seen: &ArrivalsSeen) -> f64 {
        let n = seen.strides.max(1) as f64;
        if self.arrivals == Arrivals::Constant {
            return seen.places[0].max(seen.places[STEPS]) as f64 / n;
        }
        let mut below = 0;
        let steps = seen.places.iter().enumerate().map(|(i, count)| {
            below += count;
            ((i + 1) as f64 / STEPS as f64 - below as f64 / n).abs()
        });
        let largest = steps.take(STEPS).fold(0.0, f64::max);
        if seen.strides == 0 { 0.0 } else { largest }
    }
}

/// Probability that the sum of `k` exponential gaps is less than `x` mean gaps: the Erlang
/// distribution (Devroye 1986, IX.3), `1 - e^-x (1 + x + x²/2! + ... )` with `k` terms.
fn erlang(k: u32, x: f64) -> f64 {
    if x > LONGEST {
        return erlang_by_logarithms(k, x);
    }
    let mut term = (-x).exp();
    let mut longer = term;
    for j in 1..k {
        term *= x / f64::from(j);
        longer += term;
    }
    (1.0 - longer).clamp(0.0, 1.0)
}

/// Above this, `e^-x` has lost its precision, and so has every term.
const LONGEST: f64 = 700.0;

fn erlang_by_logarithms(k: u32, x: f64) -> f64 {
    let mut term = -x;
    let mut longer = term.exp();
    for j in 1..k {
        term += (x / f64::from(j)).ln();
        longer += term.exp();
    }
    (1.0 - longer).clamp(0.0, 1.0)
}

/// Whether a stride is too short (0), even (a half) or too long (1).
fn even(length: f64, expected: f64) -> f64 {
    let off = OFF_NS.max(OFF * expected);
    match length - expected {
        by if by < -off => 0.0,
        by if by > off => 1.0,
        _ => 0.5,
    }
}

/// Largest relative deviation of a tenth of the window from the mean. Incomplete tenths are ignored.
fn unsteadiness(seen: &ArrivalsSeen, (asked, was): (Nanos, Nanos)) -> f64 {
    let whole = (was.saturating_mul(TENTHS as u64) / asked.max(1)).min(TENTHS as u64);
    let tenths = &seen.tenths[..whole as usize];
    let mean = tenths.iter().sum::<u64>() as f64 / tenths.len() as f64;
    let off = |n: &u64| (*n as f64 / mean - 1.0).abs();
    tenths.iter().map(off).filter(|off| off.is_finite()).fold(0.0, f64::max)
}

/// Serial correlation of the lengths at lag 1 (Box & Jenkins, "Time Series Analysis", 2.1.5); 0 if all
/// lengths are equal, or there are fewer than two.
fn correlation(seen: &ArrivalsSeen) -> f64 {
    let in_squares = |sum: u128| sum as f64 / ArrivalsSeen::UNIT.powi(2);
    let (n, pairs) = (seen.strides as f64, seen.pairs as f64);
    let mean = seen.sum as f64 / ArrivalsSeen::UNIT / n;
    let variance = in_squares(seen.squares) / n - mean * mean;
    let covariance = in_squares(seen.products) / pairs - mean * mean;
    // If all are equal, the remaining variance is rounding.
    if seen.pairs > 0 && variance > 1e-9 { covariance / variance } else { 0.0 }
}

#[cfg(test)]
mod tests;
