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
    /// Dearer or cheaper with 95% confidence; with a limit, surely within it.
    Differs,
    /// No difference can be told; with a limit, surely within it.
    Same,
    /// Neither surely within the limit nor surely beyond it: the rounds do not decide.
    Undecided,
    /// It could not be judged: only one side has a cost, or the ratio (where one is given) must not
    /// be trusted.
    Unknown,
}

/// What a gate with a limit comes to.
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
    /// What it comes to. Without a limit, cells fail only where they could not be judged.
    pub fn decision(&self) -> Decision {
        let any = |judgement| self.lines.iter().any(|line| line.judgement == judgement);
        match () {
            () if self.lines.is_empty() => Decision::Failed,
            () if any(Judgement::Worse) || any(Judgement::Unknown) => Decision::Failed,
            () if any(Judgement::Undecided) => Decision::NotDecided,
            () => Decision::Passed,
        }
    }

    /// Whether a cell is surely worse than allowed.
    pub fn fails(&self) -> bool {
        self.lines.iter().any(|line| line.judgement == Judgement::Worse)
    }

    /// Whether every cell is surely within the limit.
    pub fn passes(&self) -> bool {
        self.decision() == Decision::Passed
    }
}
