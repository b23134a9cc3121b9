//! One level: the load that it stands for, and whether the server holds it. The judgement is pure.

use super::{CapacityError, Question, place::Ready, search::Shown};
use crate::{
    judge::{BUSY, OfServer, of_load},
    usage::Spent,
};
use regatta_load::{Error, OpenTally, Plan, Progress, Tally, Until, WarmUp};
use regatta_record::{
    CapacityLoad, CapacityPhase, CapacityStep, Errors, Figure, Kind, Latency, Limit, Verdict,
};
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
        let Some(came) = ready.load(plan.clone(), progress)? else { return Ok(None) };
        if let Ok(tally) = &came.loaded
            && !prolonged
            && let Some(factor) = more_time(tally, question.limit)
        {
            window = window.mul_f64(factor);
            prolonged = true;
            continue;
        }
        let died = came.died;
        let (seen, judgement) = match came.loaded {
            Ok(tally) => {
                let seen = Seen::of(question.limit, &plan, &tally, came.spent, came.shares, died);
                let judgement = judge(question, &seen);
                (seen, judgement)
            }
            Err(error) => match not_opened(&error, came.descriptors) {
                // That nobody is there, or too few for a rate, is no level of anything.
                Some((_, shown)) if is_hopeless(question, &error, shown, passed) => {
                    return Err(error.into());
                }
                Some((because, shown)) => (Seen::default(), (shown, Some(died.unwrap_or(because)))),
                None => return Err(error.into()),
            },
        };
        return Ok(Some(record(level, &seen, came.memory_bytes, judgement)));
    }
}

fn is_hopeless(question: &Question, error: &Error, shown: Shown, passed: bool) -> bool {
    let opened_none = matches!(error, Error::NotOpened { opened: 0, .. });
    !question.by_clients() || (opened_none && shown == Shown::Failed && !passed)
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
        tls: None,
        workload: ready.workload(),
        host: String::new(),
        path: None,
        connections: connections as usize,
        idle: 0,
        pipeline: pipeline as usize,
        rate,
        in_flight: in_flight.map(|most| most as usize),
        arrivals: question.arrivals(),
        // How busy the load is tells whether it was the limit.
        spin: Duration::ZERO,
        busy_poll: false,
        threads: threads(question, level),
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
    // So many without an answer are all beyond the percentile themselves.
    let decided = tally.errors.total() > 0
        || tally.server_died
        || tally.first_wrong.is_some()
        || unanswered(tally) >= Latency::SAMPLES_BEYOND
        || replies >= needed;
    let enough = percentile(tally, limit).is_some();
    (!enough && !decided).then(|| (needed / replies.max(1.0)).clamp(1.0, MOST_WINDOWS))
}

fn percentile(tally: &Tally, limit: Limit) -> Option<u64> {
    // What was never answered took longer than all that was.
    let unanswered = unanswered(tally);
    let replies = tally.histogram.len();
    let rank = ((replies + unanswered) as f64 * limit.quantile).ceil() as u64;
    let known = rank <= replies && replies + unanswered - rank >= Latency::SAMPLES_BEYOND;
    known.then(|| tally.histogram.value_at_quantile((rank as f64 - 0.5) / replies as f64))
}

/// At a rate: requests that were due and had no answer.
fn unanswered(tally: &Tally) -> u64 {
    tally.open_loop.as_ref().map_or(0, OpenTally::unanswered)
}

/// What was seen of a level.
#[derive(Debug, Default)]
struct Seen {
    percentile_ns: Option<u64>,
    /// Latencies that the percentile is of.
    replies: u64,
    /// At a rate: requests that were due and had no answer.
    unanswered: u64,
    /// Right replies per second.
    rate_per_s: f64,
    window_s: f64,
    errors: Errors,
    /// What the server did that settles it, in a sentence.
    fault: Option<String>,
    /// Fraction of their CPUs' time that both sides used.
    load_busy: f64,
    server_busy: Option<f64>,
    /// At a rate: requests that were due and piled up inside the window, where they surely did.
    piled_up: Option<u64>,
    /// The verdict of `regatta load` on it.
    verdict: Option<Verdict>,
}

