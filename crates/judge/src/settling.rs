//! Whether, and since when, the cost of a contender is steady: from slices of an observation.
//!
//! After Barrett, Bolz-Tereick, Killick, Mount, Tratt, "Virtual Machine Warmup Blows Hot and Cold"
//! (OOPSLA 2017): the series is cut where its mean changes, segments are equivalent that differ by less
//! than what matters, and a steady state is a stretch of equivalent segments that reaches to the end and
//! is long enough. Theirs is a series of a fixed length of process iterations; ours grows until there is
//! such a stretch. What is looked at is CPU per request, never the rate: a rate also changes with the
//! load and with other programs.

use crate::statistics::median;
use regatta_record::{SOURCE_PAIRS, Settling, WarmUpClass, WarmUpSlice};
use std::time::Duration;

/// Segments whose means are nearer than this are equivalent, as a logarithm: 3%.
const EQUIVALENT: f64 = 0.029_559;
/// Part of an observation that must be steady before it ends, of a contender that costs the same as at its
/// beginning.
const STEADY: f64 = 0.5;
/// The same of one that has changed: compilers work in stages, each of which takes longer than the one
/// before, and between two of them the cost is steady for about as long as they took (helidon on one CPU:
/// from 7 s to 14 s).
const STEADY_AFTER_CHANGE: f64 = 0.75;
/// Part of the longest observation that must be steady for it to have settled at all (Barrett et al.: the
/// last 500 of 2,000 iterations).
const STEADY_AT_END: f64 = 0.25;
/// Part of the longest observation that is seen of everybody.
const LEAST: f64 = 1.0 / 3.0;
/// Fewest slices of a segment.
const SHORTEST: usize = 3;
/// Slices are looked at when so many more have come.
const LOOK: usize = 5;
/// Who is steady from here on has no warm-up to speak of: connections have just been made.
const AT_ONCE: Duration = Duration::from_millis(250);
/// The first part, whose cost is the cold cost.
const COLD: Duration = Duration::from_secs(1);
/// Of what the costs of slices scatter by at least, as a logarithm.
const LEAST_SCATTER: f64 = 0.005;

/// Observes one contender under one load.
#[derive(Clone, Debug)]
pub struct Settler {
    longest: Duration,
    slices: Vec<WarmUpSlice>,
    from_localhost: Option<[f64; SOURCE_PAIRS]>,
}

impl Settler {
    /// Nothing was seen yet; the observation ends after `longest`.
    pub fn new(longest: Duration) -> Settler {
        Settler { longest, slices: Vec::new(), from_localhost: None }
    }

    /// One more slice: whether the observation may end before its longest, since the cost has been steady
    /// for the second half where it is what it was at the beginning, and for three quarters where not.
    pub fn add(&mut self, slice: WarmUpSlice) -> bool {
        self.slices.push(slice);
        let seen = self.seen();
        if seen < self.longest.mul_f64(LEAST) || !self.slices.len().is_multiple_of(LOOK) {
            return false;
        }
        Course::of(&self.slices).is_some_and(|course| {
            let steady = if course.is_flat() { STEADY } else { STEADY_AFTER_CHANGE };
            course.is_steady_for(seen.mul_f64(steady))
        })
    }

    /// What was seen so far; `None` where no cost could be read.
    pub fn settling(&self) -> Option<Settling> {
        let course = Course::of(&self.slices)?;
        Some(Settling { from_localhost: self.from_localhost, ..course.settling(self.seen()) })
    }

    /// What was seen of its cost by where connections come from: [`Settling::from_localhost`].
    pub fn add_sources(&mut self, logs: [f64; SOURCE_PAIRS]) {
        self.from_localhost = Some(logs);
    }

    /// All slices.
    pub fn into_slices(self) -> Vec<WarmUpSlice> {
        self.slices
    }

    fn seen(&self) -> Duration {
        Duration::from_nanos(self.slices.iter().map(|slice| slice.ns).sum())
    }
}

