//! Deliveries to members on another machine than the sender's, as stored.

use crate::Latency;
use serde::{Deserialize, Serialize};

/// Deliveries between the agents of a load, of broadcasts that were sent inside the window. Each latency
/// is the difference of two clocks, so it is only known to within a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadAcross {
    /// Number of latencies, without the impossible ones.
    pub deliveries: u64,
    /// Number of latencies that are below zero by more than the bound. If there are any, a clock has
    /// failed, and the latencies are void.
    pub impossible: u64,
    /// Number of members whose connection was closed during the load, whether they joined again or not. What
    /// they received is not checked, so if there are any, the latencies are void.
    #[serde(default)]
    pub unchecked: u64,
    /// Each latency, and each percentile, differs from the truth by at most this, in nanoseconds.
    pub bound_ns: u64,
    /// The latencies, in nanoseconds. One that is below zero by less than the bound counts as 1.
    pub latency_ns: Latency,
    /// HDR histogram of the latencies, V2 format, base64.
    pub histogram: String,
    /// The same for each pair of agents.
    pub pairs: Vec<LoadAcrossPair>,
}

impl LoadAcross {
    /// Why the latencies are void, if they are.
    pub fn void(&self) -> Option<String> {
        if self.impossible > 0 {
            return Some(format!(
                "{} more came before they were sent, so a clock has failed, or the server sent copies of \
                 broadcasts that it did not have yet or changed their times",
                self.impossible
            ));
        }
        (self.unchecked > 0).then(|| {
            format!(
                "the connections of {} members were closed, so what they got from other agents is not \
                 checked",
                self.unchecked
            )
        })
    }
}

/// Deliveries from the members of one agent to those of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadAcrossPair {
    /// The agent of the senders.
    pub from: String,
    /// The agent of the receivers.
    pub to: String,
    /// Number of latencies, without the impossible ones.
    pub deliveries: u64,
    /// Number of latencies that are below zero by more than the bound.
    pub impossible: u64,
    /// How far the clock of `to` is ahead of that of `from`: at least and at most, over the whole window,
    /// in nanoseconds.
    pub offset_ns: [i64; 2],
    /// Bound of the error of a latency, in nanoseconds.
    pub bound_ns: u64,
    /// The latencies, in nanoseconds.
    pub latency_ns: Latency,
}
