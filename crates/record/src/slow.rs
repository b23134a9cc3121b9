//! What came of slow clients: the machine form of `regatta load --slow`.

use crate::Latency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What came of many slow clients, and of new ones beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowClients {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// What was sent slowly: `headers` or `body`.
    pub slow: String,
    /// Slow connections that were asked for.
    pub connections: u64,
    /// Between two bytes of a connection, in seconds.
    pub every_s: f64,
    /// How long it took in all, in seconds.
    pub duration_s: f64,
    /// Slow connections that came to stand: their first byte could be sent.
    pub opened: u64,
    /// Those that did not.
    pub refused: u64,
    /// Those that the server closed.
    pub closed: u64,
    /// How old these were when it did; `None` where it closed none.
    pub closed_age_s: Option<Ages>,
    /// How many of these were told which status before; those that were told none stand under
    /// `none`.
    pub closed_status: BTreeMap<String, u64>,
    /// Slow connections that stood at the end.
    pub alive: u64,
    /// New clients that were served: a whole reply with a status from 200 to 299.
    pub served: u64,
    /// Those of them that were served within `within_s`.
    pub served_within: u64,
    /// New clients that were not served.
    pub failed: u64,
    /// What the first of these met.
    pub first_failure: Option<String>,
    /// From before the connect of a new client to the end of its reply, in nanoseconds.
    pub latency_ns: Latency,
    /// How soon a new client was to be served, in seconds.
    pub within_s: f64,
    /// Whether all new clients were served, and at least 99% of them so soon.
    pub kept_serving: bool,
    /// The judgement in words.
    pub verdict: String,
}

/// How old connections were, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ages {
    /// The youngest.
    pub min: f64,
    /// Half of them were younger.
    pub median: f64,
    /// The oldest.
    pub max: f64,
}
