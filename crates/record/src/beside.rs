//! A load beside another.

use serde::{Deserialize, Serialize};

/// Large requests of the workload `hash` that are always outstanding beside a load: a closed loop
/// from before its window until after it. The load's own latencies then tell whether a small request
/// waits for a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Connections, each with one request outstanding.
    pub connections: u32,
    /// How often each of these requests has the file hashed.
    pub n: u32,
}