impl Seen {
    fn of(
        limit: Limit,
        plan: &Plan,
        tally: &Tally,
        spent: Option<(Spent, u32)>,
        shares: bool,
        died: Option<String>,
    ) -> Seen {
        let window_ns = tally.window_ns.max(1) as f64;
        let wrong = tally.first_wrong.as_ref().map(|wrong| {
            let (expected, received) = (&wrong.expected, &wrong.received);
            format!("a reply was wrong: expected {expected}, received {received}")
        });
        let gone = tally
            .server_died
            .then(|| "the server stopped accepting connections and answering".to_string());
        let threads = plan.threads as f64;
        let observed = spent.as_ref().map(|(spent, cpus)| OfServer { spent, cpus: *cpus, shares });
        Seen {
            piled_up: piled_up(tally),
            verdict: Some(of_load(plan, tally, observed)),
            percentile_ns: percentile(tally, limit),
            replies: tally.histogram.len(),
            unanswered: unanswered(tally),
            rate_per_s: tally.requests as f64 * 1e9 / window_ns,
            window_s: tally.window_ns as f64 / 1e9,
            errors: tally.errors,
            fault: wrong.or(died).or(gone),
            load_busy: tally.load_cpu_ns as f64 / (window_ns * threads),
            server_busy: observed
                .map(|server| server.spent.cpu_ns as f64 / (window_ns * f64::from(server.cpus))),
        }
    }
}

/// What a server falls behind by within a window may all be answered after it, and late by less than
/// the limit, so that any window is too short for a rate just above what is held. So the answers
/// inside the window are counted: a server that keeps up answers as many as are due, but for 2%, and
/// for what happens to be outstanding at either end: about L = rate × mean latency (Little's law),
/// with a standard deviation of √L at each end if arrivals are independent.
fn piled_up(tally: &Tally) -> Option<u64> {
    let open = tally.open_loop.as_ref()?;
    let window_ns = tally.window_ns.max(1) as f64;
    let due = open.due as f64;
    let outstanding = due / window_ns * tally.histogram.mean();
    let chance = 3.0 * (2.0 * outstanding + 1.0).sqrt();
    let behind = due - tally.requests as f64;
    (behind > 0.02 * due + chance).then_some(behind as u64)
}

/// Load threads that there are: each has a connection, and a request that may be outstanding.
fn threads(question: &Question, level: u32) -> usize {
    let most = match question.load {
        CapacityLoad::Clients { in_flight, .. } => in_flight.unwrap_or(level).min(level),
        CapacityLoad::Rate { connections, .. } => connections,
    };
    question.threads.min(most as usize).max(1)
}

/// What a level showed, and why where it did not pass.
type Judgement = (Shown, Option<String>);

fn judge(question: &Question, seen: &Seen) -> Judgement {
    if let Some(fault) = &seen.fault {
        return (Shown::Failed, Some(fault.clone()));
    }
    let Some((shown, because)) = short_of(question, seen) else { return (Shown::Passed, None) };
    match load_was_the_limit(seen) {
        Some(limit) => (Shown::Unclear, Some(format!("{limit} ({because})"))),
        None => (shown, Some(because)),
    }
}

/// What is missing to a pass, and what that shows unless the load was the limit.
fn short_of(question: &Question, seen: &Seen) -> Option<(Shown, String)> {
    let failed = |because: String| Some((Shown::Failed, because));
    let name = question.limit.percentile();
    if seen.errors.total() > 0 {
        let kinds = seen.errors.by_kind();
        let there = kinds.iter().filter(|(_, count)| *count > 0);
        let there: Vec<String> =
            there.map(|(kind, count)| format!("{} {count}", kind.replace('_', " "))).collect();
        return failed(format!("errors: {}", there.join(", ")));
    }
    if let Some(verdict) = &seen.verdict
        && verdict.is(Kind::Overloaded)
    {
        return failed(verdict.because.clone());
    }
    if let Some(behind) = seen.piled_up {
        return failed(format!("{behind} requests piled up within the window"));
    }
    match seen.percentile_ns {
        None if seen.unanswered >= Latency::SAMPLES_BEYOND => {
            failed(format!("{name} is among the {} requests without an answer", seen.unanswered))
        }
        None => {
            let because = format!("{} replies are too few for {name}", seen.replies);
            Some((Shown::Unclear, format!("{because}; give a longer --window")))
        }
        Some(ns) if ns > question.limit.ns => failed(format!("{name} is above the limit")),
        Some(_) => None,
    }
}

