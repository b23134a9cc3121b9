//! Gates: whether something became dearer than is allowed.

use crate::{Estimate, LoadShape};
use serde::{Deserialize, Serialize};

/// A comparison of costs with a limit: of a race with its baseline (`race --fail-over`), or of two
/// results (`diff`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// What the ratios are taken to: a contender, or a result directory.
    pub old: String,
    /// What is judged: "every contender", or a result directory.
    pub new: String,
    /// How much dearer is allowed, as a fraction; `None`: nothing fails.
    pub fail_over: Option<f64>,
    /// How the ratios were made, in one sentence.
    pub method: String,
    /// A line for each cell.
    pub lines: Vec<GateLine>,
    /// What might mislead, one sentence each.
    pub doubts: Vec<String>,
}

/// One cell of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateLine {
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// Cost new over old; `None` where it is not known.
    pub ratio: Option<Estimate>,
    /// What follows.
    pub judgement: Judgement,
    /// One sentence: why there is no ratio, or what the ratio means.
    pub because: String,
}

/// What a gate says of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Surely dearer than allowed: the gate fails.
    Worse,
    /// Dearer or cheaper with 95% confidence, but not surely beyond the limit.
    Differs,
    /// No difference can be told.
    Same,
    /// It could not be judged: only one side has a cost, or the ratio (where one is given) must not
    /// be trusted.
    Unknown,
}

impl Gate {
    /// Whether a cell is surely worse than allowed.
    pub fn fails(&self) -> bool {
        self.lines.iter().any(|line| line.judgement == Judgement::Worse)
    }

    /// Whether all was judged and nothing is surely worse than allowed.
    pub fn passes(&self) -> bool {
        let stands =
            |line: &GateLine| !matches!(line.judgement, Judgement::Worse | Judgement::Unknown);
        !self.lines.is_empty() && self.lines.iter().all(stands)
    }
}
