//! The verdict on a cell: what kind of measurement it was, what that voids, and why.

use serde::{Deserialize, Serialize};

/// What kind of measurement a cell turned out to be (method, rule 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The server's CPUs are busy, the load's are not.
    ServerBound,
    /// Both are busy: the rate is a lower bound.
    CoBound,
    /// Neither is busy: the rate says nothing of the limit.
    Idle,
    /// The load's CPUs are busy and the server's are not, or the null server is no faster.
    GeneratorBound,
    /// The asked rate was held.
    AtAskedRate,
    /// Server and load had to share CPUs: only the cost says anything.
    CostOnly,
    /// The asked rate was not held.
    Overloaded,
    /// Steal, run-queue delay or bimodal windows beyond what intervals can carry.
    Noisy,
    /// The rate or the cost drifted through the window.
    Unstable,
    /// The cell exceeds a limit that the contender states.
    CannotHold,
    /// A reply was wrong, missing, duplicated or out of order.
    Disqualified,
    /// Did not start, died, or did not stop.
    Failed,
    /// Not installed here.
    Skipped,
    /// Not all processes that did the work were observed: the load was not told which, others served
    /// the port, or the cost is impossibly low.
    ServerNotObserved,
    /// The contender gave itself other CPUs than it was put on.
    OtherCpus,
}

impl Kind {
    /// The name as it stands in tables and JSON, such as `server-bound`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ServerBound => "server-bound",
            Kind::CoBound => "co-bound",
            Kind::Idle => "idle",
            Kind::GeneratorBound => "generator-bound",
            Kind::AtAskedRate => "at-asked-rate",
            Kind::CostOnly => "cost-only",
            Kind::Overloaded => "overloaded",
            Kind::Noisy => "noisy",
            Kind::Unstable => "unstable",
            Kind::CannotHold => "cannot-hold",
            Kind::Disqualified => "disqualified",
            Kind::Failed => "failed",
            Kind::Skipped => "skipped",
            Kind::ServerNotObserved => "server-not-observed",
            Kind::OtherCpus => "other-cpus",
        }
    }
}

/// A figure that a verdict can void. A voided figure is greyed and never ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Server CPU per request.
    Cost,
    /// Requests per second.
    Rate,
    /// Latency percentiles.
    Latency,
    /// Server memory.
    Memory,
}

/// The judgement on one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What kind of measurement it was: the finding that weighs most.
    pub kind: Kind,
    /// What it was besides, in the order of the sentences. Ask [`Verdict::is`] for all findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Kind>,
    /// What must not be believed.
    pub void: Vec<Figure>,
    /// One sentence: the cause, with its figures, and the remedy where there is one.
    pub because: String,
}

impl Verdict {
    /// A verdict of `kind` with the figures that this kind always voids.
    pub fn new(kind: Kind, because: impl Into<String>) -> Self {
        use Figure::*;
        let void = match kind {
            Kind::ServerBound
            | Kind::CoBound
            | Kind::Idle
            | Kind::AtAskedRate
            | Kind::Overloaded => vec![],
            Kind::GeneratorBound | Kind::CostOnly => vec![Rate, Latency],
            Kind::Noisy => vec![Latency],
            Kind::Unstable => vec![Cost, Latency],
            Kind::CannotHold | Kind::Disqualified | Kind::Failed | Kind::Skipped => {
                vec![Cost, Rate, Latency, Memory]
            }
            Kind::ServerNotObserved => vec![Cost],
            Kind::OtherCpus => vec![Cost, Rate, Latency],
        };
        Verdict { kind, also: vec![], void, because: because.into() }
    }

    /// The findings with the sentence of each: the one that weighs most, then the others, whose
    /// sentences begin with `Also` and their kind.
    pub fn findings(&self) -> Vec<(Kind, &str)> {
        let (mut kind, mut text) = (self.kind, self.because.as_str());
        let mut findings = Vec::new();
        for also in &self.also {
            // A text of an earlier version may not name them all.
            let Some((own, next)) = text.split_once(&format!(". Also {}: ", also.name())) else {
                continue;
            };
            findings.push((kind, own));
            (kind, text) = (*also, next);
        }
        findings.push((kind, text));
        findings
    }

    /// Whether `kind` is among the findings.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind || self.also.contains(&kind)
    }

    /// Whether `figure` must not be believed.
    pub fn voids(&self, figure: Figure) -> bool {
        self.void.contains(&figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_its_sentence() {
        let also = vec![Kind::Noisy, Kind::CoBound];
        let because = "drifts. Also noisy: stolen; take another hour. Also co-bound: both busy";
        let verdict = Verdict { also, ..Verdict::new(Kind::Unstable, because) };
        let each = [
            (Kind::Unstable, "drifts"),
            (Kind::Noisy, "stolen; take another hour"),
            (Kind::CoBound, "both busy"),
        ];
        assert_eq!(verdict.findings(), each);
        let alone = Verdict::new(Kind::Failed, "died. Also noisy: it said");
        assert_eq!(alone.findings(), [(Kind::Failed, "died. Also noisy: it said")]);
    }
}
