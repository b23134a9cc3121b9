//! The verdict on a cell: the kind of measurement, the figures that it voids, and its findings as data.

use crate::judged::cause::Cause;
use serde::{
    Deserialize, Serialize,
    de::{IntoDeserializer, value, value::StrDeserializer},
};
use std::fmt;

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
    /// The network between them was full, and neither server nor load was busy.
    NetworkBound,
    /// The requested rate was held.
    AtAskedRate,
    /// Server and load had to share CPUs: only the cost is meaningful.
    CostOnly,
    /// The requested rate was not held: requests got no reply, or the server fell behind.
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
    /// The contender closed connections of members of a hub, and these were owed nothing until they had joined again.
    MembersAway,
    /// Fewer or more requests were in flight, on average, than the load asks for.
    InFlight,
}

impl Kind {
    /// The name in tables and JSON, e.g. `server-bound`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ServerBound => "server-bound",
            Kind::CoBound => "co-bound",
            Kind::Idle => "idle",
            Kind::GeneratorBound => "generator-bound",
            Kind::NetworkBound => "network-bound",
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
            Kind::MembersAway => "members-away",
            Kind::InFlight => "in-flight",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Kind> {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Kind::deserialize(name).ok()
    }

    /// Whether the figures of its reason are amounts. Otherwise they are data that was sent, received or declared.
    pub fn has_amounts(self) -> bool {
        use Kind::*;
        matches!(self, Noisy | Unstable | GeneratorBound | NetworkBound | CoBound | Idle | InFlight)
    }

    /// The figures that this kind always voids.
    pub fn voids(self) -> &'static [Figure] {
        use Figure::*;
        match self {
            Kind::ServerBound
            | Kind::CoBound
            | Kind::Idle
            | Kind::AtAskedRate
            | Kind::Overloaded => &[],
            Kind::GeneratorBound | Kind::NetworkBound | Kind::CostOnly | Kind::MembersAway => {
                &[Rate, Latency]
            }
            Kind::Noisy | Kind::InFlight => &[Latency],
            Kind::Unstable => &[Cost, Latency],
            Kind::CannotHold | Kind::Disqualified | Kind::Failed | Kind::Skipped => {
                &[Cost, Rate, Latency, Memory]
            }
            Kind::ServerNotObserved => &[Cost],
            Kind::OtherCpus => &[Cost, Rate, Latency],
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

/// A finding on one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredFinding", into = "StoredFinding")]
pub struct CellFinding {
    /// The kind of measurement that it shows.
    pub kind: Kind,
    /// The agent that shows it, if the load came from agents and it is about one of them.
    pub agent: Option<String>,
    /// The stage of the load that shows it, from 1, if it has stages.
    pub stage: Option<u32>,
    /// The starts that show it, if it is about single starts.
    pub starts: Option<SomeStarts>,
    /// Why, with the figures.
    pub cause: Cause,
    /// What may help.
    pub remedy: Option<String>,
}

/// A finding in files. Those of earlier versions have only the text of their cause.
#[derive(Serialize, Deserialize)]
struct StoredFinding {
    /// The kind of measurement that it shows.
    kind: Kind,
    /// The agent that shows it, if the load came from agents and it is about one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The stage of the load that shows it, from 1, if it has stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<u32>,
    /// The starts that show it, if it is about single starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starts: Option<SomeStarts>,
    /// The cause as a sentence.
    because: String,
    /// What may help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The name of the cause, with its figures beside it. Absent: it is a message, and the sentence is all.
    #[serde(flatten)]
    cause: Option<Cause>,
}

impl From<CellFinding> for StoredFinding {
    fn from(finding: CellFinding) -> StoredFinding {
        let CellFinding { kind, agent, stage, starts, cause, remedy } = finding;
        let because = cause.to_string();
        let cause = Some(cause).filter(|cause| !matches!(cause, Cause::Message { .. }));
        StoredFinding { kind, agent, stage, starts, because, remedy, cause }
    }
}

impl From<StoredFinding> for CellFinding {
    fn from(stored: StoredFinding) -> CellFinding {
        let StoredFinding { kind, agent, stage, starts, because, remedy, cause } = stored;
        let cause = cause.unwrap_or(Cause::Message { text: because });
        CellFinding { kind, agent, stage, starts, cause, remedy }
    }
}

impl fmt::Display for CellFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(agent) = &self.agent {
            write!(f, "agent {agent}: ")?;
        }
        if let Some(stage) = self.stage {
            write!(f, "stage {stage}: ")?;
        }
        if let Some(starts) = self.starts {
            write!(f, "{starts}")?;
        }
        write!(f, "{}", self.cause)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

/// Some of the starts of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SomeStarts {
    /// Their number.
    pub seen: u32,
    /// Number of all starts.
    pub of: u32,
    /// The first of them, from 1, if it is the one that the cause is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
}

impl fmt::Display for SomeStarts {
    /// Writes e.g. `in 1 of 7 starts, first in start 2: `, or `in its only start: `; nothing if there was one
    /// start and none is named.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SomeStarts { seen, of, first } = self;
        match first {
            Some(_) if *of == 1 => f.write_str("in its only start: "),
            Some(first) => write!(f, "in {seen} of {of} starts, first in start {first}: "),
            None if *of == 1 => Ok(()),
            None => write!(f, "in {seen} of {of} starts "),
        }
    }
}

