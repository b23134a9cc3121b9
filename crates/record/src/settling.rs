//! How the cost of a contender changed while it warmed up.

use serde::{Deserialize, Serialize};

/// What was seen of a contender under one load, from a fresh start until its CPU per request was
/// steady, or for as long as was permitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settling {
    /// How its cost went.
    pub class: WarmUpClass,
    /// How long the load went on, nanoseconds.
    pub observed_ns: u64,
    /// When the cost had become what it stayed, nanoseconds after the load began. Of one that did not
    /// settle, when the last change was seen.
    pub after_ns: u64,
    /// Requests that were answered until then.
    pub after_requests: u64,
    /// Server CPU per request of the first second of load (or of less, where it was not observed for so
    /// long), nanoseconds.
    pub cold_ns_per_request: f64,
    /// The same from when it had settled until the end.
    pub warm_ns_per_request: f64,
    /// Logarithms of the CPU per request where connections come from 127.0.0.1 over that where they come
    /// from another address of the machine: of short loads in turn, after it was observed. `None` where
    /// that was not tried, or could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_localhost: Option<[f64; SOURCE_PAIRS]>,
}

/// How often it is tried whether a contender cares where connections come from.
pub const SOURCE_PAIRS: usize = 4;

impl Settling {
    /// Whether the cost was another at first, by more than a tenth: then a longer load changes it, also
    /// where it has not settled. One that only wanders gains nothing by waiting.
    pub fn has_direction(&self) -> bool {
        (self.cold_ns_per_request / self.warm_ns_per_request).ln().abs() > 1.1_f64.ln()
    }
}

/// How the cost of a contender went while it was observed. The names are those of Barrett et al.,
/// "Virtual Machine Warmup Blows Hot and Cold" (OOPSLA 2017).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUpClass {
    /// It was the same from the first quarter of a second on.
    Flat,
    /// It fell, and stayed.
    WarmsUp,
    /// It rose, and stayed.
    SlowsDown,
    /// It still changed when the time was over ("no steady state"), or scattered too much to tell.
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
    /// Right replies in it.
    pub requests: u64,
    /// Server CPU in it, nanoseconds; `None` where it could not be read.
    pub cpu_ns: Option<u64>,
}

/// One line of `settling.jsonl` in a result directory: a contender that was observed under a load before
/// its first round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: crate::LoadShape,
    /// What it was seen to need; `None` where its CPU could not be read.
    pub settling: Option<Settling>,
    /// What that follows from: the slices of each observation, of which there are two where the first
    /// was not flat.
    pub slices: Vec<Vec<WarmUpSlice>>,
}
