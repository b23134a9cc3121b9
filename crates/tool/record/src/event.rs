//! A race or a capacity search as a stream of events. The terminal output is drawn from it; a
//! result directory keeps the events of a race in `events.jsonl`, one line per event.
//!
//! A race has one of these sequences; parts in brackets may be absent, `…` may repeat:
//!
//! ```text
//! race-started [pilot-started round… rates-settled] [warm-ups] [pass…] judged [failed…] end
//! race-resumed [warm-ups] [pass…] judged [failed…] end      after an earlier sequence
//! warm-ups: warm-ups-started (round [round] [warm-up-seen])…
//! pass:  pass-started [round…] [pass-judged]
//! round: round-started [phase-started…] [load-sampled…] [round-ended]
//!        in a duel: (round-started [phase-started…])… ([block-started] [contender-died])… [round-ended…]
//! end:   race-finished | race-interrupted | race-stopped
//! ```
//!
//! An interrupted round has no `round-ended`. A race that is interrupted in its pilot pass ends with
//! `race-interrupted` at once; an error that prevents the judgement ends it with `failed`.
//!
//! A capacity search is `capacity-started [phase-started… load-sampled…] (level-started phase-started…
//! load-sampled… [level-ended])… capacity-found [failed]`, or ends with `failed`. A killed process
//! leaves its sequence without an end.

use crate::{
    Asked, Capacity, CapacityLoad, CapacityPhase, CapacityStep, Estimate, FORMAT, Kind, LoadShape,
    Outcome, Relation, Settling, Summary,
};
use serde::{Deserialize, Serialize};

/// A line of `events.jsonl`: an event and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Nanoseconds since the race (or the search) started. Never decreases within a stream. After a
    /// resume it includes the time during which the race did not run.
    pub ns: u64,
    /// The event.
    #[serde(flatten)]
    pub happened: Happened,
}

impl Event {
    /// An event of this format version.
    pub fn new(ns: u64, happened: Happened) -> Event {
        Event { format: FORMAT, ns, happened }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Happened {
    /// A race starts. Its loads do not contain rates yet that a pilot pass determines.
    RaceStarted(Box<RaceHeader>),
    /// A race is resumed in its result directory.
    RaceResumed(Box<RaceHeader>),
    /// Short rounds follow that determine the rates of the race. Their [`RoundStart::pass`] is
    /// `None`, and they are not stored.
    PilotStarted {
        /// Number of rounds.
        rounds: u32,
    },
    /// The pilot pass is over. This replaces [`RaceHeader::asked`].
    RatesSettled {
        /// The plan, with numbers for all rates.
        asked: Box<Asked>,
    },
    /// Contenders are observed next at each load, until their cost is steady. [`RoundStart::pass`] is
    /// `None` meanwhile.
    WarmUpsStarted {
        /// Number of starts, if none has to be repeated.
        starts: u32,
        /// Maximum length of each observation, in seconds.
        longest_s: f64,
    },
    /// A contender was observed. Stored in `settling.jsonl`.
    WarmUpSeen {
        /// Name of the contender.
        contender: String,
        /// The load.
        load: LoadShape,
        /// The result; `None` if the contender's CPU time could not be read.
        settling: Option<Settling>,
    },
    /// A pass over the loads starts.
    PassStarted(PassStart),
    /// A contender is started at a load.
    RoundStarted(RoundStart),
    /// In a duel: all contenders of a heat are alive, and a block of slices begins.
    BlockStarted {
        /// Number of contenders that take turns.
        contenders: u32,
        /// The block, from 0. The first one is not counted.
        block: u32,
        /// Number of blocks of this life.
        blocks: u32,
        /// The load.
        load: LoadShape,
    },
    /// In a duel: a contender has died in the middle of a life, which continues without it. Its rounds end with the
    /// life.
    ContenderDied {
        /// Name of the contender.
        contender: String,
        /// How its process ended, in a sentence.
        because: String,
    },
    /// A round, or a level of a capacity search, enters another phase.
    PhaseStarted {
        /// The phase.
        phase: Phase,
    },
    /// The progress of the load, a few times a second from its first connection until the measured
    /// window opens. No event is emitted inside the window, because that would affect the
    /// measurement.
    LoadSampled {
        /// Connections that are open.
        open: u64,
    },
    /// A round is over. In a pass it is stored in `rounds.jsonl`.
    RoundEnded(Box<RoundEnd>),
    /// A pass is over, and all rounds so far were judged.
    PassJudged {
        /// The pass, from 0.
        pass: u32,
        /// The cells whose judgement changed since the last event of this kind; all cells after the
        /// first pass of a start or a resume.
        changed: Vec<JudgedCell>,
    },
    /// All rounds are judged, as printed and saved.
    Judged(Box<Judged>),
    /// All requested rounds are done.
    RaceFinished,
    /// The race was interrupted by Ctrl-C.
    RaceInterrupted {
        /// Number of stored rounds; `None` if there is no result directory yet.
        stored: Option<u32>,
    },
    /// A problem of the machine or the disk stops the race.
    RaceStopped {
        /// One sentence.
        because: String,
        /// Number of stored rounds.
        stored: u32,
    },
    /// A search for a capacity starts.
    CapacityStarted {
        /// How the server is loaded.
        load: CapacityLoad,
    },
    /// A level is tried.
    LevelStarted {
        /// Number of levels tried before.
        done: u32,
        /// Clients, or requests per second.
        level: u32,
        /// Why the level is tried.
        phase: CapacityPhase,
    },
    /// A level was tried and judged.
    LevelEnded(CapacityStep),
    /// The search is over. After Ctrl-C, the result so far.
    CapacityFound {
        /// The result.
        found: Box<Capacity>,
        /// The form of the result printed to stdout.
        stdout: Form,
    },
    /// A requested operation failed, and no other event reports it.
    Failed {
        /// One sentence.
        because: String,
    },
}

/// The header of a race: the machine, the contenders, the loads and the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaceHeader {
    /// The result directory, as named by the user.
    pub dir: String,
    /// Milliseconds since the Unix epoch when this happened.
    pub unix_ms: u64,
    /// The plan, and the machine.
    pub asked: Asked,
    /// The stream starts here although the race did not: an earlier regatta, which stored no
    /// events, started the race.
    pub events_missing: bool,
    /// Properties of this machine that affect these loads, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A pass over the loads that are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassStart {
    /// Number of passes of the race; with a requested precision, a forecast.
    pub passes: u32,
    /// Half-width of the widest interval of these loads so far, as a fraction. `None` without a
    /// requested precision, and before its first check.
    pub widest: Option<f64>,
}

/// The start of one contender at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundStart {
    /// The pass, from 0; `None`: a round of the pilot pass, or the observation of a warm-up.
    pub pass: Option<u32>,
    /// For the observation of a warm-up: its maximum length in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observes_s: Option<f64>,
    /// Number of rounds before this one.
    pub done: u32,
    /// Total number of rounds; with a requested precision, a forecast.
    pub all: u32,
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// Length of the measured window.
    pub window: Window,
    /// The start after this one, if it is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStart>,
}

