//! What the agents of a load over several machines did.

use crate::{Errors, Latency, LoadAcross, Verdict};
use serde::{Deserialize, Serialize};

/// The agents of a load, and how well their windows agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadAgents {
    /// Maximum time between the openings of two windows, with the bounds of the clocks, in nanoseconds.
    /// `None`: no window was opened.
    pub edges_within_ns: Option<u64>,
    /// Deliveries to members on another agent than the sender's. Absent: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<LoadAcross>,
    /// What each agent did.
    pub agents: Vec<LoadAgent>,
}

/// What one agent did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadAgent {
    /// Its name.
    pub name: String,
    /// Number of CPUs that it may use.
    pub cores: u32,
    /// Number of its load threads.
    pub threads: u32,
    /// Number of its load processes.
    pub processes: u32,
    /// Its active connections.
    pub connections: u64,
    /// Its requests with a correct reply, counted as those of the load.
    pub requests: u64,
    /// Its errors by kind.
    pub errors: Errors,
    /// Its correct replies inside the window per second.
    pub rate_per_s: f64,
    /// Its latency, in nanoseconds.
    pub latency_ns: Latency,
    /// HDR histogram of its latencies, V2 format, base64.
    pub histogram: String,
    /// The share of the window in which its load threads used a CPU, without spinning: 1 is all of them all the
    /// time. `None` without a window.
    pub busy: Option<f64>,
    /// Shortest round trip of a message between it and the leader, in nanoseconds.
    pub rtt_ns: u64,
    /// Bound of the error of its clock in the window, in nanoseconds.
    pub clock_bound_ns: u64,
    /// The judgement on its part of the load.
    pub verdict: Verdict,
}

/// The machine form of a load over agents that has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidLoad {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Why it has no result.
    pub void: String,
    /// What each agent reported until then.
    pub agents: Vec<VoidLoadAgent>,
}

/// What an agent reported of a load without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidLoadAgent {
    /// Its name.
    pub name: String,
    /// Number of CPUs that it may use.
    pub cores: u32,
    /// Number of its load threads.
    pub threads: u32,
    /// Complete replies, correct or wrong, warm-up included.
    pub replies: u64,
    /// Errors of all kinds.
    pub errors: u64,
}
