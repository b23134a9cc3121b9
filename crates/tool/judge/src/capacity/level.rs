//! One level of a capacity search: whether the server held it.

use super::{across::judge_across, search::Shown};
use crate::{BUSY, Limited, ObservedServer, SingleLoad, of_load, verdict::Remedy};
use regatta_record::{Errors, Figure, Kind, Latency, Limit, LoadAcross, Verdict};

/// Maximum factor by which a window grows to get enough replies beyond the percentile.
const MOST_WINDOWS: f64 = 10.0;

/// Returns the factor by which the window must grow to get enough replies beyond the percentile;
/// `None` if there are enough, or if something else decides.
pub fn more_time(load: &SingleLoad<'_>, limit: Limit) -> Option<f64> {
    let replies = load.limited.latencies.len() as f64;
    // A little more than enough, because replies are not evenly spaced.
    let needed = 1.2 * Latency::SAMPLES_BEYOND as f64 / (1.0 - limit.quantile);
    // This many unanswered requests are all beyond the percentile themselves.
    let decided = load.replies.errors.total() > 0
        || load.replies.server_died
        || load.replies.first_wrong.is_some()
        || load.unanswered() >= Latency::SAMPLES_BEYOND
        || replies >= needed;
    let enough = percentile(load, limit).is_some();
    (!enough && !decided).then(|| (needed / replies.max(1.0)).clamp(1.0, MOST_WINDOWS))
}

fn percentile(load: &SingleLoad<'_>, limit: Limit) -> Option<u64> {
    // Unanswered requests took longer than all answered ones.
    let unanswered = load.unanswered();
    let latencies = load.limited.latencies;
    let replies = latencies.len();
    let rank = ((replies + unanswered) as f64 * limit.quantile).ceil() as u64;
    let known = rank <= replies && replies + unanswered - rank >= Latency::SAMPLES_BEYOND;
    known.then(|| latencies.value_at_quantile((rank as f64 - 0.5) / replies as f64))
}

/// Observations of a level.
#[derive(Debug, Default)]
pub struct Seen {
    /// The limited percentile; `None` if there were too few replies, or if it is among the unanswered
    /// requests.
    pub percentile_ns: Option<u64>,
    /// Number of latencies behind the percentile.
    replies: u64,
    /// At a rate: requests that were due and had no reply.
    unanswered: u64,
    /// Correct replies per second.
    pub rate_per_s: f64,
    /// Length of the window in seconds.
    pub window_s: f64,
    errors: Errors,
    /// What the server did that decides the level, as a sentence.
    fault: Option<String>,
    /// Fraction of its CPUs' time that the load used.
    pub load_busy: f64,
    /// The same for the server; `None` if it was not observed.
    pub server_busy: Option<f64>,
    /// Fraction of one CPU's time that the server's busiest thread used, if known.
    busiest_thread: Option<f64>,
    /// Requests, or operations that follow from them, that were due and piled up inside the window, if
    /// significantly many did.
    piled_up: Option<u64>,
    /// The verdict that `regatta load` would give.
    verdict: Option<Verdict>,
    /// Whether agents on other machines carried it out.
    by_agents: bool,
}

impl Seen {
    /// Collects the observations of `load`. `died` describes how the server exited, if it did under
    /// load.
    pub fn of(
        limit: Limit,
        load: &SingleLoad<'_>,
        server: Option<ObservedServer>,
        died: Option<String>,
    ) -> Seen {
        let window_ns = load.window_ns.max(1) as f64;
        let wrong = load.replies.first_wrong.map(|wrong| {
            let (expected, received) = (&wrong.expected, &wrong.received);
            format!("a reply was wrong: expected {expected}, received {received}")
        });
        let gone = load
            .replies
            .server_died
            .then(|| "the server stopped accepting connections and answering".to_string());
        let busy = |server: ObservedServer| {
            server.cpu_ns as f64 / (window_ns * f64::from(server.usable_cpus()))
        };
        Seen {
            piled_up: piled_up(load),
            verdict: Some(of_load(load, server)),
            by_agents: load.by_agents,
            percentile_ns: percentile(load, limit),
            replies: load.limited.latencies.len(),
            unanswered: load.unanswered(),
            rate_per_s: load.rate_per_s(),
            window_s: load.window_ns as f64 / 1e9,
            errors: load.replies.errors,
            fault: wrong.or(died).or(gone),
            load_busy: load.load_cpu_ns as f64 / (window_ns * f64::from(load.usable_cpus())),
            server_busy: server.map(busy),
            busiest_thread: server
                .and_then(|server| Some(server.busiest_thread_ns? as f64 / window_ns)),
        }
    }
}