/// A start that follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextStart {
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
}

/// Length of a measured window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "until")]
pub enum Window {
    /// A time.
    Time {
        /// Seconds.
        s: f64,
    },
    /// A number of requests.
    Requests {
        /// Number of requests.
        n: u64,
    },
}

/// The phase of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The contender is started and becomes ready.
    Starting,
    /// The load opens its connections.
    Connecting,
    /// The load runs, not measured yet.
    WarmUp,
    /// The load runs and is measured. Emitted after the window, with the time at which it opened.
    Window,
    /// The window is over: pending replies are awaited, the contender exits.
    Stopping,
}

/// The end of a round. The record of a stored round, with its histogram, is in `rounds.jsonl`, in the same order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundEnd {
    /// The pass, from 0; `None`: a round of the pilot pass, or the observation of a warm-up. An
    /// observation that shows a fault is the round of pass 0.
    pub pass: Option<u32>,
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// The outcome.
    pub outcome: Outcome,
    /// Correct replies inside the window.
    pub requests: u64,
    /// Length of the window in nanoseconds.
    pub window_ns: u64,
    /// CPU time of the contender inside the window in nanoseconds, if observed.
    pub server_cpu_ns: Option<u64>,
}

/// The judgement on a cell during the race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedCell {
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// Rounds that entered the figures.
    pub rounds: u32,
    /// The verdict.
    pub verdict: Kind,
    /// The relation of its cost to the baseline's.
    pub relation: Option<Relation>,
    /// Server CPU per request, or per [`Asked::cost_per`], nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Cost over the baseline's cost of the same rounds.
    pub ratio_to_baseline: Option<Estimate>,
    /// Requests per second.
    pub rate_per_s: Option<Estimate>,
}

/// A judged race, and where the result was printed and saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The judgement.
    pub summary: Summary,
    /// The form of the result printed to stdout.
    pub stdout: Form,
    /// Whether `summary.json` and `report.html` were written.
    pub saved: bool,
}

/// The form of a result on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Tables and sentences for a terminal.
    Text,
    /// JSON (`--json -`).
    Json,
    /// Markdown (`--md -`).
    Markdown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(happened: Happened) -> String {
        let event = Event::new(1_500, happened);
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        text
    }

    #[test]
    fn an_event_is_one_flat_object_with_its_time() {
        assert_eq!(
            json(Happened::PhaseStarted { phase: Phase::WarmUp }),
            r#"{"format":2,"ns":1500,"event":"phase-started","phase":"warm-up"}"#
        );
        assert_eq!(
            json(Happened::RaceFinished),
            r#"{"format":2,"ns":1500,"event":"race-finished"}"#
        );
        assert_eq!(
            json(Happened::LoadSampled { open: u64::MAX }),
            r#"{"format":2,"ns":1500,"event":"load-sampled","open":18446744073709551615}"#
        );
        let pass = PassStart { passes: 9, widest: Some(1.0 / 3.0) };
        assert_eq!(
            json(Happened::PassStarted(pass)),
            r#"{"format":2,"ns":1500,"event":"pass-started","passes":9,"widest":0.3333333333333333}"#
        );
    }

    #[test]
    fn figures_survive_to_the_last_bit() {
        // Without serde_json's `float_roundtrip` this is read as …938e-163.
        let known = 4.076_589_335_154_937_4e-163;
        let all = (0..10_000_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for widest in all.map(f64::from_bits).chain([known]).filter(|widest| widest.is_finite()) {
            json(Happened::PassStarted(PassStart { passes: 9, widest: Some(widest) }));
        }
    }

    #[test]
    fn a_round_end_names_its_outcome() {
        let end = RoundEnd {
            pass: Some(0),
            contender: "mine".into(),
            load: LoadShape::closed(8, 1),
            outcome: Outcome::Failed { because: "mine exited".into() },
            requests: 10,
            window_ns: 5,
            server_cpu_ns: None,
        };
        let text = json(Happened::RoundEnded(Box::new(end)));
        assert!(text.contains(r#""outcome":{"kind":"failed","because":"mine exited"}"#));
    }
}
