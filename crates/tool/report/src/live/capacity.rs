//! The output of `regatta capacity`: every step, then the result. The page uses the same sentences.

use crate::{
    numbers::{grouped, memory, time},
    screen::text::folded,
    tables::warm_ups::in_words,
    texts::heads::over_in_words,
};
use regatta_record::{
    Arrivals, Capacity, CapacityInterval, CapacityLoad, CapacityPhase, CapacityStep,
};
use std::fmt::Write;

/// Maximum width in columns; wider prose is hard to read.
pub const WIDEST: usize = 80;
/// Columns before the verdict of a step.
const ROW: usize = 45;
/// Columns of the name of a line.
const NAME: usize = 10;

/// The unit of the levels.
pub fn unit(load: &CapacityLoad) -> &'static str {
    match load {
        CapacityLoad::Clients { .. } => "clients",
        CapacityLoad::Rate { .. } => "requests/s",
    }
}

/// The phase in which a level was tried, in a word.
pub fn phase(phase: CapacityPhase) -> &'static str {
    match phase {
        CapacityPhase::StepUp => "step up",
        CapacityPhase::Bisect => "bisect",
        CapacityPhase::Verify => "verify",
    }
}

/// The whole output; no line is wider than `width` or 80 columns.
pub fn text(found: &Capacity, width: usize) -> String {
    let width = width.min(WIDEST);
    let head = format!(
        "{:7}  {:>10}  {:>9}  {:>11}",
        "step",
        unit(&found.load),
        found.limit.percentile(),
        "replies/s"
    );
    let mut text = folded(&head, width, 0);
    found.steps.iter().for_each(|step| text += &row(step, width));
    text.push('\n');
    let mut line = |name: &str, value: String| {
        text += &folded(&format!("{name:NAME$}{value}"), width, NAME);
    };
    line("capacity", result(found));
    match &found.unverified {
        // The line above has the reason already.
        Some(because) if found.one_sided.as_ref() == Some(because) => {
            line("", "not verified".into())
        }
        Some(because) => line("", format!("not verified: {because}")),
        None => {}
    }
    line("server", server(found));
    line("load", load(found));
    if !found.agents.is_empty() {
        let count = found.agents.len();
        line("", format!("from {count} agents: {}", found.agents.join(", ")));
    }
    if let Some(settling) = &found.settling {
        line("warm-up", in_words(settling));
    }
    if let Some(bytes) = found.memory_bytes {
        line("memory", format!("{} with the connections open", memory(bytes)));
    }
    text
}

/// Whether the server sustained the level of a step.
pub fn verdict(step: &CapacityStep) -> &'static str {
    match step.passed {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "not judged",
    }
}

/// One line for a step, or several with the reason if it did not pass.
pub fn row(step: &CapacityStep, width: usize) -> String {
    let level = grouped(step.level.into());
    let percentile = step.percentile_ns.map_or("–".into(), |ns| time(ns as f64));
    let rate = grouped(step.reply_rate_per_s.round() as u64);
    let showed = match &step.because {
        Some(because) if step.passed != Some(true) => format!("{}: {because}", verdict(step)),
        _ => verdict(step).to_string(),
    };
    let line =
        format!("{:7}  {level:>10}  {percentile:>9}  {rate:>11}  {showed}", phase(step.phase));
    folded(&line, width, ROW)
}

/// `4,850 clients at p95 ≤ 250 ms; every try of 4,600 passed, every try of 5,050 failed`. The two
/// levels are not a 95% interval, so they are not written as one.
pub fn result(found: &Capacity) -> String {
    let (unit, limit) = (unit(&found.load), limit(found));
    let Some(CapacityInterval { best, low, high }) = found.interval() else {
        return match found.steps.last() {
            None => format!("unknown at {limit}: no step finished"),
            Some(_) => format!("none found at {limit}: no level passed every time, see above"),
        };
    };
    let number = |level: u32| grouped(level.into());
    match (high, &found.one_sided) {
        (Some(high), _) => {
            let (best, low, high) = (number(best), number(low), number(high));
            format!(
                "{best} {unit} at {limit}; every try of {low} passed, every try of {high} failed"
            )
        }
        (None, Some(because)) => format!("≥ {} {unit} ({because}) at {limit}", number(low)),
        (None, None) => format!("≥ {} {unit} at {limit}", number(low)),
    }
}

/// `p95 ≤ 250 ms`, with the operation if it is not the request. An operation that follows from a request is
/// counted on the agent of the request; the limit also applies to single deliveries between agents.
pub fn limit(found: &Capacity) -> String {
    let Capacity { limit, limited, agents, .. } = found;
    match (limited.is_request(), agents.len()) {
        (true, _) => limit.to_string(),
        (false, 0 | 1) => format!("{limit} of {}", limited.several),
        (false, _) => format!(
            "{limit} of {} on the sender's agent, and of single deliveries between agents",
            limited.several
        ),
    }
}

/// The server, and whether it was restarted for each step.
pub fn server(found: &Capacity) -> String {
    let steps = match found.steps.len() {
        1 => "1 step".to_string(),
        steps => format!("{steps} steps"),
    };
    match found.fresh_starts {
        true => format!("{}, restarted for each of {steps}", found.server),
        false => format!("{}, already running; new connections for each of {steps}", found.server),
    }
}

/// The workload, and how requests are sent.
pub fn load(found: &Capacity) -> String {
    let mut text = format!("{}{}", found.workload, over_in_words(found.over.as_deref()));
    let written = match &found.load {
        CapacityLoad::Clients { pipeline, in_flight } => {
            let each = if *pipeline == 1 { "request" } else { "requests" };
            let all = in_flight.map(|most| format!(", at most {} in total", grouped(most.into())));
            let all = all.unwrap_or_default();
            write!(text, " · closed loop, {pipeline} {each} in flight per client{all}")
        }
        CapacityLoad::Rate { connections, pipeline, arrivals } => {
            let arrivals = match arrivals {
                Arrivals::Poisson => "Poisson",
                Arrivals::Constant => "evenly spaced",
            };
            write!(
                text,
                " · open loop, {arrivals}, over {connections} connections with at most {pipeline} \
                 in flight each; latency starts at the scheduled send time"
            )
        }
    };
    written.expect("a string can be written to");
    text
}
