//! Whether, and since when, the cost of a contender is steady, from slices of an observation.
//!
//! After Barrett, Bolz-Tereick, Killick, Mount, Tratt, "Virtual Machine Warmup Blows Hot and Cold"
//! (OOPSLA 2017): the series is cut where its mean changes. Segments are equivalent if they differ
//! by less than a relevant amount. A steady state is a sequence of equivalent segments that reaches
//! the end and is long enough. Theirs is a series of a fixed number of process iterations; ours
//! grows until there is such a sequence. It uses CPU per request, not the rate, because a rate
//! also changes with the load and with other programs; only a pilot, which is to find a rate, uses that.

use crate::statistics::{DEVIATION, median};
use regatta_record::{SOURCE_PAIRS, Settling, WarmUpClass, WarmUpSlice};
use std::time::Duration;

/// Segments whose means differ by less than this are equivalent, as a logarithm: 3%.
const EQUIVALENT: f64 = 0.029_559;
/// The same in a life of a duel: 10%. What changes less within a life is found there among all its slices
/// ([`regatta_record::Doubt::ChangesInLife`]), and on a busy machine slices vary so much that 3% could not be
/// seen before the longest observation is over.
const EQUIVALENT_IN_LIFE: f64 = 0.095_31;
/// Fraction of an observation that must be steady at its end, for a contender whose cost is the
/// same as at the start.
const STEADY: f64 = 0.5;
/// The same for a contender whose cost has changed. Compilers work in stages, each of which takes
/// longer than the one before. Between two stages the cost is steady for about as long as they took
/// (helidon on one CPU: from 7 s to 14 s).
const STEADY_AFTER_CHANGE: f64 = 0.75;
/// Fraction of the longest observation that must be steady at its end for a contender to have
/// settled at all (Barrett et al.: the last 500 of 2,000 iterations).
const STEADY_AT_END: f64 = 0.25;
/// Part of a steady state that may be unlike its end, if the cost comes back: the machine changed and changed back.
/// A warm-up does not come back.
const UNLIKE: f64 = 0.25;
/// Minimum length of every observation, as a fraction of the longest.
const LEAST: f64 = 1.0 / 3.0;
/// The same in a life of a duel, at most, if the first slice is not much more expensive than the last ones: what
/// changes later is found among all slices of the life.
const LEAST_IN_LIFE: Duration = Duration::from_secs(2);
/// A first slice that costs this much more than the last ones, as a logarithm (1.5 times), is one of a program
/// that is compiled while it runs.
const BEGINS_COLD: f64 = 0.405;
/// A rate is not steady if the first and the last third of its steady part differ by more than this, as a logarithm
/// (4%): a slow drift has equivalent segments, too.
const TREND: f64 = 0.039_22;
/// Minimum number of slices in a segment.
const SHORTEST: usize = 3;
/// Number of new slices between two checks.
const LOOK: usize = 5;
/// A contender that is steady from this moment on has no relevant warm-up: connections were just
/// opened.
const AT_ONCE: Duration = Duration::from_millis(250);
/// Length of the first part, whose cost is the cold cost.
const COLD: Duration = Duration::from_secs(1);
/// The first slices are cold if they differ from the final cost by this much, as a logarithm (10%), and by this
/// many standard deviations of slices.
const COLD_FROM: f64 = 0.095_31;
const COLD_SCATTERS: f64 = 2.0;
/// Minimum standard deviation of the costs of slices, as a logarithm.
const LEAST_SCATTER: f64 = 0.005;

/// Observes one contender at one load.
#[derive(Clone, Debug)]
pub struct Settler {
    /// Minimum length, and that of an observation whose first slice is not cold.
    least: (Duration, Duration),
    /// An observation that is shorter than this has at least so many requests.
    unless_requests: (Duration, u64),
    /// Segments whose means differ by less than this are equivalent, as a logarithm.
    equivalent: f64,
    /// Whether a steady part must have no trend.
    without_trend: bool,
    slices: Vec<WarmUpSlice>,
    from_localhost: Option<[f64; SOURCE_PAIRS]>,
}

