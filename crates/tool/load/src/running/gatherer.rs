//! Merges the seconds of a load while it runs: those of all threads of a process, or of all processes.

use crate::{
    histogram::new_histogram,
    running::shared::{Gauge, Shared},
};
use hdrhistogram::Histogram;
use regatta_record::SecondCounted;
use std::collections::BTreeMap;

/// Merges the seconds of all threads of a process, or of all load processes.
pub(crate) struct Gatherer {
    /// The number of the last second that each source handed over, plus one.
    through: Vec<u32>,
    /// Seconds that not all sources have handed over.
    pending: BTreeMap<u32, SecondCounted>,
    /// The next second to return.
    next: u32,
    /// The latencies of all seconds.
    sum: Histogram<u64>,
}

impl Gatherer {
    /// Gathers from this number of sources.
    pub fn new(sources: usize) -> Self {
        Gatherer {
            through: vec![0; sources],
            pending: BTreeMap::new(),
            next: 0,
            sum: new_histogram(),
        }
    }

    /// Takes what was handed over, and returns the seconds that are complete, in order and without gaps.
    pub fn gather(&mut self, shared: &Shared) -> Vec<SecondCounted> {
        self.take(&shared.gauges);
        let complete = self.through.iter().copied().min().unwrap_or(0);
        self.until(complete)
    }

    /// Takes and returns the remaining seconds, after all sources have ended.
    pub fn rest(&mut self, shared: &Shared) -> Vec<SecondCounted> {
        self.take(&shared.gauges);
        let last = self.through.iter().copied().max().unwrap_or(0);
        self.until(last)
    }

    /// Adds the latencies of all seconds that were taken.
    pub fn add_to(&self, histogram: &mut Histogram<u64>) {
        histogram.add(&self.sum).expect("all histograms are created in one place");
    }

    fn take(&mut self, gauges: &[Gauge]) {
        for (through, gauge) in self.through.iter_mut().zip(gauges) {
            for mut second in gauge.handed.take() {
                let number = second.number;
                *through = number + 1;
                let merged = self.pending.entry(number);
                let merged =
                    merged.or_insert_with(|| SecondCounted::nothing(number, new_histogram()));
                let added = self.sum.add(&second.latency).is_ok() && merged.add(&second).is_ok();
                assert!(added, "all histograms are created in one place, or were checked");
                second.latency.reset();
                gauge.handed.give(second.latency);
            }
        }
    }

    fn until(&mut self, end: u32) -> Vec<SecondCounted> {
        let first = self.next;
        self.next = end.max(first);
        let take = |number| {
            let second = self.pending.remove(&number);
            second.unwrap_or_else(|| SecondCounted::nothing(number, new_histogram()))
        };
        (first..end).map(take).collect()
    }
}

#[cfg(test)]
mod tests;
