//! Percentiles as printed by every report.

use crate::{Cell, Estimate, Latency, OperationFigures, Percentile, Percentiles, Unknown};

/// A percentile as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownPercentile {
    /// Nanoseconds.
    pub ns: f64,
    /// Its 95% interval over rounds, if any.
    pub interval: Option<Estimate>,
}

impl Percentile {
    /// Returns the interval over rounds.
    pub fn over_rounds(self, intervals: &Percentiles) -> Option<Estimate> {
        match self {
            Self::P50 => intervals.p50,
            Self::P90 => intervals.p90,
            Self::P95 => intervals.p95,
            Self::P99 => intervals.p99,
            Self::P99_9 => intervals.p99_9,
        }
    }

    /// The single definition of a percentile in tables, charts and sentences: the geometric mean of
    /// the rounds' percentiles, because the round is the unit of every interval. If a round lacks
    /// it (fewer than ten samples beyond it) or there is only one round, it is that of all rounds
    /// together, without an interval. `None` if it is absent or not known.
    fn shown(
        self,
        latency: &Latency,
        intervals: &Percentiles,
        not_known: &[Unknown],
    ) -> Option<ShownPercentile> {
        let pooled =
            self.pooled(latency).filter(|_| !not_known.contains(&Unknown::Latency(self)))?;
        let interval = self.over_rounds(intervals);
        Some(ShownPercentile { ns: interval.map_or(pooled as f64, |e| e.mean), interval })
    }
}

impl Cell {
    /// A percentile as printed by every report.
    pub fn percentile(&self, percentile: Percentile) -> Option<ShownPercentile> {
        percentile.shown(&self.latency_ns, &self.latency_intervals, &self.not_known)
    }

    /// Whether a figure was measured and is not known.
    pub fn is_unknown(&self, figure: Unknown) -> bool {
        self.not_known.contains(&figure)
    }
}

impl OperationFigures {
    /// A percentile as printed by every report.
    pub fn percentile(&self, percentile: Percentile) -> Option<ShownPercentile> {
        percentile.shown(&self.latency_ns, &self.latency_intervals, &self.not_known)
    }
}