impl Settler {
    /// Creates an observation without slices, of at most this length.
    pub fn new(longest: Duration) -> Settler {
        let (least, slices) = (longest.mul_f64(LEAST), Vec::new());
        Settler {
            least: (least, least),
            unless_requests: (least, 0),
            equivalent: EQUIVALENT,
            without_trend: false,
            slices,
            from_localhost: None,
        }
    }

    /// Creates an observation in a life of a duel, of at least so many requests if it is shorter than others.
    pub fn in_life(longest: Duration, least_requests: u64) -> Settler {
        let exact = Settler::new(longest);
        let (least, _) = exact.least;
        Settler {
            least: (least, least.min(LEAST_IN_LIFE)),
            unless_requests: (least, least_requests),
            equivalent: EQUIVALENT_IN_LIFE,
            ..exact
        }
    }

    /// Creates an observation of a rate, whose slices have their own length as cost. As in a life, but with fewer
    /// requests than these it lasts at least `of_few`, and it does not end while the rate still rises or falls. Its
    /// final cost is without what is unlike the end, because the machine changed and changed back.
    pub fn of_rate(longest: Duration, least_requests: u64, of_few: Duration) -> Settler {
        let in_life = Settler::in_life(longest, least_requests);
        let (least, _) = in_life.least;
        let unless_requests = (least.max(of_few), least_requests);
        Settler { unless_requests, without_trend: true, ..in_life }
    }

    /// Adds a slice. Returns whether the observation may end early: the cost has been steady for
    /// the second half if it equals the cost at the start, or for the last three quarters if it
    /// does not.
    pub fn add(&mut self, slice: WarmUpSlice) -> bool {
        self.slices.push(slice);
        let seen = self.seen();
        let (least, unless_cold) = self.least;
        if seen < unless_cold || !self.slices.len().is_multiple_of(LOOK) {
            return false;
        }
        let (of_few, least_requests) = self.unless_requests;
        if seen < of_few && self.requests() < least_requests {
            return false;
        }
        self.course().is_some_and(|course| {
            if seen < least && course.begins_cold() || self.without_trend && course.has_trend() {
                return false;
            }
            let steady = if course.is_flat() { STEADY } else { STEADY_AFTER_CHANGE };
            course.is_steady_for(seen.mul_f64(steady))
        })
    }

    /// Returns the result so far; `None` if no cost could be read.
    pub fn settling(&self) -> Option<Settling> {
        let course = self.course()?;
        let mut settling =
            Settling { from_localhost: self.from_localhost, ..course.settling(self.seen()) };
        if self.without_trend {
            settling.warm_ns_per_request = cost(&course.alike());
        }
        Some(settling)
    }

    /// Whether the last costs, although they are equivalent, still rise or fall.
    pub fn has_trend(&self) -> bool {
        self.course().is_some_and(|course| course.has_trend())
    }

    /// Standard deviation of the logarithms of the costs of slices while their mean does not change.
    pub fn scatter(&self) -> f64 {
        self.course().map_or(0.0, |course| course.scatter)
    }

    /// Adds the costs by source address of connections: [`Settling::from_localhost`].
    pub fn add_sources(&mut self, logs: [f64; SOURCE_PAIRS]) {
        self.from_localhost = Some(logs);
    }

    /// All slices.
    pub fn slices(&self) -> &[WarmUpSlice] {
        &self.slices
    }

    fn course(&self) -> Option<Course> {
        Course::of(&self.slices, self.equivalent)
    }

    /// Number of requests of all slices.
    pub fn requests(&self) -> u64 {
        self.slices.iter().map(|slice| slice.requests).sum()
    }

    /// How long it was observed.
    pub fn seen(&self) -> Duration {
        Duration::from_nanos(self.slices.iter().map(|slice| slice.ns).sum())
    }
}

