//! Figures that were measured and are not known, and percentiles as every report shows them.

use crate::{Cell, Estimate, Latency, OperationFigures, Percentiles};
use serde::{Deserialize, Serialize};

/// A figure whose 95% interval does not even tell its order of magnitude: it reaches below a tenth of
/// the figure or above ten times of it. The figure is `null` in the record and printed as `not known`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Server CPU per operation.
    Cost,
    /// The ratio to the baseline's cost.
    Ratio,
    /// Operations per second.
    Rate,
    /// The time of a counted load over its requests.
    MsPerRequest,
    /// Requests per second of the load beside.
    Beside,
    /// Wall time of an instance of a burst.
    Instance,
    /// Load CPU per operation.
    LoadCost,
    /// A percentile of the latency over rounds.
    #[serde(untagged)]
    Latency(Percentile),
}

/// A percentile of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Percentile {
    /// The median.
    P50,
    /// 90%.
    P90,
    /// 95%.
    P95,
    /// 99%.
    P99,
    /// 99.9%.
    #[serde(rename = "p99_9")]
    P99_9,
}

/// A percentile as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownPercentile {
    /// Nanoseconds.
    pub ns: f64,
    /// Its 95% interval over rounds, where there is one.
    pub interval: Option<Estimate>,
}

impl Percentile {
    /// All, rising.
    pub const ALL: [Percentile; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P99_9];

    /// As it is printed: `p99.9`.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
        }
    }

    /// Over all rounds together.
    pub fn pooled(self, latency: &Latency) -> Option<u64> {
        match self {
            Self::P50 => latency.p50,
            Self::P90 => latency.p90,
            Self::P95 => latency.p95,
            Self::P99 => latency.p99,
            Self::P99_9 => latency.p99_9,
        }
    }

    /// Over rounds.
    pub fn over_rounds(self, intervals: &Percentiles) -> Option<Estimate> {
        match self {
            Self::P50 => intervals.p50,
            Self::P90 => intervals.p90,
            Self::P95 => intervals.p95,
            Self::P99 => intervals.p99,
            Self::P99_9 => intervals.p99_9,
        }
    }

    /// The one definition of a percentile that tables, charts and sentences show: the geometric mean of
    /// the rounds' percentiles, because the round is the unit of every interval. Where a round lacks it
    /// (fewer than ten samples beyond it) or there is one round, it is that of all rounds together,
    /// without an interval. `None` if it is not there or not known.
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
    /// A percentile as every report shows it.
    pub fn percentile(&self, percentile: Percentile) -> Option<ShownPercentile> {
        percentile.shown(&self.latency_ns, &self.latency_intervals, &self.not_known)
    }

    /// Whether a figure was measured and is not known.
    pub fn is_unknown(&self, figure: Unknown) -> bool {
        self.not_known.contains(&figure)
    }
}

impl OperationFigures {
    /// A percentile as every report shows it.
    pub fn percentile(&self, percentile: Percentile) -> Option<ShownPercentile> {
        percentile.shown(&self.latency_ns, &self.latency_intervals, &self.not_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_figures_have_plain_names_in_json() {
        let all = [
            Unknown::Cost,
            Unknown::MsPerRequest,
            Unknown::Latency(Percentile::P99),
            Unknown::Latency(Percentile::P99_9),
        ];
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(text, r#"["cost","ms-per-request","p99","p99_9"]"#);
        assert_eq!(serde_json::from_str::<Vec<Unknown>>(&text).unwrap(), all);
    }
}