/// Counts the requests that piled up inside the window, if they are significantly many.
///
/// The backlog of one window may be answered after it, each reply late by less than the limit. So
/// any window is too short for a rate just above the capacity, and the answers inside the window
/// are counted instead. A server that keeps up answers as many requests as are due, within 2% and
/// within the requests that happen to be in flight at either edge: about L = rate × mean latency
/// (Little's law), with a standard deviation of √L at each edge if arrivals are independent. In
/// closed loop the same holds for operations that follow from requests: a server may reply before
/// it has done them.
fn piled_up(load: &SingleLoad<'_>) -> Option<u64> {
    let Limited { latencies, further } = load.limited;
    let due = match (&load.open_loop, further) {
        (Some(open), _) => open.due,
        (None, Some(_)) => load.requests,
        (None, None) => return None,
    };
    let (due, done) = (due as f64, further.unwrap_or(load.requests) as f64);
    let outstanding = due / load.window_ns.max(1) as f64 * latencies.mean();
    let chance = 3.0 * (2.0 * outstanding + 1.0).sqrt();
    let behind = due - done;
    (behind > 0.02 * due + chance).then_some(behind as u64)
}

/// The result of a level, and the reason if it did not pass.
pub type Judgement = (Shown, Option<String>);

/// Judges whether the server held the level within `limit`.
pub fn judge(limit: Limit, seen: &Seen) -> Judgement {
    if let Some(fault) = &seen.fault {
        return (Shown::Failed, Some(fault.clone()));
    }
    let Some((shown, because)) = short_of(limit, seen) else { return (Shown::Passed, None) };
    match load_was_the_limit(seen) {
        Some(limit) => (Shown::Unclear, Some(format!("{limit} ({because})"))),
        None => (shown, Some(because)),
    }
}

/// Like [`judge`], of a load by agents, each with its name and its own part of the load. A level that did not
/// pass shows nothing about the server if one agent alone was the limit. `across` are the deliveries between
/// agents, if there are some.
pub fn judge_agents(
    limit: Limit,
    seen: &Seen,
    agents: &[(&str, Seen)],
    across: Option<&LoadAcross>,
) -> Judgement {
    let (mut shown, mut because) = judge(limit, seen);
    if shown == Shown::Passed
        && let Some((worse, why)) = across.and_then(|across| judge_across(limit, across))
    {
        (shown, because) = match load_was_the_limit(seen) {
            Some(limit) => (Shown::Unclear, Some(limit)),
            None => (worse, Some(why)),
        };
    }
    if shown != Shown::Failed || seen.fault.is_some() {
        return (shown, because);
    }
    let limits = |(name, agent): &(&str, Seen)| {
        load_was_the_limit(agent).map(|limit| format!("agent {name}: {limit}"))
    };
    match agents.iter().find_map(limits) {
        Some(limit) => (Shown::Unclear, Some(format!("{limit} ({})", because.unwrap_or_default()))),
        None => (shown, because),
    }
}

/// Finds why a level did not pass, and what that shows unless the load was the limit.
fn short_of(limit: Limit, seen: &Seen) -> Option<(Shown, String)> {
    let failed = |because: String| Some((Shown::Failed, because));
    let name = limit.percentile();
    if seen.errors.total() > 0 {
        let kinds = seen.errors.by_kind();
        let present = kinds.iter().filter(|(_, count)| *count > 0);
        let present: Vec<String> =
            present.map(|(kind, count)| format!("{} {count}", kind.replace('_', " "))).collect();
        return failed(format!("errors: {}", present.join(", ")));
    }
    if let Some(verdict) = &seen.verdict
        && verdict.is(Kind::Overloaded)
    {
        return failed(verdict.because());
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
            Some((Shown::Unclear, format!("{because}; pass a longer --window")))
        }
        Some(ns) if ns > limit.ns => failed(format!("{name} is above the limit")),
        Some(_) => None,
    }
}

