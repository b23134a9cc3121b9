//! The rates that a pilot pass found, and which of them loads are at a share of.

use crate::LoadShape;
use serde::{Deserialize, Serialize};

/// The rate of a contender in the pilot pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PilotRate {
    /// Name of the contender.
    pub contender: String,
    /// The closed-loop load.
    pub load: LoadShape,
    /// Requests per second while it was steady; 0 if it did not finish.
    pub rate_per_s: f64,
    /// Why it has no rate. Absent: it has one, or an earlier regatta did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Requests per second in the window after that, if they differ by more than 10% and the spread that chance explains.
    /// Absent: they do not, or an earlier regatta did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_rate_per_s: Option<f64>,
    /// The length of its warm-up in seconds, if it is not known to have been steady by then. Absent: it was, or an
    /// earlier regatta did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady_after_s: Option<f64>,
    /// The time of its pilot round that counts towards the race's time limit, in seconds: from before its start until
    /// it was stopped, but at most its warm-up, its window and 2 s. 0: an earlier regatta did not record it.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub took_s: f64,
}

/// Loads of the race have a rate that is a share of this one: of what the slowest or the fastest contender did under
/// a closed-loop load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PilotShare {
    /// The closed-loop load.
    pub load: LoadShape,
    /// Whose rate it is.
    pub of: Extreme,
}

/// The slowest or the fastest contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extreme {
    /// That with the lowest rate.
    Slowest,
    /// That with the highest rate.
    Fastest,
}

impl Extreme {
    /// Its name, as in a race file.
    pub fn name(self) -> &'static str {
        match self {
            Extreme::Slowest => "slowest",
            Extreme::Fastest => "fastest",
        }
    }

    /// What is wrong with a load at a share of it, if a contender passes it, or if none reaches it: a rate that is too
    /// `high` or too `low`.
    pub fn too(self, is_passed: bool) -> &'static str {
        match (self, is_passed) {
            (Extreme::Slowest, true) | (Extreme::Fastest, false) => "high",
            (Extreme::Slowest, false) | (Extreme::Fastest, true) => "low",
        }
    }

    /// By which factor a rate passes another one: above 1 if a contender with this rate is slower, or faster, than
    /// one with the other.
    pub fn passes(self, rate: f64, other: f64) -> f64 {
        match self {
            Extreme::Slowest => other / rate,
            Extreme::Fastest => rate / other,
        }
    }
}
