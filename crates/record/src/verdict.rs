//! The verdict on a cell: the kind of measurement, the figures that it voids, and the reason.

use serde::{Deserialize, Serialize};

/// The kind of a measurement (method, rule 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The server's CPUs are busy, the load's are not.
    ServerBound,
    /// Both are busy: the rate is a lower bound.
    CoBound,
    /// Neither is busy: the rate does not show the limit.
    Idle,
    /// The load's CPUs are busy or taken by others and the server's are not busy, the null server is no
    /// faster, or the load sent its requests late.
    GeneratorBound,
    /// The requested rate was held.
    AtAskedRate,
    /// Server and load had to share CPUs: only the cost is meaningful.
    CostOnly,
    /// The requested rate was not held.
    Overloaded,
    /// Steal or run-queue delay, beyond what intervals cover.
    Noisy,
    /// The rate drifted during the window.
    Unstable,
    /// The cell exceeds a limit that the contender declares, or the load's limit of open files.
    CannotHold,
    /// A reply was wrong, missing, duplicated or out of order.
    Disqualified,
    /// The contender did not start, gave no correct reply, did not finish in time, died, or did not
    /// stop.
    Failed,
    /// The contender is not installed here, or none of its rounds was run yet.
    Skipped,
    /// Not all processes that did the work were observed: the load did not know them, other
    /// processes served the port, or the cost is impossibly low.
    ServerNotObserved,
    /// The contender moved itself to other CPUs than assigned.
    OtherCpus,
}

impl Kind {
    /// The name in tables and JSON, e.g. `server-bound`.
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

/// A figure that a verdict can void. Reports print a void figure in parentheses, and never rank it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Server CPU per request, or per [`crate::Asked::cost_per`].
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
    /// The kind of measurement: the most important finding.
    pub kind: Kind,
    /// The other findings, in the order of the sentences. [`Verdict::is`] checks all findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Kind>,
    /// Figures that must not be trusted.
    pub void: Vec<Figure>,
    /// One sentence for each finding: the cause, with its figures, and the remedy if there is one. Those
    /// of the other findings start with `Also` and the name of the kind.
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

    /// The findings with the sentence of each, without `Also` and the kind: the most important one, then
    /// the others. A finding without a sentence is left out.
    pub fn findings(&self) -> Vec<(Kind, &str)> {
        let (mut kind, mut text) = (self.kind, self.because.as_str());
        let mut findings = Vec::new();
        for also in &self.also {
            // A text of an earlier version may not contain all of them.
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

    /// Whether `figure` must not be trusted.
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
        let because = "drifts. Also noisy: stolen; use another hour. Also co-bound: both busy";
        let verdict = Verdict { also, ..Verdict::new(Kind::Unstable, because) };
        let each = [
            (Kind::Unstable, "drifts"),
            (Kind::Noisy, "stolen; use another hour"),
            (Kind::CoBound, "both busy"),
        ];
        assert_eq!(verdict.findings(), each);
        let alone = Verdict::new(Kind::Failed, "died. Also noisy: it said");
        assert_eq!(alone.findings(), [(Kind::Failed, "died. Also noisy: it said")]);
    }
}