/// The judgement on one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredVerdict", into = "StoredVerdict")]
pub struct Verdict {
    /// What was found, at least one finding. The first is the most important one.
    pub findings: Vec<CellFinding>,
    /// Figures that must not be trusted.
    pub void: Vec<Figure>,
}

/// A verdict in files. Those of earlier versions have no findings.
#[derive(Serialize, Deserialize)]
struct StoredVerdict {
    /// The kind of measurement: that of the first finding.
    kind: Kind,
    /// The kinds of the other findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<Kind>,
    /// Figures that must not be trusted.
    void: Vec<Figure>,
    /// The findings as one text, a sentence for each. Those of the others start with `Also` and the name of
    /// the kind.
    because: String,
    /// What was found, the most important finding first.
    #[serde(default)]
    findings: Vec<CellFinding>,
}

impl From<Verdict> for StoredVerdict {
    fn from(verdict: Verdict) -> StoredVerdict {
        let also = verdict.also().map(|finding| finding.kind).collect();
        let (kind, because) = (verdict.kind(), verdict.because());
        StoredVerdict { kind, also, void: verdict.void, because, findings: verdict.findings }
    }
}

impl From<StoredVerdict> for Verdict {
    fn from(stored: StoredVerdict) -> Verdict {
        let StoredVerdict { kind, also, void, because, mut findings } = stored;
        if findings.is_empty() {
            findings.push(CellFinding::new(kind, because));
            findings.extend(also.into_iter().map(|kind| CellFinding::new(kind, "")));
        }
        Verdict { findings, void }
    }
}

impl CellFinding {
    /// A finding of `kind`.
    pub fn new(kind: Kind, cause: impl Into<Cause>) -> CellFinding {
        CellFinding {
            kind,
            agent: None,
            stage: None,
            starts: None,
            cause: cause.into(),
            remedy: None,
        }
    }

    /// Whether it has no text of its own, because the first one of an earlier version has that of all.
    pub fn is_silent(&self) -> bool {
        matches!(&self.cause, Cause::Message { text } if text.is_empty())
    }
}

impl Verdict {
    /// A verdict of `kind` with the figures that this kind always voids.
    pub fn new(kind: Kind, cause: impl Into<Cause>) -> Verdict {
        Verdict { findings: vec![CellFinding::new(kind, cause)], void: kind.voids().to_vec() }
    }

    /// Adds what may help against the most important finding.
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Verdict {
        self.first_mut().remedy = Some(remedy.into());
        self
    }

    /// The kind of measurement: that of the most important finding.
    pub fn kind(&self) -> Kind {
        self.first().kind
    }

    /// The most important finding.
    pub fn first(&self) -> &CellFinding {
        &self.findings[0]
    }

    /// The most important finding.
    pub fn first_mut(&mut self) -> &mut CellFinding {
        &mut self.findings[0]
    }

    /// The other findings.
    pub fn also(&self) -> impl Iterator<Item = &CellFinding> {
        self.findings.iter().skip(1)
    }