/// What two observations say together, each from a fresh start. The machine changes its speed, too, but
/// not twice in the same way: only what both show is the contender's. Of what both show, the longer need
/// counts. Who rose once and fell once is flat; of who never settled, the costs are the means of both, in
/// which changes that go up and down cancel out.
pub fn agreed(first: Settling, second: Settling) -> Settling {
    use WarmUpClass::{Flat, NeverSettles, SlowsDown, WarmsUp};
    let (quicker, slower) =
        if second.after_ns < first.after_ns { (second, first) } else { (first, second) };
    let mean = |of: fn(&Settling) -> f64| (of(&first) * of(&second)).sqrt();
    match (first.class, second.class) {
        (NeverSettles, NeverSettles) => Settling {
            cold_ns_per_request: mean(|one| one.cold_ns_per_request),
            warm_ns_per_request: mean(|one| one.warm_ns_per_request),
            ..slower
        },
        (WarmsUp, SlowsDown) | (SlowsDown, WarmsUp) => {
            Settling { class: Flat, after_ns: 0, after_requests: 0, ..quicker }
        }
        (one, other) if one == other => slower,
        _ => quicker,
    }
}

/// A slice that has a cost.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Since the load began, nanoseconds.
    began: u64,
    ended: u64,
    /// Requests that were answered before it.
    before: u64,
    requests: u64,
    cpu_ns: u64,
}

impl Point {
    fn log(&self) -> f64 {
        (self.cpu_ns.max(1) as f64 / self.requests as f64).ln()
    }
}

/// Points whose cost is the same.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    from: usize,
    to: usize,
    mean: f64,
}

impl Segment {
    fn len(&self) -> usize {
        self.to - self.from
    }
}

/// An observation, cut into segments.
struct Course {
    points: Vec<Point>,
    segments: Vec<Segment>,
    /// Standard deviation of the logarithms of the costs within a segment.
    scatter: f64,
}

impl Course {
    fn of(slices: &[WarmUpSlice]) -> Option<Course> {
        let points = points(slices);
        if points.len() < SHORTEST {
            return None;
        }
        let logs: Vec<f64> = points.iter().map(Point::log).collect();
        let scatter = scatter(&logs);
        let segments = cut(&without_outliers(&logs, scatter), scatter);
        Some(Course { points, segments, scatter })
    }

    /// The segments from here on are equivalent to the last one.
    fn steady_from(&self) -> usize {
        let last = &self.segments[self.segments.len() - 1];
        let others = self.segments.iter().rev().take_while(|one| self.are_equivalent(one, last));
        self.segments.len() - others.count()
    }

    /// Nearer than what matters, and than what chance does to means of so few slices.
    fn are_equivalent(&self, a: &Segment, b: &Segment) -> bool {
        let chance = 2.0 * self.scatter * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt();
        (a.mean - b.mean).abs() < EQUIVALENT + chance
    }

    fn is_steady_for(&self, length: Duration) -> bool {
        let from = self.segments[self.steady_from()].from;
        let end = self.points.last().map_or(0, |point| point.ended);
        // Where slices scatter so much that a change of 3% could hide, more of them are needed.
        let unsure = 2.0 * self.scatter / ((self.points.len() - from) as f64).sqrt();
        unsure < EQUIVALENT && Duration::from_nanos(end - self.points[from].began) >= length
    }

    /// The steady part, as one segment.
    fn steady(&self) -> Segment {
        let from = self.segments[self.steady_from()].from;
        Segment { from, to: self.points.len(), mean: cost(&self.points[from..]).ln() }
    }

    /// Steady almost from the beginning.
    fn is_steady_at_once(&self) -> bool {
        self.points[self.steady().from].began <= AT_ONCE.as_nanos() as u64
    }

    /// Steady, if it is, where it began: something else may have disturbed it meanwhile. That is so, too,
    /// of who differs for less than a second and by less than 3% of what this second costs.
    fn is_flat(&self) -> bool {
        let (first, steady) = (&self.segments[0], &self.steady());
        let cold =
            Segment { from: 0, to: self.cold(), mean: cost(&self.points[..self.cold()]).ln() };
        self.is_steady_at_once()
            || self.are_equivalent(first, steady)
            || self.are_equivalent(&cold, steady)
    }

    /// Slices of the first part; at least one.
    fn cold(&self) -> usize {
        self.points.iter().take_while(|p| p.began < COLD.as_nanos() as u64).count().max(1)
    }

