//! The result of `regatta capacity`: how many clients, or requests per second, a server sustains
//! within a latency limit (method, rule 8).

use crate::{Arrivals, Entry, Operation, Settling, Setup};
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
    /// Name of the protocol that the workload was sent over. Absent: its usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// How the server is loaded.
    pub load: CapacityLoad,
    /// The permitted latency.
    pub limit: Limit,
    /// The operations that the limit applies to.
    #[serde(default, skip_serializing_if = "Operation::is_request")]
    pub limited: Operation,
    /// Whether the server was restarted for every step; otherwise only its connections were new.
    pub fresh_starts: bool,
    /// The agents that carried out the load. Absent: this machine did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Clients in closed loop; `None` for a search over rates, or without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<CapacityInterval>,
    /// Requests per second in open loop; `None` for a search over clients, or without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<CapacityInterval>,
    /// Proportional set size of the server in bytes, with the connections open, at the highest
    /// passed step that is not above the best level; `None` if the server was not observed, or no
    /// level passed.
    pub memory_bytes: Option<u64>,
    /// If the interval has no upper end: what ended the search, e.g. `--max`.
    pub one_sided: Option<String>,
    /// How the server warmed up before the first step, if observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// If the ends lack verifications: why.
    pub unverified: Option<String>,
    /// All steps in chronological order.
    pub steps: Vec<CapacityStep>,
    /// The machine, the command line and the start; `None` in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The contender with its version, command and manifest; `None` for a server that already runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contender: Option<Entry>,
}

impl Capacity {
    /// The levels around the capacity, in clients or requests per second.
    pub fn interval(&self) -> Option<CapacityInterval> {
        self.clients.or(self.rate_per_s)
    }
}

/// How the server is loaded; the number of clients or the rate is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum CapacityLoad {
    /// Connections in closed loop.
    Clients {
        /// Maximum number of requests in flight on each connection.
        pipeline: u32,
        /// Maximum number of requests in flight over all connections; `None`: no limit.
        in_flight: Option<u32>,
    },
    /// Requests per second in open loop.
    Rate {
        /// Connections that share them.
        connections: u32,
        /// Maximum number of requests in flight on each connection.
        pipeline: u32,
        /// How requests arrive.
        arrivals: Arrivals,
    },
}

/// A latency percentile and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The percentile as a fraction: 0.95 for p95.
    pub quantile: f64,
    /// Maximum latency, in nanoseconds.
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
    /// The level that separates passed from failed levels best.
    pub best: u32,
    /// Highest level at which every verification passed. In a search that was cut short: the highest
    /// that passed ([`Capacity::unverified`]).
    pub low: u32,
    /// Lowest level at which every verification failed; in a search that was cut short, a level above
    /// `low` that failed. `None`: one-sided, see [`Capacity::one_sided`].
    pub high: Option<u32>,
}

/// One try of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    /// Clients, or requests per second.
    pub level: u32,
    /// Why it was tried.
    pub phase: CapacityPhase,
    /// The limited percentile of the latency, in nanoseconds; `None` if there were too few replies, if
    /// it is among requests without an answer, or if the load did not run.
    pub percentile_ns: Option<u64>,
    /// Correct replies per second.
    pub reply_rate_per_s: f64,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// How busy the load's CPUs were, as a fraction.
    pub load_busy: f64,
    /// The same for the server's CPUs; `None` if it was not observed.
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
    /// To verify one end of the interval.
    Verify,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_printed_as_requested() {
        let text = |quantile, ns| Limit { quantile, ns }.to_string();
        assert_eq!(text(0.95, 250_000_000), "p95 ≤ 250 ms");
        assert_eq!(text(0.999, 1_500_000), "p99.9 ≤ 1.5 ms");
        assert_eq!(text(0.5, 2_000_000_000), "p50 ≤ 2 s");
    }
}