    /// One sentence for each finding; those of the others start with `Also` and the name of the kind.
    pub fn because(&self) -> String {
        let mut text = self.first().to_string();
        for finding in self.also().filter(|finding| !finding.is_silent()) {
            text += &format!(". Also {}: {finding}", finding.kind.name());
        }
        text
    }

    /// Whether `kind` is among the findings.
    pub fn is(&self, kind: Kind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
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
    fn findings_are_stored_with_kind_and_text_beside_them() {
        let mut verdict = Verdict::new(Kind::Noisy, Cause::Stolen { steal: 0.03 });
        verdict = verdict.with_remedy("use another hour");
        verdict.first_mut().starts = Some(SomeStarts { seen: 2, of: 7, first: Some(3) });
        verdict.findings.push(CellFinding::new(Kind::CoBound, "both busy"));
        let text = "in 2 of 7 starts, first in start 3: the hypervisor gave 3.0% of the CPUs' time to \
                    others; use another hour. Also co-bound: both busy";
        assert_eq!(verdict.because(), text);
        let json = serde_json::to_value(&verdict).unwrap();
        assert_eq!((&json["kind"], &json["also"][0]), (&"noisy".into(), &"co-bound".into()));
        assert_eq!((&json["because"], &json["void"][0]), (&text.into(), &"latency".into()));
        assert_eq!(json["findings"][0]["cause"], "stolen");
        assert_eq!(json["findings"][0]["steal"], 0.03);
        assert_eq!(json["findings"][1]["because"], "both busy");
        assert!(json["findings"][1].get("cause").is_none());
        assert_eq!(json["findings"][0]["starts"]["seen"], 2);
        assert_eq!(serde_json::from_value::<Verdict>(json).unwrap(), verdict);
    }

    /// Earlier versions took segments that were sent again for a full network.
    #[test]
    fn a_cause_that_no_longer_exists_keeps_its_text() {
        let side = r#"{"busy":0.5,"cpus":1,"busy_thread":null,"waited":null}"#;
        let stored = format!(
            r#"{{"kind":"network-bound","because":"a","cause":"network","server":{side},"load":{side},
                "network":{{"lost":{{"by":"server","resent":0.01}}}}}}"#
        );
        let finding: CellFinding = serde_json::from_str(&stored).unwrap();
        assert_eq!(finding, CellFinding::new(Kind::NetworkBound, "a"));
    }

    /// Earlier versions had no share of refused requests.
    #[test]
    fn the_fates_of_requests_in_a_file_of_an_earlier_version_are_read() {
        let stored = r#"{"kind":"overloaded","because":"a","cause":"not-held","asked_per_s":10,
            "answered_per_s":7.0,"arrivals":"poisson","lag":null,"unsent":0.3,"late":0.0,
            "timed_out":0.0,"lost":0.0,"wait_p50_ns":null}"#;
        let finding: CellFinding = serde_json::from_str(stored).unwrap();
        let Cause::NotHeld { fates: Some(fates), .. } = finding.cause else { panic!("no fates") };
        assert_eq!((fates.unsent, fates.refused), (0.3, 0.0));
    }

    #[test]
    fn a_verdict_of_an_earlier_version_keeps_its_kinds_and_its_text() {
        let stored =
            r#"{"kind":"unstable","also":["noisy"],"void":["cost"],"because":"a. Also noisy: b"}"#;
        let verdict: Verdict = serde_json::from_str(stored).unwrap();
        assert_eq!(
            (verdict.kind(), verdict.because().as_str()),
            (Kind::Unstable, "a. Also noisy: b")
        );
        assert!(verdict.is(Kind::Noisy) && !verdict.is(Kind::Idle));
        assert!(verdict.voids(Figure::Cost) && !verdict.voids(Figure::Latency));
    }

    #[test]
    fn starts_are_named_where_there_are_several() {
        let text = |seen, of, first| SomeStarts { seen, of, first }.to_string();
        assert_eq!(text(1, 1, None), "");
        assert_eq!(text(1, 2, None), "in 1 of 2 starts ");
        assert_eq!(text(1, 1, Some(3)), "in its only start: ");
        assert_eq!(text(1, 2, Some(2)), "in 1 of 2 starts, first in start 2: ");
    }
}
