//! What a slice counted, and the total of a lane.

use crate::{
    OpenTally, Plan, Split, Tally, Until,
    clock::Nanos,
    counts::tally::{self, Count, RunOutcome},
    histogram::new_histogram,
};
use hdrhistogram::Histogram;
use regatta_record::{Counted, Errors, Exchange, Operation, Part};
use std::{mem, time::Duration};

/// What a slice counted. Replies count until the slice is drained.
#[derive(Clone, Debug)]
pub struct SliceCounts {
    /// Requests answered correctly.
    pub requests: u64,
    /// Their latencies: in an open loop from when they were due.
    pub latency: SliceLatency,
    /// The further kinds of operations, in the order of the dialect; empty if it has only requests.
    pub operations: Vec<SliceOperation>,
    /// Bytes received, without the encryption of TLS.
    pub reply_bytes: u64,
    /// Connections opened, including reopened ones.
    pub connections_opened: u64,
    /// Time from the first send to the last reply or pushed operation, in nanoseconds. In an open loop from
    /// when the threads were ready to send.
    pub ns: u64,
    /// CPU time of the load threads from the call until the slice was drained, user and system, in
    /// nanoseconds.
    pub load_cpu_ns: u64,
    /// Of that: spent on polling with nothing to do.
    pub spun_ns: u64,
    /// Errors by kind.
    pub errors: Errors,
    /// Why the lane cannot continue; `None` if it can.
    pub is_over: Option<Over>,
}

/// Latencies of a slice, in nanoseconds; 0 without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceLatency {
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

/// A kind of operation that the server pushes, in a slice.
#[derive(Clone, Debug)]
pub struct SliceOperation {
    /// The kind.
    pub operation: Operation,
    /// Number of operations.
    pub count: u64,
    /// Their latencies, from the send that caused them.
    pub latency: SliceLatency,
}

/// Why a lane cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// A reply was wrong, and none is tolerated.
    WrongReply(Exchange),
    /// The server counts as dead: see [`Tally::server_died`].
    ServerDied,
    /// The caller stopped it.
    Stopped,
    /// TLS failed for good, or a system call failed that the load needs: [`crate::Lane::end`] returns the error.
    Failed,
}

impl SliceCounts {
    /// Nothing, because the lane is over.
    pub(super) fn over(is_over: Over) -> Self {
        let nothing = Counted::nothing(new_histogram(), 1, &[]);
        SliceCounts { is_over: Some(is_over), ..SliceCounts::of(&nothing) }
    }

    fn of(counted: &Counted) -> Self {
        let operation = |one: &regatta_record::OperationCounted| SliceOperation {
            operation: one.operation.clone(),
            count: one.count,
            latency: SliceLatency::of(&one.histogram),
        };
        SliceCounts {
            requests: counted.requests,
            latency: SliceLatency::of(&counted.histogram),
            operations: counted.operations.iter().map(operation).collect(),
            reply_bytes: counted.reply_bytes,
            connections_opened: counted.connections_opened,
            ns: counted.window_ns,
            load_cpu_ns: counted.load_cpu_ns,
            spun_ns: counted.spun_ns,
            errors: counted.errors,
            is_over: None,
        }
    }
}

impl SliceLatency {
    fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return SliceLatency::default();
        }
        SliceLatency {
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        }
    }
}

/// How the counts of a part of a lane are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// They are part of the total.
    Total,
    /// They are those of the warm-up.
    WarmUp,
    /// Only errors and connections count.
    Errors,
}

/// The counts of a lane so far.
pub(super) struct Total {
    /// The plan, with a window that is as long as its last reply says.
    plan: Plan,
    kinds: &'static [Operation],
    threads: usize,
    counted: Counted,
    /// Requests in each counted slice.
    slices: Vec<u64>,
    /// Length of the counted slices, as ordered.
    length: Nanos,
    warm_up_ns: Nanos,
    warm_up_requests: u64,
}

