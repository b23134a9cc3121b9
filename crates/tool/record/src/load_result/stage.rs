//! The result of a stage of a load.

use crate::{Latency, OpenLoop, Unseen, Verdict};
use serde::{Deserialize, Serialize};

/// The result of one stage of `regatta load`. A request belongs to the stage in which it was due,
/// whenever its reply arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadStage {
    /// Its number, counted from 1.
    pub number: u32,
    /// Measured length, in seconds.
    pub duration_s: f64,
    /// Requested requests per second.
    pub target_rate_per_s: u32,
    /// Requests that were due in it and got a correct reply.
    pub requests: u64,
    /// Correct replies that arrived in it, per second; some may belong to requests of the stage before.
    pub rate_per_s: f64,
    /// Latency from the intended send, in nanoseconds; requests without a reply count as longer.
    pub latency_ns: Latency,
    /// The outcome of the requests that were due.
    pub open_loop: OpenLoop,
    /// CPU of the load threads per reply that arrived, in nanoseconds, without polling; `None` without a
    /// reply.
    pub load_cpu_ns_per_request: Option<f64>,
    /// CPU of the observed server per reply that arrived, in nanoseconds.
    pub server_cpu_ns_per_request: Option<f64>,
    /// What the server's CPU may lack.
    pub server_unseen: Option<Unseen>,
    /// The judgement.
    pub verdict: Verdict,
    /// HDR histogram of the latencies, V2 format, base64.
    pub histogram: String,
}