/// Combines two observations, each from a fresh start. The machine also changes its speed, but not
/// twice in the same way, so a change is the contender's only if both show it. If both do, the
/// longer warm-up counts. A contender that rose once and fell once is flat. If neither settled, the
/// costs are the means of both, in which changes up and down cancel out.
pub fn agreed(first: Settling, second: Settling) -> Settling {
    use WarmUpClass::{Flat, NeverSettles, SlowsDown, WarmsUp};
    let (quicker, slower) =
        if second.after_ns < first.after_ns { (second, first) } else { (first, second) };
    let mean = |of: fn(&Settling) -> f64| (of(&first) * of(&second)).sqrt();
    let agreed = match (first.class, second.class) {
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
    };
    Settling { cold_for_ns: first.cold_for_ns.max(second.cold_for_ns), ..agreed }
}

/// Of two observations of the same start, that with less change: the costs as they are, and relative to those of
/// another contender in the same moments. The machine changes both contenders, or only one of them, so a
/// change is the contender's only if both show it. If both fell or both rose, and only one settled then, the machine
/// kept the other from it.
pub fn less_changed(as_is: Settling, relative: Settling) -> Settling {
    use WarmUpClass::{Flat, NeverSettles};
    let change = |one: &Settling| match one.class {
        Flat => 0.0,
        _ => (one.cold_ns_per_request / one.warm_ns_per_request).ln(),
    };
    let (of_as_is, of_relative) = (change(&as_is), change(&relative));
    let both_changed =
        of_as_is * of_relative > 0.0 && as_is.has_direction() && relative.has_direction();
    let is_relative = match (as_is.class, relative.class) {
        (NeverSettles, NeverSettles) => of_relative.abs() < of_as_is.abs(),
        (NeverSettles, _) if both_changed => true,
        (_, NeverSettles) if both_changed => false,
        _ => of_relative.abs() < of_as_is.abs(),
    };
    if is_relative { relative } else { as_is }
}

/// A slice that has a cost.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Since the start of the load, in nanoseconds.
    began: u64,
    ended: u64,
    /// Number of requests answered before it.
    before: u64,
    requests: u64,
    cpu_ns: u64,
}

impl Point {
    fn log(&self) -> f64 {
        (self.cpu_ns.max(1) as f64 / self.requests as f64).ln()
    }
}

/// Consecutive points with the same cost.
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
    /// See [`Settler`].
    equivalent: f64,
}

impl Course {
    fn of(slices: &[WarmUpSlice], equivalent: f64) -> Option<Course> {
        let points = points(slices);
        if points.len() < SHORTEST {
            return None;
        }
        let logs: Vec<f64> = points.iter().map(Point::log).collect();
        let scatter = scatter(&logs);
        let segments = cut(&without_outliers(&logs, scatter), scatter);
        Some(Course { points, segments, scatter, equivalent })
    }

    /// The first of the segments that are equivalent to the last one, with little in between that is not.
    fn steady_from(&self) -> usize {
        let last = self.segments.len() - 1;
        let (mut first, mut unlike) = (last, 0);
        for (nth, segment) in self.segments.iter().enumerate().rev() {
            if !self.are_equivalent(segment, &self.segments[last]) {
                unlike += segment.len();
            } else if unlike as f64 <= UNLIKE * (self.points.len() - segment.from) as f64 {
                first = nth;
            }
        }
        first
    }

    /// Whether two means differ by less than a relevant amount plus the noise of so few slices.
    fn are_equivalent(&self, a: &Segment, b: &Segment) -> bool {
        let chance = 2.0 * self.scatter * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt();
        (a.mean - b.mean).abs() < self.equivalent + chance
    }

    fn is_steady_for(&self, length: Duration) -> bool {
        let from = self.segments[self.steady_from()].from;
        let end = self.points.last().map_or(0, |point| point.ended);
        // If slices vary so much that a relevant change could be hidden, more slices are needed.
        let uncertain = 2.0 * self.scatter / ((self.points.len() - from) as f64).sqrt();
        uncertain < self.equivalent && Duration::from_nanos(end - self.points[from].began) >= length
    }

