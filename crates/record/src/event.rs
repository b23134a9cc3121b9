//! What happens during a race or a search for a capacity: a stream of events. The terminal is drawn
//! from it; a result directory keeps that of a race in `events.jsonl`, one line per event.
//!
//! A race is one of these sequences; parts in brackets may be absent, `…` may repeat:
//!
//! ```text
//! race-started [pilot-started round… rates-settled] [warm-ups] pass… judged (finished | interrupted | stopped)
//! race-resumed [warm-ups] pass… judged (finished | interrupted | stopped)  after an earlier sequence
//! warm-ups: warm-ups-started (round [round] [warm-up-seen])…
//! pass:  pass-started round… [pass-judged]
//! round: round-started phase-started… load-sampled… round-ended
//! ```
//!
//! and a capacity is `capacity-started (level-started phase-started… load-sampled… level-ended)…
//! capacity-found`. A process that is killed leaves its sequence without an end.

use crate::{
    Asked, Capacity, CapacityLoad, CapacityPhase, CapacityStep, Estimate, FORMAT, Kind, Limit,
    LoadShape, Outcome, Relation, Settling, Summary,
};
use serde::{Deserialize, Serialize};

/// A line of `events.jsonl`: what happened, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Nanoseconds since the race (or the search) started. Never falls within a stream. After a
    /// resume it includes the time during which the race did not run.
    pub ns: u64,
    /// What happened.
    #[serde(flatten)]
    pub happened: Happened,
}

impl Event {
    /// An event of this format version.
    pub fn new(ns: u64, happened: Happened) -> Event {
        Event { format: FORMAT, ns, happened }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Happened {
    /// A race starts. Rates that a pilot pass has to find out are not in its loads yet.
    RaceStarted(Box<RaceHeader>),
    /// A race goes on in its result directory.
    RaceResumed(Box<RaceHeader>),
    /// Short rounds follow that find out the rates of the race. Their [`RoundStart::pass`] is
    /// `None`, and they are not stored.
    PilotStarted {
        /// How many.
        rounds: u32,
    },
    /// The pilot pass is over. This replaces [`RaceHeader::asked`].
    RatesSettled {
        /// What is asked, all rates being numbers.
        asked: Box<Asked>,
    },
    /// Contenders are observed next, each under each load, until their costs are steady. Their
    /// [`RoundStart::pass`] is `None`.
    WarmUpsStarted {
        /// How many starts that takes, if none has to be seen twice.
        starts: u32,
        /// How long each is observed at most, in seconds.
        longest_s: f64,
    },
    /// A contender was observed. Stored in `settling.jsonl`.
    WarmUpSeen {
        /// Name of the contender.
        contender: String,
        /// The load.
        load: LoadShape,
        /// What was seen; `None` where its CPU could not be read.
        settling: Option<Settling>,
    },
    /// A pass over the loads starts.
    PassStarted(PassStart),
    /// A contender is started under a load.
    RoundStarted(RoundStart),
    /// A round, or a level of a capacity, is in another phase.
    PhaseStarted {
        /// The phase.
        phase: Phase,
    },
    /// How the load goes, a few times a second from its first connection until the measured window
    /// opens. Inside the window nothing is emitted: it would be measured.
    LoadSampled(LoadSample),
    /// A round is over. In a pass it is stored in `rounds.jsonl`.
    RoundEnded(Box<RoundEnd>),
    /// A pass is over and all rounds so far were judged.
    PassJudged {
        /// The pass, from 0.
        pass: u32,
        /// The cells whose judgement is not what the last event of this kind said.
        changed: Vec<JudgedCell>,
    },
    /// All rounds are judged, as printed and saved.
    Judged(Box<Judged>),
    /// Every round that was asked for is done.
    RaceFinished,
    /// Ctrl-C.
    RaceInterrupted {
        /// Rounds that are stored; `None` if there is no result directory yet.
        stored: Option<u32>,
    },
    /// The machine or the disk does not let the race go on.
    RaceStopped {
        /// One sentence.
        because: String,
        /// Rounds that are stored.
        stored: u32,
    },
    /// A search for a capacity starts.
    CapacityStarted(CapacityHeader),
    /// A level is tried.
    LevelStarted {
        /// Levels that were tried before.
        done: u32,
        /// Clients, or requests per second.
        level: u32,
        /// Why it is tried.
        phase: CapacityPhase,
    },
    /// A level was tried and judged.
    LevelEnded(CapacityStep),
    /// The search is over; also after Ctrl-C, with what was found until then.
    CapacityFound {
        /// What was found.
        found: Box<Capacity>,
        /// What of it went to stdout.
        stdout: Form,
    },
    /// Something that was asked for failed, and nothing else says so.
    Failed {
        /// One sentence.
        because: String,
    },
}

/// What a race is about. With it a reader knows the machine, the contenders, the loads and the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaceHeader {
    /// The result directory as it was named.
    pub dir: String,
    /// Milliseconds since the Unix epoch when this happened.
    pub unix_ms: u64,
    /// What is asked, and of which machine.
    pub asked: Asked,
    /// Rounds that were stored before.
    pub stored: u32,
    /// The stream begins here although the race did not: an earlier regatta, which stored no events,
    /// started it.
    pub events_missing: bool,
    /// What is special about this machine under these loads, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A pass over the loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassStart {
    /// The pass, from 0.
    pub pass: u32,
    /// The loads that are due in it.
    pub loads: Vec<LoadShape>,
    /// How many passes the race takes; with a precision asked for, a forecast.
    pub passes: u32,
    /// Half-width of the widest interval so far, as a fraction, where a precision is asked for.
    pub widest: Option<f64>,
}

/// A start of one contender under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundStart {
    /// The pass, from 0; `None`: it is none of a pass, but of the pilot pass or to observe a warm-up.
    pub pass: Option<u32>,
    /// It is to observe how the contender warms up, for so many seconds at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observes_s: Option<f64>,
    /// Rounds before this one.
    pub done: u32,
    /// Rounds in all; with a precision asked for, a forecast.
    pub all: u32,
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// What its measured window is.
    pub window: Window,
}

