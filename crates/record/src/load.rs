//! What `regatta load` hands over.

use crate::{Errors, Exchange, Latency, OpenLoop, Operation, Settling, Unseen, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How TLS was spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSpoken {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite by its name in the standard.
    pub cipher: String,
    /// Whether the server's certificate was checked.
    pub checked: bool,
}

/// The machine form of one `regatta load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Requests answered rightly: those whose reply came inside the measured window; in open loop,
    /// those that were due inside it, whenever the reply came.
    pub requests: u64,
    /// Errors by kind, zeros included.
    pub errors: Errors,
    /// Length of the measured window in seconds.
    pub duration_s: f64,
    /// Right replies inside the window per second. In open loop they may belong to requests of the
    /// warm-up.
    pub rate_per_s: f64,
    /// Connections that were asked for and opened.
    pub connections: u64,
    /// Number of processes that carried out the load. Absent: 1.
    #[serde(default = "one")]
    pub processes: u32,
    /// How TLS was spoken; `None`: plain.
    #[serde(default)]
    pub tls: Option<TlsSpoken>,
    /// Further connections, open and silent.
    #[serde(default)]
    pub idle: u64,
    /// So many of those did not read what the server sent them.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub stalled: u64,
    /// Further connections whose members came and went.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passing: u64,
    /// Members that came and went over the whole run.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passed: u64,
    /// Requests per second that were asked for; `None`: as fast as the replies came.
    #[serde(default)]
    pub target_rate_per_s: Option<u32>,
    /// In open loop: what became of what was scheduled.
    #[serde(default)]
    pub open_loop: Option<OpenLoop>,
    /// In open loop: requests that were due in the window and were never written.
    #[serde(default)]
    pub unsent: u64,
    /// In open loop: requests that were written more than a millisecond after they were due.
    #[serde(default)]
    pub late: u64,
    /// In open loop: from the intended send until a connection was free, nanoseconds.
    #[serde(default)]
    pub wait_ns: Option<Latency>,
    /// In open loop: from then until it was written: the generator's doing, nanoseconds.
    #[serde(default)]
    pub send_lag_ns: Option<Latency>,
    /// In open loop: from the write to the reply, nanoseconds.
    #[serde(default)]
    pub service_ns: Option<Latency>,
    /// Wall time of each instance of a burst in seconds, connecting included, from the begin of
    /// all to its own last reply; 0 for one that got none. Empty without a burst.
    #[serde(default)]
    pub instances_s: Vec<f64>,
    /// In closed loop from the write of a request to the read of its reply, in open loop from its
    /// intended send; in nanoseconds.
    pub latency_ns: Latency,
    /// Operations of further kinds, in the order of the dialect. Absent: requests are all there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<LoadOperation>,
    /// The kind of operation that the costs below are per. Absent: the request.
    #[serde(default, skip_serializing_if = "Operation::is_request")]
    pub cost_per: Operation,
    /// CPU of the load threads per request, or per `cost_per`, in nanoseconds, user and system.
    pub load_cpu_ns_per_request: Option<f64>,
    /// CPU of the observed server per request, or per `cost_per`, in nanoseconds; `None` without `--pid`.
    pub server_cpu_ns_per_request: Option<f64>,
    /// What processes of it that ended inside the window may have used beyond that. Absent: it was not
    /// observed, or an earlier regatta did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_unseen: Option<Unseen>,
    /// Replies inside the measured window, right or wrong, by their status; empty where the protocol
    /// has none.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// The share of the requests that was permitted to fail, above 0 and up to 1; `None`: the first
    /// wrong reply ends the run.
    #[serde(default)]
    pub tolerated: Option<f64>,
    /// The share of the requests of the whole run that failed: those with a wrong reply or none.
    #[serde(default)]
    pub failed: f64,
    /// Why connections were lost or not opened, in words, and how often.
    #[serde(default)]
    pub causes: BTreeMap<String, u64>,
    /// The first wrong exchange, where there was one.
    pub first_wrong: Option<Exchange>,
    /// A reply of which only a part came before its connection was lost, where there was one.
    #[serde(default)]
    pub first_unfinished: Option<Exchange>,
    /// How the server warmed up, where that was to be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// What was verified together when the load had ended, where it shared keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// The judgement.
    pub verdict: Verdict,
    /// HDR histogram of the latencies, V2 format, base64.
    pub histogram: String,
}

/// How much of what clients did with keys that they share was verified together. An operation is one on one
/// key: a request may be several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Operations that were verified.
    pub operations: u64,
    /// Keys that they were on.
    pub keys: u64,
    /// Operations that came later than could be written down.
    pub beyond: u64,
}

/// What came of a kind of operation beside requests: what the server sent unasked, all of it verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOperation {
    /// The kind.
    pub operation: Operation,
    /// Those that came inside the measured window.
    pub count: u64,
    /// Those per second.
    pub rate_per_s: f64,
    /// Those of the whole run.
    pub whole_run: u64,
    /// Nanoseconds from the send that caused an operation until it came; in open loop from the
    /// intended send.
    pub latency_ns: Latency,
    /// HDR histogram of these, V2 format, base64.
    pub histogram: String,
}

fn one() -> u32 {
    1
}