    /// The steady part, as one segment.
    fn steady(&self) -> Segment {
        let from = self.segments[self.steady_from()].from;
        Segment { from, to: self.points.len(), mean: cost(&self.points[from..]).ln() }
    }

    /// The steady part without what is unlike its end: the machine changed and changed back.
    fn alike(&self) -> Vec<Point> {
        let last = self.segments[self.segments.len() - 1];
        let steady = self.segments[self.steady_from()..].iter();
        let alike = steady.filter(|segment| self.are_equivalent(segment, &last));
        alike.flat_map(|segment| &self.points[segment.from..segment.to]).copied().collect()
    }

    /// Whether the first and the last third of what is [alike](Course::alike) differ by more than [`TREND`] and the
    /// noise of their medians. A pause of the server is in few slices.
    fn has_trend(&self) -> bool {
        let logs: Vec<f64> = self.alike().iter().map(Point::log).collect();
        let third = logs.len() / 3;
        let ends = [&logs[..third], &logs[logs.len() - third..]].map(|part| median(part.to_vec()));
        let [Some(first), Some(last)] = ends else { return false };
        let chance = 2.5 * self.scatter * (2.0 / third as f64).sqrt();
        (first - last).abs() > TREND + chance
    }

    /// Whether it is steady almost from the start.
    fn is_steady_at_once(&self) -> bool {
        self.points[self.steady().from].began <= AT_ONCE.as_nanos() as u64
    }

    /// Whether the steady cost equals the cost at the start; a disturbance in between is ignored. A
    /// contender is also flat if it differs for less than a second and by less than 3% of the cost
    /// of that second.
    fn is_flat(&self) -> bool {
        let (first, steady) = (&self.segments[0], &self.steady());
        let cold =
            Segment { from: 0, to: self.cold(), mean: cost(&self.points[..self.cold()]).ln() };
        self.is_steady_at_once()
            || self.are_equivalent(first, steady)
            || self.are_equivalent(&cold, steady)
    }

    /// Number of slices in the first part; at least one.
    fn cold(&self) -> usize {
        self.points.iter().take_while(|p| p.began < COLD.as_nanos() as u64).count().max(1)
    }

    /// Whether the first slice is much more expensive than those of the second half.
    fn begins_cold(&self) -> bool {
        let last = cost(&self.points[self.points.len() / 2..]).ln();
        self.points[0].log() - last > BEGINS_COLD
    }

    /// How long the first slices are unlike the steady ones. The filter of outliers takes them away, and they may
    /// be too few for a segment.
    fn cold_for_ns(&self, warm: f64) -> u64 {
        let unlike = |point: &&Point| {
            (point.log() - warm.ln()).abs() > COLD_FROM.max(COLD_SCATTERS * self.scatter)
        };
        self.points.iter().take_while(unlike).last().map_or(0, |point| point.ended)
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
            cold_for_ns: self.cold_for_ns(warm),
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

/// Converts slices to points. A slice without requests is merged into the next one. A slice without a
/// reading is dropped, with those that were merged into it.
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
            // Its requests have no cost; start again after it.
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

/// Standard deviation within segments, from the median of the steps between slices, which a few
/// changes of the mean do not affect: √2 converts the deviation of a difference to that of one value.
fn scatter(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs.windows(2).map(|two| (two[1] - two[0]).abs()).collect();
    (median(steps).unwrap_or(0.0) * DEVIATION / std::f64::consts::SQRT_2).max(LEAST_SCATTER)
}

/// Replaces slices that differ by more than three standard deviations from the median of the seven
/// slices around and including them with this median (a Hampel filter): one slice with a garbage
/// collection is no change.
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

/// Cuts a series where its mean changes. Of all possible cuts it chooses those with the least
/// squared distance from the means plus a penalty for each cut (optimal partitioning, Jackson et
/// al., IEEE Signal Processing Letters 12, 2005). The penalty is twice that of the Bayesian
/// information criterion for the place and the mean that a cut adds. One cut too many does no harm,
/// because its segments are equivalent.
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
    // The least cost of the first `to` points, and the start of their last segment.
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