/// How long a measured window lasts.
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
        /// How many.
        n: u64,
    },
}

/// What a round is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The contender is started, and becomes ready.
    Starting,
    /// The load opens its connections.
    Connecting,
    /// Load that is not measured yet.
    WarmUp,
    /// Load that is measured. Emitted after the window, with the time at which it opened.
    Window,
    /// The window is over: pending replies are awaited, the contender ends.
    Stopping,
}

/// How a load goes before its window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSample {
    /// Connections that are open.
    pub open: u64,
    /// Right replies so far.
    pub replies: u64,
    /// Errors of all kinds so far.
    pub errors: u64,
    /// Right replies per second since the last event of this kind in this round; `None`: the first.
    pub rate_per_s: Option<f64>,
}

/// How a round ended. The record, with its histogram, is in `rounds.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundEnd {
    /// The pass, from 0; `None`: the pilot pass.
    pub pass: Option<u32>,
    /// Name of the contender.
    pub contender: String,
    /// The load.
    pub load: LoadShape,
    /// The line of `rounds.jsonl` that is its record, from 1; `None`: not stored.
    pub line: Option<u32>,
    /// How it went.
    pub outcome: Outcome,
    /// Right replies inside the window.
    pub requests: u64,
    /// Length of the window in nanoseconds.
    pub window_ns: u64,
    /// CPU of the contender inside the window in nanoseconds, where it could be observed.
    pub server_cpu_ns: Option<u64>,
}

/// The judgement on a cell while the race goes on.
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
    /// What its cost is, compared with the baseline's.
    pub relation: Option<Relation>,
    /// Server CPU per request, or per [`Asked::cost_per`], nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Cost over the baseline's cost of the same rounds.
    pub ratio_to_baseline: Option<Estimate>,
    /// Requests per second.
    pub rate_per_s: Option<Estimate>,
}

/// A judged race, and what was done with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The judgement.
    pub summary: Summary,
    /// What of it went to stdout.
    pub stdout: Form,
    /// Whether `summary.json` and `report.html` could be written.
    pub saved: bool,
}

/// The form of a result that goes to stdout.
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

/// What a search for a capacity is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityHeader {
    /// Milliseconds since the Unix epoch when this happened.
    pub unix_ms: u64,
    /// The server: its URL, or the contender's name.
    pub server: String,
    /// Name of the workload.
    pub workload: String,
    /// How the server is loaded.
    pub load: CapacityLoad,
    /// What latency is permitted.
    pub limit: Limit,
    /// The highest level to be tried.
    pub max: u32,
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
    fn an_event_is_one_flat_object_that_says_what_and_when() {
        assert_eq!(
            json(Happened::PhaseStarted { phase: Phase::WarmUp }),
            r#"{"format":1,"ns":1500,"event":"phase-started","phase":"warm-up"}"#
        );
        assert_eq!(
            json(Happened::RaceFinished),
            r#"{"format":1,"ns":1500,"event":"race-finished"}"#
        );
        let progress =
            LoadSample { open: 64, replies: u64::MAX, errors: 0, rate_per_s: Some(1.0 / 3.0) };
        assert_eq!(
            json(Happened::LoadSampled(progress)),
            r#"{"format":1,"ns":1500,"event":"load-sampled","open":64,"replies":18446744073709551615,"errors":0,"rate_per_s":0.3333333333333333}"#
        );
    }

    #[test]
    fn figures_survive_to_the_last_bit() {
        // Without serde_json's `float_roundtrip` this is read as …938e-163.
        let widest = Some(4.076_589_335_154_937_4e-163);
        let pass = PassStart { pass: 3, loads: vec![LoadShape::closed(64, 1)], passes: 9, widest };
        json(Happened::PassStarted(pass));
        for bits in (0..10_000_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
            let rate = f64::from_bits(bits);
            if rate.is_finite() {
                let progress =
                    LoadSample { open: 0, replies: 0, errors: 0, rate_per_s: Some(rate) };
                json(Happened::LoadSampled(progress));
            }
        }
    }

    #[test]
    fn a_round_names_its_outcome_and_its_record() {
        let end = RoundEnd {
            pass: Some(0),
            contender: "mine".into(),
            load: LoadShape::closed(8, 1),
            line: Some(2),
            outcome: Outcome::Failed { because: "mine exited".into() },
            requests: 10,
            window_ns: 5,
            server_cpu_ns: None,
        };
        let text = json(Happened::RoundEnded(Box::new(end)));
        assert!(text.contains(r#""line":2,"outcome":{"kind":"failed","because":"mine exited"}"#));
    }
}
