//! A load beside another.

use serde::{Deserialize, Serialize};

/// Large requests of the workload `hash` that are always in flight beside a load: a closed loop
/// from before its window until after it. The load's own latencies then show whether a small
/// request waits for a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Connections, each with one request in flight.
    pub connections: u32,
    /// How many times each of these requests hashes the file.
    pub n: u32,
}
