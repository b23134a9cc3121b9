//! One level of a search: its load and the result. `regatta_judge::capacity::level` judges whether the
//! server sustained it.

use super::{
    place::Ready,
    question::{CapacityError, Question},
};
use crate::{
    driving::{
        single::{of_server, single},
        warm::NO_WINDOW,
    },
    results::events::Events,
};
use regatta_fleet::AgentRun;
use regatta_judge::{
    SingleLoad,
    capacity::{
        level::{Judgement, Seen, judge_agents, more_time},
        search::Shown,
    },
};
use regatta_load::{Drive, Error, Plan, Until, WarmUp};
use regatta_record::{CapacityLoad, CapacityPhase, CapacityStep};
use std::{num::NonZeroU32, time::Duration};

/// The minimum warm-up, as a multiple of the latency limit.
const WARM_UP_OVER_LIMIT: f64 = 1.25;
/// Time without a newly opened connection after which opening connections fails.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of a server's descriptors that are not connections.
const OTHER_FILES: u64 = 64;

/// A step, and its meaning for the search.
pub(super) struct Judged {
    pub shown: Shown,
    pub step: CapacityStep,
}

/// Tries a level after `steps`. Returns `None` if it was interrupted.
pub(super) fn measure(
    question: &Question,
    ready: &Ready<'_>,
    level: u32,
    steps: &[CapacityStep],
    events: &mut Events<'_>,
) -> Result<Option<Judged>, CapacityError> {
    let seed = question.seed.wrapping_add(steps.len() as u64);
    let passed = steps.iter().any(|step| step.passed == Some(true));
    let mut window = question.window;
    let mut prolonged = false;
    loop {
        let plan = plan(question, ready, level, window, seed);
        let Some(result) = ready.load(plan.clone(), None, events)? else { return Ok(None) };
        if let Ok(tally) = &result.loaded
            && !prolonged
            && let Some(factor) = more_time(&single(&plan, tally), question.limit)
        {
            window = window.mul_f64(factor);
            prolonged = true;
            continue;
        }
        let died = result.died;
        let agents = &result.agents;
        let plan = on_their_cpus(plan, agents);
        let (seen, judgement) = match result.loaded {
            Ok(tally) => {
                let (cpus, shares) = (result.cpus, result.shares);
                let server = result.spent.map(|spent| of_server(&spent, cpus, shares));
                let by_agents = !agents.is_empty();
                let whole = SingleLoad { by_agents, ..single(&plan, &tally) };
                let seen = Seen::of(question.limit, &whole, server, died);
                let of_agent = |agent: &AgentRun| {
                    let plan = agent.plan(&plan);
                    let own = SingleLoad { by_agents, ..single(&plan, &agent.tally) };
                    Seen::of(question.limit, &own, server, None)
                };
                let each: Vec<(&str, Seen)> =
                    agents.iter().map(|agent| (agent.name.as_str(), of_agent(agent))).collect();
                let judgement = judge_agents(question.limit, &seen, &each, result.across.as_ref());
                (seen, judgement)
            }
            Err(error) => match not_opened(&error, result.descriptors) {
                // No connection at all, or too few for a rate, says nothing about a level.
                Some((_, shown)) if is_hopeless(question, &error, shown, passed) => {
                    return Err(error.into());
                }
                Some((because, shown)) => (Seen::default(), (shown, Some(died.unwrap_or(because)))),
                None => return Err(error.into()),
            },
        };
        return Ok(Some(record(level, &seen, result.memory_bytes, judgement)));
    }
}

/// The same plan with as many CPUs as the agents have together, if there are agents.
fn on_their_cpus(plan: Plan, agents: &[AgentRun]) -> Plan {
    match agents.iter().map(|agent| agent.cores).sum() {
        0 => plan,
        cores => Plan { cpus: (0..cores).collect(), ..plan },
    }
}

fn is_hopeless(question: &Question, error: &Error, shown: Shown, passed: bool) -> bool {
    if matches!(error, Error::Unverified { .. }) {
        return false;
    }
    let opened_none = matches!(error, Error::NotOpened { opened: 0, .. });
    !question.by_clients() || (opened_none && shown == Shown::Failed && !passed)
}

