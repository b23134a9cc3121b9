//! How the cost of a contender changed while it warmed up.

use serde::{Deserialize, Serialize};

/// The observation of a contender at one load, from a fresh start until its CPU per request was
/// steady, or until the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settling {
    /// The course of its cost.
    pub class: WarmUpClass,
    /// Length of the load, nanoseconds.
    pub observed_ns: u64,
    /// When the cost reached its final value, nanoseconds after the load started. If it did not
    /// settle: when the last change was seen.
    pub after_ns: u64,
    /// Requests answered until then.
    pub after_requests: u64,
    /// How long the cost at the start differed from the final one by more than a tenth and than chance, in
    /// nanoseconds: caches are cold, and code is compiled. Zero if it did not, and in older results. It may be
    /// too short to count as a change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cold_for_ns: u64,
    /// Server CPU per request of the first second of load (or less, if the observation was
    /// shorter), nanoseconds.
    pub cold_ns_per_request: f64,
    /// The same from when it settled until the end.
    pub warm_ns_per_request: f64,
    /// Logarithms of the CPU per request for connections from 127.0.0.1 over that for connections
    /// from another address of the machine: of short alternating loads after the observation.
    /// `None` if not tried, if one of these loads failed, or if the CPU time could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_localhost: Option<[f64; SOURCE_PAIRS]>,
}

fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

/// Number of comparisons of source addresses per contender.
pub const SOURCE_PAIRS: usize = 4;

impl Settling {
    /// Whether the first cost differs from the last by more than a tenth. A warm-up then changes
    /// the cost, even if the cost never settles. A cost that only fluctuates needs no warm-up.
    pub fn has_direction(&self) -> bool {
        (self.cold_ns_per_request / self.warm_ns_per_request).ln().abs() > 1.1_f64.ln()
    }
}

/// The course of a contender's cost during its observation. The names are those of Barrett et al.,
/// "Virtual Machine Warmup Blows Hot and Cold" (OOPSLA 2017).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpClass {
    /// Its final cost is that of the start; a change in between is ignored.
    Flat,
    /// It fell, then was constant.
    WarmsUp,
    /// It rose, then was constant.
    SlowsDown,
    /// It still changed at the end ("no steady state"), or varied too much to decide.
    NeverSettles,
}

impl WarmUpClass {
    /// The class in words, after the name of a contender.
    pub fn in_words(self) -> &'static str {
        match self {
            WarmUpClass::Flat => "is steady from the start",
            WarmUpClass::WarmsUp => "warms up",
            WarmUpClass::SlowsDown => "slows down",
            WarmUpClass::NeverSettles => "never settles",
        }
    }
}

/// A slice of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpSlice {
    /// Its length, nanoseconds.
    pub ns: u64,
    /// Number of correct replies in it.
    pub requests: u64,
    /// Server CPU in it, nanoseconds; `None` if it could not be read.
    pub cpu_ns: Option<u64>,
}

/// One line of `settling.jsonl` in a result directory: the observation of a contender at a load
/// before its first round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: crate::LoadShape,
    /// The result; `None` if its CPU time could not be read.
    pub settling: Option<Settling>,
    /// The slices of each observation. There are two observations if the cost rose or fell in the
    /// first.
    pub slices: Vec<Vec<WarmUpSlice>>,
}
