//! The result of `regatta load`.

use crate::{
    AnnouncedLosses, Errors, Exchange, Latency, LoadAgents, LoadStage, OpenLoop, Operation,
    Settling, TlsSpoken, Unseen, Verdict, WrongDeliveries,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine form of one `regatta load`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Requests with a correct reply: in closed loop, with the reply inside the measured window; in
    /// open loop, due inside the window, whenever the reply arrived.
    pub requests: u64,
    /// Requests with a right reply that is a refusal, as the load permits: of a hub, broadcasts that it did not
    /// publish, or perhaps not. They are not among the requests, have no latency, and are in no rate. In
    /// closed loop with the reply inside the window; in open loop, due inside it. Absent: none.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: u64,
    /// Errors by kind, zeros included.
    pub errors: Errors,
    /// Length of the measured window in seconds.
    pub duration_s: f64,
    /// Correct replies inside the window per second. In open loop they may belong to requests of
    /// the warm-up.
    pub rate_per_s: f64,
    /// Connections requested.
    pub connections: u64,
    /// Number of processes that carried out the load. Absent: 1.
    #[serde(default = "one")]
    pub processes: u32,
    /// The agents that carried it out. Absent: this machine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<LoadAgents>,
    /// The TLS parameters used; `None`: plain.
    pub tls: Option<TlsSpoken>,
    /// Further connections, open and silent.
    #[serde(default)]
    pub idle: u64,
    /// The number of those that did not read the server's data.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub stalled: u64,
    /// Further connections whose members joined and left.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passing: u64,
    /// Members that joined and left over the whole run.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passed: u64,
    /// Requests that were sent again over the whole run, because the server had announced the close of their
    /// connection and had not processed them.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub sent_again: u64,
    /// The lowest number of requests in flight that the server permitted on a connection. Absent: as many
    /// as asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight_limit: Option<u32>,
    /// Requested requests per second; `None`: as fast as replies arrived.
    pub target_rate_per_s: Option<u32>,
    /// In open loop: the fates of the scheduled requests.
    pub open_loop: Option<OpenLoop>,
    /// In open loop: requests that were due in the window and were never written.
    #[serde(default)]
    pub unsent: u64,
    /// In open loop: requests that were written more than a millisecond after they were due.
    #[serde(default)]
    pub late: u64,
    /// In open loop: from the intended send until a connection was free, nanoseconds.
    pub wait_ns: Option<Latency>,
    /// In open loop: from then until the write (the generator's part), nanoseconds.
    pub send_lag_ns: Option<Latency>,
    /// In open loop: from the write to the reply, nanoseconds.
    pub service_ns: Option<Latency>,
    /// Wall time of each instance of a burst in seconds, connecting included, from the start of all
    /// instances to its own last reply; 0 for an instance without a reply. Empty without a burst.
    #[serde(default)]
    pub instances_s: Vec<f64>,
    /// In closed loop from the write of a request to the read of its reply, in open loop from its
    /// intended send, with a connection per request from before the connect; in nanoseconds.
    pub latency_ns: Latency,
    /// Operations of further kinds, in the order of the dialect. Absent: there are only requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<LoadOperation>,
    /// The kind of operation that the costs below are per. Absent: the request.
    #[serde(default, skip_serializing_if = "Operation::is_request")]
    pub cost_per: Operation,
    /// CPU of the load threads per request, or per `cost_per`, in nanoseconds, user and system, without
    /// spinning; `None` without operations.
    pub load_cpu_ns_per_request: Option<f64>,
    /// CPU of the observed server per request, or per `cost_per`, in nanoseconds; `None` without
    /// `--pid`, without operations, or if it could not be read.
    pub server_cpu_ns_per_request: Option<f64>,
    /// The processes that were observed, with their descendants: that CPU is of all of them together. Absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_pids: Vec<u32>,
    /// CPU time that its processes may have used in addition and that was not measured, because
    /// they exited inside the window. Absent: the server was not observed, or an earlier regatta
    /// did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_unseen: Option<Unseen>,
    /// Replies inside the measured window, correct or wrong, by status; empty if the protocol has
    /// none.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// The fraction of the requests, and of the deliveries of a hub, that may fail, above 0 and up to 1;
    /// `None`: the first wrong reply ends the run.
    pub tolerated: Option<f64>,
    /// The fraction of the requests of the whole run that failed: those with a wrong reply or none. Of a hub
    /// the fraction of its owed deliveries that are wrong or missing, if that is more.
    #[serde(default)]
    pub failed: f64,
    /// Reasons why connections were lost or not opened, in words, and how often each occurred.
    #[serde(default)]
    pub causes: BTreeMap<String, u64>,
    /// The first wrong exchange, if any.
    pub first_wrong: Option<Exchange>,
    /// The first reply that was only partly received before its connection was lost, if any.
    pub first_unfinished: Option<Exchange>,
    /// How the server warmed up, if observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// The operations on shared keys that were verified together after the load, if keys were
    /// shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// What the server announced as lost. Absent: the load does not permit that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<AnnouncedLosses>,
    /// Wrong deliveries, by kind. If errors are tolerated, each of them is one of the errors: a `wrong_reply`, or if it
    /// was owed on a connection that was lost, an error of the kind of that loss. Absent: nothing is delivered, or
    /// agents carried the load out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_deliveries: Option<WrongDeliveries>,
    /// Deliveries that nobody was owed, because the connection of a member was lost and it had not joined again: each
    /// broadcast once for each such member. They are no errors, and in no other count. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub absent: u64,
    /// The stages of the window that began. Absent: it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<LoadStage>,
    /// The thresholds that the user set, and their outcomes. Absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<LoadThreshold>,
    /// The judgement.
    pub verdict: Verdict,
    /// HDR histogram of the latencies, V2 format, base64.
    pub histogram: String,
}

