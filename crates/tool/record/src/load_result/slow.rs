//! Slow clients: the machine form of `regatta load --slow`.

use crate::Latency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of many slow clients, and of new clients beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowClients {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The part that was sent slowly: `headers` or `body`.
    pub slow: String,
    /// Number of slow connections requested.
    pub connections: u64,
    /// Time between two bytes of a connection, in seconds.
    pub every_s: f64,
    /// Total duration, in seconds.
    pub duration_s: f64,
    /// Slow connections that could be opened: their first byte could be sent.
    pub opened: u64,
    /// Slow connections that could not be opened.
    pub refused: u64,
    /// Slow connections that the server closed.
    pub closed: u64,
    /// Age of these when they were closed; `None` if the server closed none.
    pub closed_age_s: Option<Ages>,
    /// Number of these by the status received before; those without a status count under `none`.
    pub closed_status: BTreeMap<String, u64>,
    /// Slow connections still open at the end.
    pub alive: u64,
    /// New clients that were served: a complete reply with a status from 200 to 299.
    pub served: u64,
    /// Of those: served within `within_s`.
    pub served_within: u64,
    /// New clients that were not served.
    pub failed: u64,
    /// The problem of the first of these.
    pub first_failure: Option<String>,
    /// From before the connect of a new client to the end of its reply, in nanoseconds.
    pub latency_ns: Latency,
    /// Time within which a new client should be served, in seconds.
    pub within_s: f64,
    /// Whether there were new clients, all were served, and at least 99% of them within `within_s`.
    pub kept_serving: bool,
    /// The judgement in words.
    pub verdict: String,
}

/// Ages of connections, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ages {
    /// The minimum.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The maximum.
    pub max: f64,
}
