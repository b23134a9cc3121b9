//! Figures that were measured but are not known.

use crate::Latency;
use serde::{Deserialize, Serialize};

/// A figure whose 95% interval does not even show its order of magnitude: it extends below a tenth
/// of the figure or above ten times the figure. The figure is `null` in the record and printed as
/// `not known`. A percentile has no interval in the record, but keeps its value over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// Server CPU per operation.
    Cost,
    /// The ratio to the baseline's cost.
    Ratio,
    /// Operations per second.
    Rate,
    /// Milliseconds per request of a counted load.
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

impl Percentile {
    /// All percentiles, in ascending order.
    pub const ALL: [Percentile; 5] = [Self::P50, Self::P90, Self::P95, Self::P99, Self::P99_9];

    /// The printed name: `p99.9`.
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
        }
    }

    /// The fraction of samples that are at most as long: 0.99 for `p99`.
    pub fn quantile(self) -> f64 {
        match self {
            Self::P50 => 0.50,
            Self::P90 => 0.90,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P99_9 => 0.999,
        }
    }

    /// The percentile of all rounds together.
    pub fn pooled(self, latency: &Latency) -> Option<u64> {
        match self {
            Self::P50 => latency.p50,
            Self::P90 => latency.p90,
            Self::P95 => latency.p95,
            Self::P99 => latency.p99,
            Self::P99_9 => latency.p99_9,
        }
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