impl Total {
    pub fn new(plan: &Plan, kinds: &'static [Operation], threads: usize) -> Self {
        let plan = Plan { until: Until::Done, ..plan.clone() };
        let nothing = tally::count(Vec::new(), kinds, part(threads), None, &plan);
        Total {
            plan,
            kinds,
            threads,
            counted: nothing,
            slices: Vec::new(),
            length: 0,
            warm_up_ns: 0,
            warm_up_requests: 0,
        }
    }

    /// Adds what the threads counted in a slice that ended at `end`, or outside of slices.
    /// Also returns a histogram that is empty again.
    pub fn add(
        &mut self,
        counts: Vec<Count>,
        end: Nanos,
        length: Nanos,
        used: Use,
    ) -> (SliceCounts, Histogram<u64>) {
        let began = counts.iter().map(|count| count.began).filter(|began| *began > 0).min();
        let window = began.map(|began| (began, end.max(began)));
        let Total { plan, kinds, threads, .. } = self;
        let part = part(*threads);
        let mut counted = tally::count(counts, kinds, part, window, plan);
        let of_slice = SliceCounts::of(&counted);
        match used {
            Use::Total => {
                self.length += length;
                self.slices.push(counted.requests);
            }
            Use::WarmUp => {
                self.warm_up_ns += counted.window_ns;
                self.warm_up_requests += counted.requests;
            }
            Use::Errors => {}
        }
        counted.slices.clear();
        let window_ns = self.counted.window_ns + counted.window_ns;
        let added = match used {
            Use::Total => self.counted.add_from(&mut counted),
            Use::WarmUp | Use::Errors => self.counted.add(only_errors(&mut counted)),
        };
        added.expect("slices of one lane count alike");
        if used == Use::Total {
            self.counted.window_ns = window_ns;
        }
        counted.histogram.reset();
        (of_slice, counted.histogram)
    }

    /// The result of the lane. Takes the counts.
    pub fn tally(&mut self, outcome: RunOutcome) -> Tally {
        let nothing = Counted::nothing(new_histogram(), 1, &[]);
        let mut counted = mem::replace(&mut self.counted, nothing);
        let until = Until::Elapsed(Duration::from_nanos(self.length));
        let plan = Plan { until, ..self.plan.clone() };
        let open = counted.open_loop.take();
        counted.slice_ns = (counted.window_ns / self.slices.len().max(1) as u64).max(1);
        counted.slices = mem::take(&mut self.slices);
        let (warm_up_ns, warm_up_requests) = (self.warm_up_ns, self.warm_up_requests);
        let outcome = RunOutcome { warm_up_ns, warm_up_requests, ..outcome };
        let split = Split { processes: 1, threads: self.threads };
        let tally = Tally::of(counted, &outcome, &plan, split);
        Tally {
            open_loop: OpenTally::of(open, &plan, (self.threads, self.threads), self.length),
            ..tally
        }
    }

    /// The counts, to record how the lane ended.
    pub fn counted(&mut self) -> &mut Counted {
        &mut self.counted
    }
}

fn part(threads: usize) -> Part {
    Part::whole(threads as u32)
}

/// Takes the counts that belong to the whole run.
fn only_errors(counted: &mut Counted) -> Counted {
    let mut operations = mem::take(&mut counted.operations);
    for one in &mut operations {
        (one.count, one.missing) = (0, 0);
        one.histogram.reset();
    }
    Counted {
        errors: counted.errors,
        causes: mem::take(&mut counted.causes),
        first_unfinished: counted.first_unfinished.take(),
        replies: counted.replies,
        wrong_deliveries: counted.wrong_deliveries,
        broadcasts: counted.broadcasts,
        connections_opened: counted.connections_opened,
        in_flight_limit: counted.in_flight_limit,
        operations,
        ..Counted::nothing(new_histogram(), counted.slice_ns, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_the_median_the_99th_percentile_and_the_maximum() {
        let mut histogram = new_histogram();
        (1..=1_000).for_each(|ns| histogram.record(ns).unwrap());
        let latency = SliceLatency::of(&histogram);
        assert_eq!(latency, SliceLatency { p50_ns: 500, p99_ns: 990, max_ns: 1_000 });
        assert_eq!(SliceLatency::of(&new_histogram()), SliceLatency::default());
    }
}
