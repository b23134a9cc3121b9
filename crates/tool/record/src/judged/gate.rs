//! Gates: whether a cost rose by more than allowed.

use crate::{Estimate, LoadShape};
use serde::{Deserialize, Serialize};

/// A comparison of costs with a limit: of a race with its baseline (`race --fail-over`), or of two
/// results (`diff`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The reference of the ratios: a contender, or a result directory.
    pub old: String,
    /// The judged side: "every contender", or a result directory.
    pub new: String,
    /// Allowed increase of a cost, as a fraction; `None`: nothing fails.
    pub fail_over: Option<f64>,
    /// How the ratios were computed, in one sentence.
    pub method: String,
    /// One line per cell.
    pub lines: Vec<GateLine>,
    /// Doubts about the comparison, one sentence each.
    pub doubts: Vec<String>,
}

/// One cell of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateLine {
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// Cost new over old; `None` if not known.
    pub ratio: Option<Estimate>,
    /// The judgement.
    pub judgement: Judgement,
    /// One sentence: why there is no ratio, or the meaning of the ratio.
    pub because: String,
}

/// The judgement of a gate on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Significantly more expensive than allowed: the gate fails.
    Worse,
    /// Significantly more or less expensive (95% confidence); with a limit, significantly within
    /// it.
    Differs,
    /// No significant difference; with a limit, significantly within it.
    Same,
    /// Not decided: the interval contains the limit.
    Undecided,
    /// Not judged: only one side has a cost, or the ratio (if given) must not be trusted.
    Unknown,
}

/// The decision of a gate with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Every cell is within the limit, with 95% confidence.
    Passed,
    /// A cell exceeds the limit with 95% confidence, or could not be judged, or there are no cells.
    Failed,
    /// No cell failed, but the interval of at least one contains the limit.
    NotDecided,
}

impl Gate {
    /// Returns the decision. Without a limit, the gate fails only if a cell could not be judged, or if
    /// there are no cells.
    pub fn decision(&self) -> Decision {
        let any = |judgement| self.lines.iter().any(|line| line.judgement == judgement);
        match () {
            () if self.lines.is_empty() => Decision::Failed,
            () if any(Judgement::Worse) || any(Judgement::Unknown) => Decision::Failed,
            () if any(Judgement::Undecided) => Decision::NotDecided,
            () => Decision::Passed,
        }
    }

    /// Whether a cell is significantly worse than allowed.
    pub fn fails(&self) -> bool {
        self.lines.iter().any(|line| line.judgement == Judgement::Worse)
    }

    /// Whether there are cells, and every one is significantly within the limit.
    pub fn passes(&self) -> bool {
        self.decision() == Decision::Passed
    }
}
