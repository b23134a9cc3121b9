//! The result of an open loop: the outcome of each request that was due, and the parts of the latency of
//! the answered ones.

use crate::{
    Plan, Until,
    clock::Nanos,
    histogram::new_histogram,
    open_loop::arrival_check::{Asked, Seen},
};
use hdrhistogram::Histogram;
use regatta_record::{ArrivalCheck, Drive, OpenCounted, OpenLoop, encode_histogram};

/// The result of an open loop. Every request that was due inside the window is exactly one of:
/// answered (in all of the histograms), refused, timed out, lost, unsent.
#[derive(Clone, Debug)]
pub struct OpenTally {
    /// Requests whose intended send lay inside the window.
    pub due: u64,
    /// Of those: not written. No connection became free within the reply timeout, by the end of the
    /// grace period after the window, or before the run ended early.
    pub unsent: u64,
    /// Of those: written more than [`OpenLoop::LATE_NS`] after their intended send.
    pub late: u64,
    /// Of those: written, and without a reply within the timeout.
    pub timed_out: u64,
    /// Of those: written, and lost to another error, or to an early end of the run.
    pub lost: u64,
    /// Of those: refused, as the server may.
    pub refused: u64,
    /// Nanoseconds from the intended send until a connection was free: caused by the server.
    pub wait: Histogram<u64>,
    /// Nanoseconds from then until the write: caused by the load generator.
    pub lag: Histogram<u64>,
    /// Nanoseconds from the write to the reply. If the connection was opened for the request, they count
    /// from before the connect.
    pub service: Histogram<u64>,
    /// Whether the requests arrived with the requested distribution.
    pub arrivals: ArrivalCheck,
    /// [`Plan::spin`], in nanoseconds: how long before each send the load thread started to spin.
    pub spin_ns: u64,
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
        self.due += other.due;
        self.unsent += other.unsent;
        self.late += other.late;
        self.timed_out += other.timed_out;
        self.lost += other.lost;
        self.refused += other.refused;
        for (ours, theirs) in [
            (&mut self.wait, other.wait),
            (&mut self.lag, other.lag),
            (&mut self.service, other.service),
        ] {
            ours.add(theirs).expect("all stages have the same range");
        }
        let deviates = |check: &ArrivalCheck| (!check.kept, check.distance);
        if deviates(&other.arrivals) > deviates(&self.arrivals) {
            self.arrivals = other.arrivals;
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
    pub due: u64,
    pub unsent: u64,
    pub late: u64,
    pub timed_out: u64,
    pub lost: u64,
    pub refused: u64,
    pub seen: Seen,
    wait: Histogram<u64>,
    lag: Histogram<u64>,
    service: Histogram<u64>,
}

impl OpenCount {
    pub fn new(seen: Seen) -> Self {
        OpenCount {
            due: 0,
            unsent: 0,
            late: 0,
            timed_out: 0,
            lost: 0,
            refused: 0,
            seen,
            wait: new_histogram(),
            lag: new_histogram(),
            service: new_histogram(),
        }
    }

    /// Takes the counts of a slice of a lane.
    pub fn take(&mut self) -> Self {
        let seen = self.seen.take();
        let next = OpenCount::new(std::mem::replace(&mut self.seen, seen));
        std::mem::replace(self, next)
    }

    /// Records a request that is written now: `lag` after a connection was free, and `after` its due
    /// time.
    #[inline]
    pub fn written(&mut self, intended: Nanos, lag: Nanos, after: Nanos) {
        self.due += 1;
        self.late += u64::from(after > OpenLoop::LATE_NS);
        self.seen.arrived(intended + lag);
    }

    /// Records a request that is given up unwritten. It still counts as an arrival.
    pub fn given_up(&mut self, intended: Nanos) {
        self.due += 1;
        self.unsent += 1;
        self.seen.arrived(intended);
    }

    /// Records a reply. A request that found a free connection has a wait of 0.
    #[inline]
    pub fn answered(&mut self, wait: Nanos, lag: Nanos, service: Nanos) {
        self.wait.saturating_record(wait);
        self.lag.saturating_record(lag);
        self.service.saturating_record(service);
    }

    /// Returns the counts, to be merged with those of other threads.
    pub fn counted(self) -> OpenCounted {
        OpenCounted {
            due: self.due,
            unsent: self.unsent,
            late: self.late,
            timed_out: self.timed_out,
            lost: self.lost,
            refused: self.refused,
            wait: self.wait,
            lag: self.lag,
            service: self.service,
            arrivals: self.seen.seen(),
        }
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
        let counted = counted?;
        let share = own as f64 / threads as f64;
        let asked = Asked::new(arrivals, rate.get(), threads).of_share(share);
        let asked_ns = match plan.until {
            Until::Elapsed(window) => window.as_nanos() as Nanos,
            Until::Requests(_) | Until::Done => window_ns,
        };
        Some(OpenTally {
            due: counted.due,
            unsent: counted.unsent,
            late: counted.late,
            timed_out: counted.timed_out,
            lost: counted.lost,
            refused: counted.refused,
            wait: counted.wait,
            lag: counted.lag,
            service: counted.service,
            arrivals: asked.check(&counted.arrivals, (asked_ns, window_ns)),
            spin_ns: plan.spin.as_nanos() as u64,
        })
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
            OpenTally {
                due: 10 * n,
                unsent: 2 * n,
                late: 3 * n,
                timed_out: 4 * n,
                lost: 5 * n,
                refused: 6 * n,
                wait: times.clone(),
                lag: times.clone(),
                service: times,
                arrivals: ArrivalCheck {
                    gaps: n,
                    rate_per_s: 0.0,
                    distance: 0.0,
                    lag1: 0.0,
                    unsteadiness: 0.0,
                    kept,
                },
                spin_ns: 0,
            }
        };
        for (one, other) in [(false, true), (true, false)] {
            let both = tally(1, one).together(tally(100, other));
            let counts =
                [both.due, both.unsent, both.late, both.timed_out, both.lost, both.refused];
            assert_eq!(counts, [1_010, 202, 303, 404, 505, 606]);
            assert_eq!([both.wait, both.lag, both.service].map(|times| times.len()), [101; 3]);
            assert_eq!(both.arrivals.gaps, if one { 100 } else { 1 });
        }
    }
}
