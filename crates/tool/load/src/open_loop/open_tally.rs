//! The result of an open loop: the outcome of each request that was due, and the parts of the latency of
//! the answered ones.

use crate::{
    Plan, Until,
    clock::Nanos,
    histogram::new_histogram,
    open_loop::arrival_check::{Asked, Seen},
};
use regatta_record::{ArrivalCheck, ArrivalsSeen, Drive, OpenCounted, OpenLoop, encode_histogram};
use std::{
    mem,
    ops::{Deref, DerefMut},
};

/// The result of an open loop: the counts of all threads, which it dereferences to, and what follows from
/// them and from the plan.
#[derive(Clone, Debug)]
pub struct OpenTally {
    /// The counts. A request is unsent if no connection became free within the reply timeout, by the end of
    /// the grace period after the window, or before the run ended early. If a connection was opened for a
    /// request, its service counts from before the connect.
    pub counts: OpenCounted,
    /// Whether the requests arrived with the requested distribution.
    pub arrivals: ArrivalCheck,
    /// [`Plan::spin`], in nanoseconds: how long before each send the load thread started to spin.
    pub spin_ns: u64,
}

impl Deref for OpenTally {
    type Target = OpenCounted;

    fn deref(&self) -> &OpenCounted {
        &self.counts
    }
}

impl OpenTally {
    /// Converts it to the form in which it is stored.
    pub fn to_record(&self) -> OpenLoop {
        OpenLoop {
            due: self.due,
            unsent: self.unsent,
            late: self.late,
            timed_out: self.timed_out,
            lost: self.lost,
            refused: self.refused,
            wait: encode_histogram(&self.wait),
            lag: encode_histogram(&self.lag),
            service: encode_histogram(&self.service),
            arrivals: self.arrivals,
            spin_ns: self.spin_ns,
        }
    }

    /// The joint result of two stages of a window. The arrivals are those of the stage that deviates more
    /// from what was requested: one without the requested shape, or with the larger distance.
    pub(crate) fn together(mut self, other: OpenTally) -> OpenTally {
        self.counts.add_outcomes(&other.counts).expect("all stages have the same range");
        let deviates = |check: &ArrivalCheck| (!check.kept, check.distance);
        if deviates(&other.arrivals) > deviates(&self.arrivals) {
            self.arrivals = other.arrivals;
            self.counts.arrivals = other.counts.arrivals;
        }
        self
    }

    /// Requests that were due and have no latency, except refused ones. Count them as slower than every answered one.
    pub fn unanswered(&self) -> u64 {
        self.unsent + self.timed_out + self.lost
    }
}

/// Counts of one load thread in an open loop.
pub(crate) struct OpenCount {
    /// What is only counted. Its arrivals are those of `seen` at the end.
    sum: OpenCounted,
    pub seen: Seen,
}

impl Deref for OpenCount {
    type Target = OpenCounted;

    fn deref(&self) -> &OpenCounted {
        &self.sum
    }
}

impl DerefMut for OpenCount {
    fn deref_mut(&mut self) -> &mut OpenCounted {
        &mut self.sum
    }
}

impl OpenCount {
    pub fn new(seen: Seen) -> Self {
        let parts = [new_histogram(), new_histogram(), new_histogram()];
        OpenCount { sum: OpenCounted::nothing(parts, ArrivalsSeen::nothing(0, 0)), seen }
    }

    /// Takes the counts of a slice of a lane.
    pub fn take(&mut self) -> Self {
        let seen = self.seen.take();
        let next = OpenCount::new(mem::replace(&mut self.seen, seen));
        mem::replace(self, next)
    }

    /// Records a request that is written now: `lag` after a connection was free, and `after` its due
    /// time.
    #[inline]
    pub fn written(&mut self, intended: Nanos, lag: Nanos, after: Nanos) {
        self.sum.due += 1;
        self.sum.late += u64::from(after > OpenLoop::LATE_NS);
        self.seen.arrived(intended + lag);
    }

    /// Records a request that is given up unwritten. It still counts as an arrival.
    pub fn given_up(&mut self, intended: Nanos) {
        self.sum.due += 1;
        self.sum.unsent += 1;
        self.seen.arrived(intended);
    }

    /// Records a reply. A request that found a free connection has a wait of 0.
    #[inline]
    pub fn answered(&mut self, wait: Nanos, lag: Nanos, service: Nanos) {
        self.sum.wait.saturating_record(wait);
        self.sum.lag.saturating_record(lag);
        self.sum.service.saturating_record(service);
    }

    /// Returns the counts, to be merged with those of other threads.
    pub fn counted(self) -> OpenCounted {
        OpenCounted { arrivals: self.seen.seen(), ..self.sum }
    }
}

impl OpenTally {
    /// Builds the result from the merged counts of `own` of the `threads` of the load. `window_ns` is the
    /// actual length of the window. `None` without an open loop.
    pub(crate) fn of(
        counted: Option<OpenCounted>,
        plan: &Plan,
        (own, threads): (usize, usize),
        window_ns: Nanos,
    ) -> Option<OpenTally> {
        let Drive::Open { rate, arrivals } = plan.drive else { return None };
        let counts = counted?;
        let share = own as f64 / threads as f64;
        let asked = Asked::new(arrivals, rate.get(), threads).of_share(share);
        let asked_ns = match plan.until {
            Until::Elapsed(window) => window.as_nanos() as Nanos,
            Until::Requests(_) | Until::Done => window_ns,
        };
        let arrivals = asked.check(&counts.arrivals, (asked_ns, window_ns));
        Some(OpenTally { counts, arrivals, spin_ns: plan.spin.as_nanos() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Arrivals;

    #[test]
    fn a_request_is_late_by_its_due_time_whatever_it_waited_for() {
        let mut count = OpenCount::new(Seen::new(Arrivals::Constant, 1_000, 1));
        count.written(1_000, 0, OpenLoop::LATE_NS);
        assert_eq!((count.due, count.late), (1, 0), "at the limit");
        count.written(1_000_000, 1, OpenLoop::LATE_NS + 1);
        assert_eq!(
            (count.due, count.late),
            (2, 1),
            "it waited for a connection, not for its write"
        );
    }

    #[test]
    fn stages_add_up_and_the_worse_arrivals_remain() {
        let tally = |n: u64, kept| {
            let mut times = new_histogram();
            times.record_n(1, n).unwrap();
            let counts = OpenCounted {
                due: 10 * n,
                unsent: 2 * n,
                late: 3 * n,
                timed_out: 4 * n,
                lost: 5 * n,
                refused: 6 * n,
                ..OpenCounted::nothing(
                    [times.clone(), times.clone(), times],
                    ArrivalsSeen::nothing(n as u32, 1),
                )
            };
            let arrivals = ArrivalCheck {
                gaps: n,
                rate_per_s: 0.0,
                distance: 0.0,
                lag1: 0.0,
                unsteadiness: 0.0,
                kept,
            };
            OpenTally { counts, arrivals, spin_ns: 0 }
        };
        for (one, other) in [(false, true), (true, false)] {
            let both = tally(1, one).together(tally(100, other));
            let counts =
                [both.due, both.unsent, both.late, both.timed_out, both.lost, both.refused];
            assert_eq!(counts, [1_010, 202, 303, 404, 505, 606]);
            assert_eq!([&both.wait, &both.lag, &both.service].map(|times| times.len()), [101; 3]);
            let worse = if one { 100 } else { 1 };
            assert_eq!((both.arrivals.gaps, both.counts.arrivals.gaps), (worse, worse as u32));
        }
    }
}
