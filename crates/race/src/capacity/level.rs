//! One level: the load that it stands for, and whether the server holds it. The judgement is pure.

use super::{
    CapacityError, Question,
    place::{Came, Ready},
    search::Shown,
};
use crate::judge::{BUSY, HELD};
use regatta_load::{Error, Plan, Progress, Tally, Until, WarmUp};
use regatta_record::{CapacityLoad, CapacityPhase, CapacityStep, Latency, Limit};
use std::{num::NonZeroU32, time::Duration};

/// How much longer a window may become so that enough replies lie beyond the percentile.
const MOST_WINDOWS: f64 = 10.0;
/// The warm-up over the limit.
const WARM_UP_OVER_LIMIT: f64 = 1.25;
/// How long no further connection may come open.
const PATIENCE: Duration = Duration::from_secs(5);
/// Descriptors of a server that are no connections, at most.
const OTHER_FILES: u64 = 64;

/// A step with what it means to the search.
pub(super) struct Judged {
    pub shown: Shown,
    pub step: CapacityStep,
}

/// Tries a level. `None` if it was interrupted. `passed`: whether any level has passed before.
pub(super) fn measure(
    question: &Question,
    ready: &Ready<'_>,
    level: u32,
    seed: u64,
    passed: bool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Option<Judged>, CapacityError> {
    let mut window = question.window;
    let mut prolonged = false;
    loop {
        let plan = plan(question, ready, level, window, seed);
        let Some(came) = ready.load(plan, progress)? else { return Ok(None) };
        if let Ok(tally) = &came.loaded
            && !prolonged
            && let Some(factor) = more_time(tally, question.limit)
        {
            window = window.mul_f64(factor);
            prolonged = true;
            continue;
        }
        let judgement = match &came.loaded {
            Ok(tally) => judge(question, level, tally, &came),
            Err(error) if question.by_clients() => match not_opened(error, came.descriptors) {
                Some((_, Shown::Failed)) | None if !passed && opened_none(error) => {
                    return Err(came.loaded.unwrap_err().into());
                }
                Some((because, shown)) => {
                    let because = came.died.clone().unwrap_or(because);
                    (shown, Some(because))
                }
                None => return Err(came.loaded.unwrap_err().into()),
            },
            Err(_) => return Err(came.loaded.unwrap_err().into()),
        };
        return Ok(Some(record(question, level, &came, judgement)));
    }
}

fn plan(question: &Question, ready: &Ready<'_>, level: u32, window: Duration, seed: u64) -> Plan {
    let limit = Duration::from_nanos(question.limit.ns);
    let (connections, pipeline, rate, in_flight) = match question.load {
        CapacityLoad::Clients { pipeline, in_flight } => (level, pipeline, None, in_flight),
        CapacityLoad::Rate { connections, pipeline, .. } => {
            (connections, pipeline, NonZeroU32::new(level), None)
        }
    };
    Plan {
        target: ([127, 0, 0, 1], 0).into(),
        workload: ready.workload(),
        connections: connections as usize,
        idle: 0,
        pipeline: pipeline as usize,
        rate,
        in_flight: in_flight.map(|most| most as usize),
        arrivals: question.arrivals(),
        threads: question.threads,
        cpus: question.cpus.clone(),
        timeout: question.timeout,
        patience: PATIENCE,
        warm_up: WarmUp::Fixed(question.warm_up.max(limit.mul_f64(WARM_UP_OVER_LIMIT))),
        until: Until::Elapsed(window),
        churn: false,
        seed,
    }
}

/// By what factor the window must grow so that the percentile has its replies beyond it; `None` if
/// it has, or if something else decides.
fn more_time(tally: &Tally, limit: Limit) -> Option<f64> {
    let replies = tally.histogram.len() as f64;
    // A little more than just enough, since replies do not come evenly.
    let needed = 1.2 * Latency::SAMPLES_BEYOND as f64 / (1.0 - limit.quantile);
    let decided = tally.errors.total() > 0 || tally.server_died || tally.first_wrong.is_some();
    let enough = percentile(tally, limit).is_some();
    (!enough && !decided).then(|| (needed / replies.max(1.0)).clamp(1.0, MOST_WINDOWS))
}

fn percentile(tally: &Tally, limit: Limit) -> Option<u64> {
    let replies = tally.histogram.len();
    let beyond = replies - (replies as f64 * limit.quantile).ceil() as u64;
    (beyond >= Latency::SAMPLES_BEYOND).then(|| tally.histogram.value_at_quantile(limit.quantile))
}

/// What a level showed, and why where it did not pass.
type Judgement = (Shown, Option<String>);

fn judge(question: &Question, level: u32, tally: &Tally, came: &Came) -> Judgement {
    let failed = |because: String| (Shown::Failed, Some(because));
    if let Some(wrong) = &tally.first_wrong {
        let (expected, received) = (&wrong.expected, &wrong.received);
        return failed(format!("a reply was wrong: expected {expected}, received {received}"));
    }
    if let Some(died) = &came.died {
        return failed(died.clone());
    }
    if tally.server_died {
        return failed("the server took no connection and answered nothing any more".into());
    }
    let Some(because) = short_of(question, level, tally) else { return (Shown::Passed, None) };
    match load_was_the_limit(question, tally, came) {
        Some(limit) => (Shown::Unclear, Some(format!("{limit} ({because})"))),
        None if percentile(tally, question.limit).is_none() && tally.errors.total() == 0 => {
            (Shown::Unclear, Some(because))
        }
        None => failed(because),
    }
}

/// What is missing to a pass.
fn short_of(question: &Question, level: u32, tally: &Tally) -> Option<String> {
    let Limit { ns, .. } = question.limit;
    let name = question.limit.percentile();
    if tally.errors.total() > 0 {
        let kinds = tally.errors.by_kind();
        let there = kinds.iter().filter(|(_, count)| *count > 0);
        let there: Vec<String> =
            there.map(|(kind, count)| format!("{} {count}", kind.replace('_', " "))).collect();
        return Some(format!("errors: {}", there.join(", ")));
    }
    let rate = rate(tally);
    if !question.by_clients() && rate < HELD * f64::from(level) {
        return Some(format!("{rate:.0}/s were answered"));
    }
    match percentile(tally, question.limit) {
        None => Some(format!(
            "{} replies are too few for {name}; give a longer --window",
            tally.histogram.len()
        )),
        Some(seen) if seen > ns => Some(format!("{name} is above the limit")),
        Some(_) => None,
    }
}

fn rate(tally: &Tally) -> f64 {
    tally.requests as f64 * 1e9 / tally.window_ns.max(1) as f64
}

/// Why a level that did not pass says nothing of the server, if so.
fn load_was_the_limit(question: &Question, tally: &Tally, came: &Came) -> Option<String> {
    let load = load_busy(question, tally);
    if load < BUSY {
        return None;
    }
    match server_busy(tally, came) {
        None => Some(format!(
            "the load was busy {load:.2} and the server was not observed: give more --threads, or \
             --pid to see who was the limit"
        )),
        Some(server) if server < BUSY => Some(format!(
            "the load was the limit, busy {load:.2}, the server {server:.2}: give more --threads"
        )),
        Some(_) => None,
    }
}

/// Fraction of the load threads' time in the window that they used.
fn load_busy(question: &Question, tally: &Tally) -> f64 {
    tally.load_cpu_ns as f64 / (tally.window_ns.max(1) as f64 * question.threads.max(1) as f64)
}

fn server_busy(tally: &Tally, came: &Came) -> Option<f64> {
    let (spent, cpus) = came.spent.as_ref()?;
    Some(spent.cpu_ns as f64 / (tally.window_ns.max(1) as f64 * f64::from(*cpus)))
}

fn opened_none(error: &Error) -> bool {
    matches!(error, Error::NotOpened { opened: 0, .. })
}

/// What it means that not all connections could be opened; `None` for any other error.
fn not_opened(error: &Error, descriptors: Option<u64>) -> Option<(String, Shown)> {
    let up_to = |possible: usize| Shown::Impossible { possible: possible as u32 };
    match error {
        Error::Descriptors { possible, .. } => {
            Some(("the load's descriptor limit".into(), up_to(*possible)))
        }
        Error::NotOpened { opened, last, .. } => {
            let no_ports = std::io::Error::from(rustix::io::Errno::ADDRNOTAVAIL).to_string();
            let exhausted = descriptors.is_some_and(|limit| *opened as u64 + OTHER_FILES >= limit);
            Some(match () {
                () if *last == no_ports => ("the load's source ports".into(), up_to(*opened)),
                () if exhausted => ("the server's descriptor limit".into(), up_to(*opened)),
                () => (format!("only {opened} connections came open: {last}"), Shown::Failed),
            })
        }
        Error::Plan(_) | Error::Machine { .. } => None,
    }
}

fn record(question: &Question, level: u32, came: &Came, (shown, because): Judgement) -> Judged {
    let tally = came.loaded.as_ref().ok();
    let step = CapacityStep {
        level,
        phase: CapacityPhase::StepUp,
        percentile_ns: tally.and_then(|tally| percentile(tally, question.limit)),
        reply_rate_per_s: tally.map_or(0.0, rate),
        window_s: tally.map_or(0.0, |tally| tally.window_ns as f64 / 1e9),
        load_busy: tally.map_or(0.0, |tally| load_busy(question, tally)),
        server_busy: tally.and_then(|tally| server_busy(tally, came)),
        memory_bytes: came.memory_bytes,
        passed: match shown {
            Shown::Passed => Some(true),
            Shown::Failed => Some(false),
            Shown::Unclear | Shown::Impossible { .. } => None,
        },
        because,
    };
    Judged { shown, step }
}