/// Why a level that did not pass says nothing of the server, if so.
fn load_was_the_limit(seen: &Seen) -> Option<String> {
    let speaks = |verdict: &&Verdict| {
        // At a rate the load may have been late, or the CPU taken, though the server was busy.
        let at_rate = verdict.is(Kind::Overloaded) || verdict.is(Kind::AtAskedRate);
        verdict.is(Kind::GeneratorBound) || at_rate && verdict.voids(Figure::Latency)
    };
    if let Some(verdict) = seen.verdict.as_ref().filter(speaks) {
        return Some(verdict.because.clone());
    }
    let load = seen.load_busy;
    match seen.server_busy {
        _ if load < BUSY => None,
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
        Error::Plan(_) | Error::Tls(_) | Error::Machine { .. } => None,
    }
}

fn record(
    level: u32,
    seen: &Seen,
    memory_bytes: Option<u64>,
    (shown, because): Judgement,
) -> Judged {
    let step = CapacityStep {
        level,
        phase: CapacityPhase::StepUp,
        percentile_ns: seen.percentile_ns,
        reply_rate_per_s: seen.rate_per_s,
        window_s: seen.window_s,
        load_busy: seen.load_busy,
        server_busy: seen.server_busy,
        memory_bytes,
        passed: match shown {
            Shown::Passed => Some(true),
            Shown::Failed => Some(false),
            Shown::Unclear | Shown::Impossible { .. } => None,
        },
        because,
    };
    Judged { shown, step }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_load::Arrivals;

    fn question(load: CapacityLoad) -> Question {
        Question {
            load,
            limit: Limit { quantile: 0.95, ns: 1_000_000 },
            step: 100,
            max: 1_000,
            window: Duration::from_secs(1),
            warm_up: Duration::ZERO,
            timeout: Duration::from_secs(1),
            threads: 2,
            cpus: vec![],
            seed: 1,
        }
    }

    const CLIENTS: CapacityLoad = CapacityLoad::Clients { pipeline: 1, in_flight: None };
    const RATE: CapacityLoad =
        CapacityLoad::Rate { connections: 4, pipeline: 1, arrivals: Arrivals::Poisson };

    /// What was seen of a level of 100 that passes.
    fn good() -> Seen {
        Seen {
            percentile_ns: Some(1_000_000),
            replies: 1_000,
            rate_per_s: 100.0,
            load_busy: 0.5,
            server_busy: Some(0.5),
            ..Seen::default()
        }
    }

    fn shows(load: CapacityLoad, seen: Seen, shown: Shown, said: &str) {
        let (judged, because) = judge(&question(load), &seen);
        assert_eq!(judged, shown, "{seen:?}");
        let because = because.unwrap_or_default();
        assert!(because.contains(said), "{because}");
    }

    #[test]
    fn a_level_passes_at_the_limit_and_fails_above_it() {
        shows(CLIENTS, good(), Shown::Passed, "");
        shows(RATE, good(), Shown::Passed, "");
        let late = || Seen { percentile_ns: Some(1_000_001), ..good() };
        shows(CLIENTS, late(), Shown::Failed, "p95 is above the limit");
        let overloaded = Some(Verdict::new(Kind::Overloaded, "97 of 100 were answered"));
        let slow = Seen { verdict: overloaded, ..good() };
        shows(RATE, slow, Shown::Failed, "97 of 100 were answered");
        let behind = Seen { piled_up: Some(43), ..good() };
        shows(RATE, behind, Shown::Failed, "43 requests piled up");
        let errors = Errors { timeout: 2, closed_early: 1, ..Errors::default() };
        let lossy = Seen { errors, ..good() };
        shows(CLIENTS, lossy, Shown::Failed, "errors: timeout 2, closed early 1");
        let few = Seen { percentile_ns: None, replies: 7, ..good() };
        shows(CLIENTS, few, Shown::Unclear, "7 replies are too few for p95");
        // Far above what is held most requests were never sent, which is no error of theirs.
        let beyond = || Seen { percentile_ns: None, replies: 7, ..good() };
        let overloaded = Some(Verdict::new(Kind::Overloaded, "7 of 100 were answered"));
        let swamped = Seen { verdict: overloaded, ..beyond() };
        shows(RATE, swamped, Shown::Failed, "7 of 100 were answered");
        let piled = Seen { piled_up: Some(93), ..beyond() };
        shows(RATE, piled, Shown::Failed, "93 requests piled up");
        let unsent = Seen { unanswered: 93, ..beyond() };
        shows(RATE, unsent, Shown::Failed, "p95 is among the 93 requests without an answer");
        let dead = Seen { fault: Some("it died".into()), ..good() };
        shows(CLIENTS, dead, Shown::Failed, "it died");
    }

    #[test]
    fn a_load_that_was_the_limit_speaks_not_against_the_server() {
        let late = |load_busy, server_busy| Seen {
            percentile_ns: Some(9_000_000),
            load_busy,
            server_busy,
            ..good()
        };
        shows(CLIENTS, late(0.97, Some(0.6)), Shown::Unclear, "the load was the limit, busy 0.97");
        shows(CLIENTS, late(0.97, None), Shown::Unclear, "--pid");
        shows(CLIENTS, late(0.97, Some(0.95)), Shown::Failed, "above the limit");
        shows(CLIENTS, late(0.5, None), Shown::Failed, "above the limit");
        let bound = Verdict::new(Kind::GeneratorBound, "the load itself was late");
        let too_late = Seen { verdict: Some(bound), ..late(0.2, Some(0.2)) };
        shows(RATE, too_late, Shown::Unclear, "the load itself was late (p95 is above the limit)");
        let void = vec![Figure::Latency];
        let at_rate = Verdict { void, ..Verdict::new(Kind::AtAskedRate, "held, but late") };
        let too_late = Seen { verdict: Some(at_rate), ..late(0.2, Some(0.95)) };
        shows(RATE, too_late, Shown::Unclear, "held, but late");
        let mut noisy = Verdict::new(Kind::Noisy, "another program took the server's CPU");
        for kind in [Kind::GeneratorBound, Kind::Overloaded] {
            noisy.also = vec![kind];
            let disturbed = Seen { verdict: Some(noisy.clone()), ..late(0.2, Some(0.2)) };
            shows(RATE, disturbed, Shown::Unclear, "another program took the server's CPU");
        }
        let in_time = Seen { verdict: Some(noisy), ..good() };
        shows(RATE, in_time, Shown::Unclear, "another program");
        // One that is held is held, however busy the load was.
        shows(CLIENTS, Seen { load_busy: 0.99, ..good() }, Shown::Passed, "");
    }

    #[test]
    fn connections_that_do_not_open_are_the_machines_limit_or_the_servers() {
        let error =
            |opened, last: &str| Error::NotOpened { opened, wanted: 500, last: last.into() };
        let told = |error: Error, descriptors| not_opened(&error, descriptors).unwrap();
        let possible = |possible| Shown::Impossible { possible };
        let (because, shown) = told(error(95, "no reply within 5s"), Some(100));
        assert_eq!((because.as_str(), shown), ("the server's descriptor limit", possible(95)));
        let (because, shown) = told(error(95, "no reply within 5s"), Some(1_024));
        assert_eq!(shown, Shown::Failed);
        assert!(because.contains("only 95 connections came open: no reply"), "{because}");
        let no_ports = std::io::Error::from(rustix::io::Errno::ADDRNOTAVAIL).to_string();
        assert_eq!(told(error(95, &no_ports), None).1, possible(95));
        let here = Error::Descriptors { wanted: 500, possible: 400 };
        assert_eq!(told(here, None), ("the load's descriptor limit".into(), possible(400)));
        assert!(not_opened(&Error::Plan("x".into()), None).is_none());
    }
}