/// Returns the plan of a load that only observes how the server warms up.
pub(super) fn to_see(question: &Question, ready: &Ready<'_>) -> Plan {
    let warm_up = WarmUp::Judged { longest: question.settle };
    Plan { warm_up, ..plan(question, ready, question.step, NO_WINDOW, question.seed) }
}

fn plan(question: &Question, ready: &Ready<'_>, level: u32, window: Duration, seed: u64) -> Plan {
    let limit = Duration::from_nanos(question.limit.ns);
    let (connections, pipeline, drive) = match question.load {
        CapacityLoad::Clients { pipeline, in_flight } => {
            let in_flight = in_flight.and_then(NonZeroU32::new);
            let bounded = |in_flight| Drive::Bounded { in_flight };
            (level, pipeline, in_flight.map_or(Drive::Closed, bounded))
        }
        CapacityLoad::Rate { connections, pipeline, .. } => {
            let rate = NonZeroU32::new(level).unwrap_or(NonZeroU32::MIN);
            (connections, pipeline, Drive::Open { rate, arrivals: question.arrivals() })
        }
    };
    Plan {
        connections: connections as usize,
        pipeline: pipeline as usize,
        drive,
        // A load that spins would always look busy. How busy it is shows whether it was the limit.
        spin: Duration::ZERO,
        threads: threads(question, level),
        cpus: question.cpus.clone(),
        timeout: question.timeout,
        patience: PATIENCE,
        warm_up: WarmUp::Fixed(question.warm_up.max(limit.mul_f64(WARM_UP_OVER_LIMIT))),
        until: Until::Elapsed(window),
        seed,
        ..Plan::closed(([127, 0, 0, 1], 0).into(), ready.workload())
    }
}

/// Returns the number of load threads. Each needs a connection, and a request that may be in flight.
fn threads(question: &Question, level: u32) -> usize {
    let most = match question.load {
        CapacityLoad::Clients { in_flight, .. } => in_flight.unwrap_or(level).min(level),
        CapacityLoad::Rate { connections, .. } => connections,
    };
    question.threads.min(most as usize).max(1)
}

/// Returns the reason why not all connections could be opened, and its meaning for the search; `None`
/// for any other error.
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
                () if last.starts_with(&no_ports) => {
                    ("the load's source ports".into(), up_to(*opened))
                }
                () if exhausted => ("the server's descriptor limit".into(), up_to(*opened)),
                () => (format!("only {opened} connections could be opened: {last}"), Shown::Failed),
            })
        }
        Error::Unverified { .. } => Some((error.to_string(), Shown::Failed)),
        Error::Plan(_)
        | Error::Tls(_)
        | Error::Process { .. }
        | Error::Agent { .. }
        | Error::Machine { .. } => None,
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

    #[test]
    fn a_connection_that_cannot_be_opened_is_a_limit_of_the_machine_or_the_server() {
        let error =
            |opened, last: &str| Error::NotOpened { opened, wanted: 500, last: last.into() };
        let reason = |error: Error, descriptors| not_opened(&error, descriptors).unwrap();
        let possible = |possible| Shown::Impossible { possible };
        let (because, shown) = reason(error(95, "no reply within 5s"), Some(100));
        assert_eq!((because.as_str(), shown), ("the server's descriptor limit", possible(95)));
        let (because, shown) = reason(error(95, "no reply within 5s"), Some(1_024));
        assert_eq!(shown, Shown::Failed);
        assert!(because.contains("only 95 connections could be opened: no reply"), "{because}");
        let no_ports = std::io::Error::from(rustix::io::Errno::ADDRNOTAVAIL).to_string();
        assert_eq!(reason(error(95, &no_ports), None).1, possible(95));
        let here = Error::Descriptors { wanted: 500, possible: 400 };
        assert_eq!(reason(here, None), ("the load's descriptor limit".into(), possible(400)));
        let (name, because) = ("agent two".into(), "cannot be checked".into());
        let closed = Error::Unverified { name, because };
        assert_eq!(reason(closed, None), ("agent two cannot be checked".into(), Shown::Failed));
        assert!(not_opened(&Error::Plan("x".into()), None).is_none());
    }
}