    fn settling(&self, seen: Duration) -> Settling {
        let steady = self.steady();
        let since = self.points[steady.from];
        let warm = cost(&self.points[steady.from..]);
        let at_once = self.is_steady_at_once();
        let class = match () {
            () if !self.is_steady_for(seen.mul_f64(STEADY_AT_END)) => WarmUpClass::NeverSettles,
            () if self.is_flat() => WarmUpClass::Flat,
            () if self.segments[0].mean > steady.mean => WarmUpClass::WarmsUp,
            () => WarmUpClass::SlowsDown,
        };
        let (after_ns, after_requests) = match class {
            WarmUpClass::Flat if !at_once => (0, 0),
            _ => (since.began, since.before),
        };
        Settling {
            class,
            observed_ns: seen.as_nanos() as u64,
            after_ns,
            after_requests,
            cold_ns_per_request: cost(&self.points[..self.cold()]),
            warm_ns_per_request: warm,
            from_localhost: None,
        }
    }
}

fn cost(points: &[Point]) -> f64 {
    let sum = |field: fn(&Point) -> u64| points.iter().map(field).sum::<u64>() as f64;
    sum(|point| point.cpu_ns) / sum(|point| point.requests).max(1.0)
}

/// Slices without requests, or without a reading, belong to the next one that has both.
fn points(slices: &[WarmUpSlice]) -> Vec<Point> {
    let (mut now, mut requests) = (0, 0);
    let mut points = Vec::with_capacity(slices.len());
    let mut open = Point { began: 0, ended: 0, before: 0, requests: 0, cpu_ns: 0 };
    for slice in slices {
        now += slice.ns;
        requests += slice.requests;
        open.ended = now;
        match slice.cpu_ns {
            Some(cpu_ns) => {
                open.requests += slice.requests;
                open.cpu_ns += cpu_ns;
            }
            // Its requests have no cost; begin anew after it.
            None => (open.requests, open.cpu_ns) = (0, 0),
        }
        if open.requests > 0 {
            points.push(open);
            open = Point { began: now, ended: now, before: requests, requests: 0, cpu_ns: 0 };
        } else if slice.cpu_ns.is_none() {
            (open.began, open.before) = (now, requests);
        }
    }
    points
}

/// Standard deviation within segments, by the median of the steps from slice to slice, which a few
/// changes of the mean do not move: 1.4826 makes a median absolute deviation one of a normal
/// distribution, √2 that of a difference of two.
fn scatter(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
    (median(steps).unwrap_or(0.0) * 1.4826 / std::f64::consts::SQRT_2).max(LEAST_SCATTER)
}

/// Slices that differ from the median of their seven neighbours by more than three standard deviations get
/// this median (a Hampel filter): one slice with a collection of garbage is no change.
fn without_outliers(logs: &[f64], scatter: f64) -> Vec<f64> {
    const REACH: usize = 3;
    let around = |i: usize| {
        let from = i.saturating_sub(REACH);
        let near = &logs[from..(i + REACH + 1).min(logs.len())];
        median(near.to_vec()).unwrap_or(logs[i])
    };
    let each = logs.iter().enumerate().map(|(i, &log)| (log, around(i)));
    each.map(|(log, near)| if (log - near).abs() > 3.0 * scatter { near } else { log }).collect()
}

/// Cuts a series where its mean changes: of all ways to cut it, the one with the least squared distance
/// from the means plus a penalty for each cut (optimal partitioning, Jackson et al., IEEE Signal
/// Processing Letters 12, 2005). The penalty is twice that of the Bayesian information criterion for the
/// place and the mean that a cut adds; a cut too many does no harm, since its segments are equivalent.
fn cut(logs: &[f64], scatter: f64) -> Vec<Segment> {
    let n = logs.len();
    let mut sums = vec![(0.0, 0.0)];
    for log in logs {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + log, squares + log * log));
    }
    let distance = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        (squares - sum * sum / (to - from) as f64).max(0.0) / (scatter * scatter)
    };
    let penalty = 4.0 * (n as f64).ln();
    // The least cost of the first `to` points, and where their last segment begins.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0].0 = -penalty;
    for to in SHORTEST..=n {
        for from in (0..=to - SHORTEST).filter(|from| *from == 0 || *from >= SHORTEST) {
            let cost = best[from].0 + distance(from, to) + penalty;
            if cost < best[to].0 {
                best[to] = (cost, from);
            }
        }
    }
    let mut segments = Vec::new();
    let mut to = n;
    while to > 0 {
        let from = best[to].1;
        let mean = (sums[to].0 - sums[from].0) / (to - from) as f64;
        segments.push(Segment { from, to, mean });
        to = from;
    }
    segments.reverse();
    segments
}

#[cfg(test)]
mod tests;