/// Explains why a level that did not pass says nothing about the server, if so.
fn load_was_the_limit(seen: &Seen) -> Option<String> {
    let speaks = |verdict: &&Verdict| {
        // At a rate, the load may have been late, or its CPU taken, although the server was busy.
        let at_rate = verdict.is(Kind::Overloaded) || verdict.is(Kind::AtAskedRate);
        verdict.is(Kind::GeneratorBound) || at_rate && verdict.voids(Figure::Latency)
    };
    if let Some(verdict) = seen.verdict.as_ref().filter(speaks) {
        return Some(verdict.because());
    }
    let load = seen.load_busy;
    let more = match seen.by_agents {
        true => Remedy::Agents.more_for_load(),
        false => "use more --threads".to_owned(),
    };
    match seen.server_busy {
        _ if load < BUSY => None,
        None => Some(format!(
            "the load was busy {load:.2} and the server was not observed: {more}, or use \
             --pid to see which side was the limit"
        )),
        // More CPUs do not help a thread that is always busy.
        Some(server) if server.max(seen.busiest_thread.unwrap_or(0.0)) < BUSY => {
            Some(format!("the load was the limit (busy {load:.2}, the server {server:.2}): {more}"))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadFaults;
    use hdrhistogram::Histogram;
    use regatta_record::{CellFinding, Drive, Exchange};

    const LIMIT: Limit = Limit { quantile: 0.95, ns: 1_000_000 };

    /// A level of 100 that passes.
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

    fn shows(seen: Seen, shown: Shown, text: &str) {
        let (judged, because) = judge(LIMIT, &seen);
        assert_eq!(judged, shown, "{seen:?}");
        let because = because.unwrap_or_default();
        assert!(because.contains(text), "{because}");
    }

    #[test]
    fn a_level_passes_at_the_limit_and_fails_above_it() {
        shows(good(), Shown::Passed, "");
        let late = || Seen { percentile_ns: Some(1_000_001), ..good() };
        shows(late(), Shown::Failed, "p95 is above the limit");
        let overloaded = Some(Verdict::new(Kind::Overloaded, "97 of 100 were answered"));
        let slow = Seen { verdict: overloaded, ..good() };
        shows(slow, Shown::Failed, "97 of 100 were answered");
        let behind = Seen { piled_up: Some(43), ..good() };
        shows(behind, Shown::Failed, "43 requests piled up");
        let errors = Errors { timeout: 2, closed_early: 1, ..Errors::default() };
        let lossy = Seen { errors, ..good() };
        shows(lossy, Shown::Failed, "errors: timeout 2, closed early 1");
        let few = Seen { percentile_ns: None, replies: 7, ..good() };
        shows(few, Shown::Unclear, "7 replies are too few for p95");
        // Far above the capacity most requests are never sent; that is no error.
        let beyond = || Seen { percentile_ns: None, replies: 7, ..good() };
        let overloaded = Some(Verdict::new(Kind::Overloaded, "7 of 100 were answered"));
        let swamped = Seen { verdict: overloaded, ..beyond() };
        shows(swamped, Shown::Failed, "7 of 100 were answered");
        let piled = Seen { piled_up: Some(93), ..beyond() };
        shows(piled, Shown::Failed, "93 requests piled up");
        let unsent = Seen { unanswered: 93, ..beyond() };
        shows(unsent, Shown::Failed, "p95 is among the 93 requests without an answer");
        let dead = Seen { fault: Some("it died".into()), ..good() };
        shows(dead, Shown::Failed, "it died");
    }

    #[test]
    fn one_saturated_agent_does_not_fail_the_server() {
        let late = || Seen { percentile_ns: Some(9_000_000), ..good() };
        let busy = || Seen { load_busy: 0.99, server_busy: Some(0.5), ..late() };
        let judged = |seen: &Seen, second: Seen| {
            judge_agents(LIMIT, seen, &[("gen1", late()), ("gen2", second)], None)
        };
        assert_eq!(judged(&late(), late()).0, Shown::Failed);
        let (shown, because) = judged(&late(), Seen { by_agents: true, ..busy() });
        let because = because.unwrap();
        assert_eq!(shown, Shown::Unclear);
        assert!(!because.contains("--threads"), "it is refused with --on: {because}");
        assert!(because.starts_with("agent gen2: the load was the limit"), "{because}");
        assert_eq!(judged(&good(), busy()).0, Shown::Passed);
        let wrong = Seen { fault: Some("a reply was wrong".into()), ..late() };
        assert_eq!(judged(&wrong, busy()).0, Shown::Failed, "a wrong reply is one");
    }

    #[test]
    fn a_saturated_load_does_not_fail_the_server() {
        let late = |load_busy, server_busy| Seen {
            percentile_ns: Some(9_000_000),
            load_busy,
            server_busy,
            ..good()
        };
        shows(late(0.97, Some(0.6)), Shown::Unclear, "the load was the limit (busy 0.97");
        shows(late(0.97, None), Shown::Unclear, "--pid");
        let with_thread = |share| Seen { busiest_thread: Some(share), ..late(0.97, Some(0.6)) };
        shows(with_thread(0.6), Shown::Unclear, "the load was the limit");
        shows(with_thread(0.98), Shown::Failed, "above the limit");
        shows(late(0.97, Some(0.95)), Shown::Failed, "above the limit");
        shows(late(0.5, None), Shown::Failed, "above the limit");
        let bound = Verdict::new(Kind::GeneratorBound, "the load itself was late");
        let too_late = Seen { verdict: Some(bound), ..late(0.2, Some(0.2)) };
        shows(too_late, Shown::Unclear, "the load itself was late (p95 is above the limit)");
        let void = vec![Figure::Latency];
        let at_rate = Verdict { void, ..Verdict::new(Kind::AtAskedRate, "held, but late") };
        let too_late = Seen { verdict: Some(at_rate), ..late(0.2, Some(0.95)) };
        shows(too_late, Shown::Unclear, "held, but late");
        let mut noisy = Verdict::new(Kind::Noisy, "another program took the server's CPU");
        for kind in [Kind::GeneratorBound, Kind::Overloaded] {
            noisy.findings.truncate(1);
            noisy.findings.push(CellFinding::new(kind, ""));
            let disturbed = Seen { verdict: Some(noisy.clone()), ..late(0.2, Some(0.2)) };
            shows(disturbed, Shown::Unclear, "another program took the server's CPU");
        }
        let in_time = Seen { verdict: Some(noisy), ..good() };
        shows(in_time, Shown::Unclear, "another program");
        // A level that was held passes, however busy the load was.
        shows(Seen { load_busy: 0.99, ..good() }, Shown::Passed, "");
    }

    /// A closed loop that caused `done` further operations in a second.
    fn load(latencies: &Histogram<u64>, requests: u64, done: u64) -> SingleLoad<'_> {
        SingleLoad {
            drive: Drive::Closed,
            threads: 1,
            cpus: 1,
            by_agents: false,
            requests,
            window_ns: 1_000_000_000,
            replies: LoadFaults::default(),
            answered: requests,
            tolerates: None,
            latencies,
            limited: Limited { latencies, further: Some(done) },
            load_cpu_ns: 0,
            spun_ns: 0,
            run_delay_ns: None,
            turns: None,
            open_loop: None,
        }
    }

    #[test]
    fn operations_pile_up_if_fewer_are_done_than_were_due() {
        let none = Histogram::new(3).unwrap();
        assert_eq!(piled_up(&load(&none, 1_000, 1_000)), None);
        assert_eq!(piled_up(&load(&none, 1_000, 977)), None, "2% and three deviations");
        assert_eq!(piled_up(&load(&none, 1_000, 900)), Some(100));
    }

    #[test]
    fn a_window_grows_unless_a_fault_has_decided() {
        let none = Histogram::new(3).unwrap();
        let exchange = Exchange {
            sent: "1".into(),
            expected: "2".into(),
            received: "3".into(),
            reply_index: 0,
        };
        let few = load(&none, 1, 1);
        assert_eq!(more_time(&few, LIMIT), Some(MOST_WINDOWS));
        let died = LoadFaults { server_died: true, ..few.replies };
        let wrong = LoadFaults { first_wrong: Some(&exchange), ..few.replies };
        let failed =
            LoadFaults { errors: Errors { timeout: 1, ..Errors::default() }, ..few.replies };
        for replies in [died, wrong, failed] {
            assert_eq!(more_time(&SingleLoad { replies, ..few.clone() }, LIMIT), None);
        }
    }
}
