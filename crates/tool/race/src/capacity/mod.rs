//! Capacity search: how many clients, or requests per second, a server sustains while a latency
//! percentile stays within a limit (method, rule 8).
//!
//! `regatta_judge::capacity` decides which level to try next, and whether a level was sustained.
//! `place` starts the server, or uses a running one, and runs one load against it. `level` builds that
//! load. This file repeats these steps until the search is over.

mod alone;
mod level;
mod place;
mod question;

pub use alone::alone;
pub use place::CapacityTarget;
pub use question::{CapacityError, Question};

use crate::{driving::warm::needs, results::events::Events};
use level::Judged;
use regatta_fleet::Fleet;
use regatta_judge::{
    Settler,
    capacity::search::{self, Above, Rise, Search, Shown, Why},
};
use regatta_record::{
    Capacity, CapacityInterval, CapacityPhase, CapacityStep, FORMAT, Happened, Settling,
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Runs the search and returns its result. The load comes from `fleet` if there is one, otherwise from this
/// machine. Emits progress to `events`, but not the result. `stop` ends the search at once, with the results
/// so far.
///
/// # Errors
/// If the server cannot be observed or the contender's manifest is wrong, if a start of the contender
/// failed, if not a single connection can be opened (at a rate: not every connection), or if the
/// machine or an agent fails.
pub fn run(
    question: &Question,
    place: &CapacityTarget<'_>,
    fleet: Option<&mut Fleet>,
    events: &mut Events<'_>,
    stop: &AtomicBool,
) -> Result<Capacity, CapacityError> {
    let ready = place.prepare(question, stop)?.loaded_by(fleet);
    let (max, mut end) = match ready.stated_limit() {
        Some((limit, because)) if question.by_clients() && limit < question.max => (limit, because),
        _ => (question.max, "--max".to_string()),
    };
    events.emit(Happened::CapacityStarted { load: question.load });
    let settling = see(question, &ready, events)?;
    let needed = settling.as_ref().map_or(Duration::ZERO, |settling| needs(settling).0);
    let question = &Question { warm_up: question.warm_up.max(needed), ..question.clone() };
    let rise = if question.by_clients() { Rise::Equal } else { Rise::Doubling };
    let mut search = Search::new(question.step, rise, max);
    let mut steps: Vec<CapacityStep> = Vec::new();
    let began = Instant::now();
    let mut cut_short = None;
    while let Some((level, why)) = search.next() {
        if began.elapsed() > question.time_limit {
            cut_short = Some(format!("it ended after {:?} (--time-limit)", question.time_limit));
            break;
        }
        let phase = phase(why);
        let done = steps.len() as u32;
        events.emit(Happened::LevelStarted { done, level, phase });
        let judged = level::measure(question, &ready, level, &steps, events)?;
        let Some(Judged { shown, step }) = judged else { break };
        let step = CapacityStep { phase, ..step };
        events.emit(Happened::LevelEnded(step.clone()));
        if let (Shown::Impossible { .. }, Some(because)) = (shown, &step.because) {
            end = because.clone();
        }
        steps.push(step);
        search.tell(level, shown);
    }
    if stop.load(Ordering::Relaxed) {
        cut_short = Some("it was interrupted".to_string());
    } else if steps.len() >= search::MOST_TRIES {
        cut_short = Some(format!("it ended after {} steps", search::MOST_TRIES));
    }
    let ended = Ended { steps, end, cut_short };
    let agents = ready.agents();
    Ok(Capacity { settling, agents, ..conclude(question, place, &ready, &search, ended) })
}

/// Observes how the server warms up under the first level; `None` if that is not wanted or not
/// possible.
fn see(
    question: &Question,
    ready: &place::Ready<'_>,
    events: &mut Events<'_>,
) -> Result<Option<Settling>, CapacityError> {
    if question.settle.is_zero() {
        return Ok(None);
    }
    let mut settler = Settler::new(question.settle);
    let result = ready.load(level::to_see(question, ready), Some(&mut settler), events)?;
    // A fault repeats in the first step, which reports it.
    let is_fine = result.is_some_and(|result| result.loaded.is_ok() && result.died.is_none());
    Ok(if is_fine { settler.settling() } else { None })
}

fn phase(why: Why) -> CapacityPhase {
    match why {
        Why::StepUp => CapacityPhase::StepUp,
        Why::Bisect => CapacityPhase::Bisect,
        Why::Verify => CapacityPhase::Verify,
    }
}

/// A search that is over.
struct Ended {
    steps: Vec<CapacityStep>,
    /// What limits the highest level.
    end: String,
    /// Why it ended before it was verified, if so.
    cut_short: Option<String>,
}

/// Returns the record of the result.
fn conclude(
    question: &Question,
    place: &CapacityTarget<'_>,
    ready: &place::Ready<'_>,
    search: &Search,
    Ended { steps, end, cut_short }: Ended,
) -> Capacity {
    let found = search.found();
    let because_at = |level: u32| {
        let step = steps.iter().rev().find(|step| step.level == level && step.passed.is_none());
        step.and_then(|step| step.because.clone()).unwrap_or_default()
    };
    let (mut interval, mut one_sided, mut memory_bytes) = (None, None, None);
    if let Some(found) = found {
        let mut high = None;
        match found.above {
            Above::Failed(level) | Above::Unverified(level) => high = Some(level),
            Above::End(_) => one_sided = Some(end),
            Above::Unclear(level) => one_sided = Some(because_at(level)),
            Above::Open => one_sided = cut_short.clone(),
        }
        interval = Some(CapacityInterval { best: found.best, low: found.low, high });
        let held = |step: &&CapacityStep| step.passed == Some(true) && step.level <= found.best;
        let last_highest = steps.iter().filter(held).max_by_key(|step| step.level);
        memory_bytes = last_highest.and_then(|step| step.memory_bytes);
    }
    // Only a search that was cut short leaves the end of an interval unverified.
    let unverified = cut_short.filter(|_| found.is_some_and(|found| !found.verified));
    let by_clients = question.by_clients();
    Capacity {
        format: FORMAT,
        server: place.name(),
        workload: ready.workload().name().to_string(),
        over: ready.over(),
        load: question.load,
        limit: question.limit,
        limited: ready.workload().limited(),
        fresh_starts: matches!(place, CapacityTarget::Contender { .. }),
        clients: interval.filter(|_| by_clients),
        rate_per_s: interval.filter(|_| !by_clients),
        memory_bytes,
        one_sided,
        agents: Vec::new(),
        settling: None,
        unverified,
        steps,
        // The caller knows them.
        setup: None,
        contender: None,
    }
}
