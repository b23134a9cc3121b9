//! What came of an open loop: what became of each request that was due, and the parts of the time
//! that the answered ones took.

use crate::{
    Plan, Until,
    arrivals::{Asked, Seen},
    clock::Nanos,
    histogram::new_histogram,
};
use hdrhistogram::Histogram;
use regatta_record::{ArrivalCheck, Drive, OpenCounted, OpenLoop, encode_histogram};

/// What came of an open loop. Every request that was due inside the window is exactly one of:
/// answered (in all of the histograms), timed out, lost, unsent.
#[derive(Clone, Debug)]
pub struct OpenTally {
    /// Requests whose intended send lay inside the window.
    pub due: u64,
    /// Of those: not written. No connection came free within the limit for a reply, or by the end
    /// of the grace after the window.
    pub unsent: u64,
    /// Of those: written more than [`OpenLoop::LATE_NS`] after their intended send.
    pub late: u64,
    /// Of those: written, and without a reply within the limit.
    pub timed_out: u64,
    /// Of those: written, and lost to another error, or to an early end of the run.
    pub lost: u64,
    /// Nanoseconds from the intended send until a connection was free: the server's doing.
    pub wait: Histogram<u64>,
    /// Nanoseconds from then until the write: the generator's doing.
    pub lag: Histogram<u64>,
    /// Nanoseconds from the write to the reply; from before the connect, where the connection was
    /// opened for the request.
    pub service: Histogram<u64>,
    /// Whether the requests arrived as was asked for.
    pub arrivals: ArrivalCheck,
    /// Last stretch before a send that was waited for by spinning, in nanoseconds; 0: none.
    pub spin_ns: u64,
}

impl OpenTally {
    /// As it is stored.
    pub fn to_record(&self) -> OpenLoop {
        OpenLoop {
            due: self.due,
            unsent: self.unsent,
            late: self.late,
            timed_out: self.timed_out,
            lost: self.lost,
            wait: encode_histogram(&self.wait),
            lag: encode_histogram(&self.lag),
            service: encode_histogram(&self.service),
            arrivals: self.arrivals,
            spin_ns: self.spin_ns,
        }
    }

    /// Requests that have no latency but were due: to be thought of as longer than any that has.
    pub fn unanswered(&self) -> u64 {
        self.unsent + self.timed_out + self.lost
    }
}

/// What one load thread counts of its open loop.
pub(crate) struct OpenCount {
    pub due: u64,
    pub unsent: u64,
    pub late: u64,
    pub timed_out: u64,
    pub lost: u64,
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
            seen,
            wait: new_histogram(),
            lag: new_histogram(),
            service: new_histogram(),
        }
    }

    /// A request is written: `lag` after it could have been, and so long after it was due.
    #[inline]
    pub fn written(&mut self, intended: Nanos, lag: Nanos, after: Nanos) {
        self.due += 1;
        self.late += u64::from(after > OpenLoop::LATE_NS);
        self.seen.arrived(intended + lag);
    }

    /// A request is given up, unwritten. It arrived all the same.
    pub fn given_up(&mut self, intended: Nanos) {
        self.due += 1;
        self.unsent += 1;
        self.seen.arrived(intended);
    }

    /// A reply came. A request that found a connection free did not wait: 0 is recorded as it is.
    #[inline]
    pub fn answered(&mut self, wait: Nanos, lag: Nanos, service: Nanos) {
        self.wait.saturating_record(wait);
        self.lag.saturating_record(lag);
        self.service.saturating_record(service);
    }

    /// What was counted, to be put together with what others counted.
    pub fn counted(self) -> OpenCounted {
        OpenCounted {
            due: self.due,
            unsent: self.unsent,
            late: self.late,
            timed_out: self.timed_out,
            lost: self.lost,
            wait: self.wait,
            lag: self.lag,
            service: self.service,
            arrivals: self.seen.seen(),
        }
    }
}

impl OpenTally {
    /// What all `threads` of a plan counted together, in a window that was so long in the end. `None`
    /// without an open loop.
    pub(crate) fn of(
        counted: Option<OpenCounted>,
        plan: &Plan,
        threads: usize,
        window_ns: Nanos,
    ) -> Option<OpenTally> {
        let Drive::Open { rate, arrivals } = plan.drive else { return None };
        let counted = counted?;
        let asked = Asked::new(arrivals, rate.get(), threads);
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
            wait: counted.wait,
            lag: counted.lag,
            service: counted.service,
            arrivals: asked.check(&counted.arrivals, (asked_ns, window_ns)),
            spin_ns: plan.spin.as_nanos() as u64,
        })
    }
}