/// A condition that fails a load, and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadThreshold {
    /// The condition, e.g. `p99 > 10ms`.
    pub fail_if: String,
    /// The number of the stage that it was compared with, counted from 1. Absent: the whole load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// The measured value, in the unit of the limit. `None`: not known.
    pub value: Option<f64>,
    /// The limit: nanoseconds for a latency or a cost, operations per second for a rate, a number of
    /// errors, or a fraction of the requests.
    pub limit: f64,
    /// Whether the value is known, valid and within the limit.
    pub passed: bool,
    /// Why the threshold did not pass, if not because the value is beyond the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// How many of the clients' operations on shared keys were verified together. An operation concerns
/// one key: a request may contain several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Number of verified operations.
    pub operations: u64,
    /// Number of keys of these operations.
    pub keys: u64,
    /// Number of later operations that did not fit into the log.
    pub beyond: u64,
}

/// A kind of operation in addition to requests: messages that the server sends unsolicited, or those of
/// replies that are streams; all verified. Of streams: `messages`, which are only counted;
/// `first_messages`, with the latency of the first message of each stream; and `longest_gaps`, with the
/// longest time between two messages of each stream in place of a latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOperation {
    /// The kind.
    pub operation: Operation,
    /// Number of operations inside the measured window.
    pub count: u64,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Number of operations of the whole run.
    pub whole_run: u64,
    /// Nanoseconds from the send that caused an operation until it arrived; in open loop from the
    /// intended send, and for `first_messages` requests without a right reply then count as longer than
    /// all. All `null`: the operations are only counted, or there were none.
    pub latency_ns: Latency,
    /// HDR histogram of these latencies, V2 format, base64.
    pub histogram: String,
}

impl LoadOperation {
    /// Whether operations of this kind have no latencies.
    pub fn is_only_counted(&self) -> bool {
        self.operation.is_only_counted()
    }
}

fn one() -> u32 {
    1
}
