//! What `regatta capacity` found: how many clients, or requests per second, a server carries within
//! a limit of latency (method, rule 8).

use crate::{Arrivals, Operation, Settling};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The machine form of one `regatta capacity`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The server: its URL, or the contender's name.
    pub server: String,
    /// Name of the workload.
    pub workload: String,
    /// How the server was loaded.
    pub load: CapacityLoad,
    /// What latency was permitted.
    pub limit: Limit,
    /// Of which operations.
    #[serde(default, skip_serializing_if = "Operation::is_request")]
    pub limited: Operation,
    /// Whether every step was a fresh start of the server; else only its connections were fresh.
    pub fresh_starts: bool,
    /// Clients in closed loop; `None` where rates were asked for, or nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<CapacityInterval>,
    /// Requests per second in open loop; `None` where clients were asked for, or nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<CapacityInterval>,
    /// Proportional set size of the server in bytes with the connections open, at the highest step
    /// that passed and is no higher than the best level; `None` where the server was not observed.
    pub memory_bytes: Option<u64>,
    /// Where the interval has no upper end: what ended the search, such as `--max`.
    pub one_sided: Option<String>,
    /// How the server warmed up before the first step, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// Where its ends were not verified as often as they should be: why not.
    pub unverified: Option<String>,
    /// Every step in the order of time.
    pub steps: Vec<CapacityStep>,
}

/// How the server was loaded; clients or the rate are what was searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum CapacityLoad {
    /// Connections in closed loop.
    Clients {
        /// Requests outstanding on each connection, at most.
        pipeline: u32,
        /// Requests outstanding over all connections, at most; `None`: no limit.
        in_flight: Option<u32>,
    },
    /// Requests per second in open loop.
    Rate {
        /// Connections that share them.
        connections: u32,
        /// Requests outstanding on each connection, at most.
        pipeline: u32,
        /// How they arrive.
        arrivals: Arrivals,
    },
}

/// A percentile of the latency, and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// As a fraction: 0.95 for p95.
    pub quantile: f64,
    /// Longest latency permitted, nanoseconds.
    pub ns: u64,
}

impl Limit {
    /// The percentile's name: `p95`, `p99.9`.
    pub fn percentile(&self) -> String {
        format!("p{}", (self.quantile * 1e5).round() / 1e3)
    }
}

impl fmt::Display for Limit {
    /// `p95 ≤ 250 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.ns {
            1_000_000_000.. => (1e9, "s"),
            1_000_000.. => (1e6, "ms"),
            1_000.. => (1e3, "µs"),
            _ => (1.0, "ns"),
        };
        write!(f, "{} ≤ {} {unit}", self.percentile(), self.ns as f64 / size)
    }
}

/// A capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityInterval {
    /// The level that divides those that passed from those that failed best.
    pub best: u32,
    /// Highest level at which every verification passed.
    pub low: u32,
    /// Lowest level at which every verification failed; `None`: one-sided, see
    /// [`Capacity::one_sided`].
    pub high: Option<u32>,
}

/// One try of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    /// Clients, or requests per second.
    pub level: u32,
    /// Why it was tried.
    pub phase: CapacityPhase,
    /// The limited percentile of the latency, nanoseconds; `None` where too few replies came.
    pub percentile_ns: Option<u64>,
    /// Right replies per second.
    pub reply_rate_per_s: f64,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// How busy the load's CPUs were, as a fraction.
    pub load_busy: f64,
    /// How busy the server's were; `None` where it was not observed.
    pub server_busy: Option<f64>,
    /// The server's proportional set size with the connections open, bytes.
    pub memory_bytes: Option<u64>,
    /// Whether it passed; `None`: not judged.
    pub passed: Option<bool>,
    /// Why it did not pass, or could not be judged.
    pub because: Option<String>,
}

/// Why a level was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityPhase {
    /// On the way up.
    StepUp,
    /// Between a level that passed and one that did not.
    Bisect,
    /// To make sure of one end of the interval.
    Verify,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_reads_as_it_was_asked() {
        let told = |quantile, ns| Limit { quantile, ns }.to_string();
        assert_eq!(told(0.95, 250_000_000), "p95 ≤ 250 ms");
        assert_eq!(told(0.999, 1_500_000), "p99.9 ≤ 1.5 ms");
        assert_eq!(told(0.5, 2_000_000_000), "p50 ≤ 2 s");
    }
}
