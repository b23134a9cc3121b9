//! The judgement on a single load, without a race.

use super::{
    signals,
    verdict::{self, AtRate, Remedy, Used},
};
use crate::{Spent, fault};
use regatta_load::{OpenTally, Plan, Tally};
use regatta_record::{Figure, Kind, Latency, OpenLoopFigures, Outcome, Verdict};

/// The server as it was observed during a load.
#[derive(Clone, Copy, Debug)]
pub struct OfServer<'a> {
    /// What it spent inside the window.
    pub spent: &'a Spent,
    /// How many CPUs it had.
    pub cpus: u32,
    /// Whether the load may have run on some of them.
    pub shares: bool,
}

/// Judges what came of `plan`; `server` is `None` where it was not observed.
pub fn of_load(plan: &Plan, tally: &Tally, server: Option<OfServer<'_>>) -> Verdict {
    match fault::of_replies("the server", tally) {
        Some(Outcome::Disqualified { because, .. }) => {
            return Verdict::new(Kind::Disqualified, because);
        }
        Some(Outcome::Failed { because }) => return Verdict::new(Kind::Failed, because),
        _ if tally.requests == 0 => {
            return Verdict::new(Kind::Failed, "not one right answer came");
        }
        _ => {}
    }
    let threads = plan.threads as u32;
    let remedy = Remedy::Load { threads, shares: server.is_some_and(|server| server.shares) };
    let window_ns = tally.window_ns.max(1) as f64;
    let load = load_used(tally, threads, window_ns);
    let server = server.map(|server| server_used(server.spent, server.cpus, window_ns));
    match plan.rate {
        None => {
            let noise = verdict::disturbed(None, server, Some(load), remedy);
            let limit = verdict::limit(server, Some(load), None, remedy);
            verdict::together(noise.into_iter().chain([limit]))
        }
        Some(asked) => {
            let open_loop = tally.open_loop.as_ref().map(figures);
            let unanswered = tally.open_loop.as_ref().map_or(0, OpenTally::unanswered);
            let at_rate = AtRate {
                asked: asked.get(),
                arrivals: plan.arrivals,
                answered: tally.requests as f64 * 1e9 / window_ns,
                open_loop: open_loop.as_ref(),
                latency: &Latency::of_censored(&tally.histogram, unanswered),
                rounds: 1,
            };
            let noise = verdict::disturbed(None, server, None, remedy);
            let mut at_rate = at_rate.verdict(server, Some(load), remedy);
            if server.is_none() {
                at_rate.void.push(Figure::Cost);
            }
            verdict::together(noise.into_iter().chain([at_rate]))
        }
    }
}

fn load_used(tally: &Tally, threads: u32, window_ns: f64) -> Used {
    let whole = window_ns * f64::from(threads);
    let waited = tally.load_run_delay_ns.zip(tally.load_turns);
    let waited = waited.map(|(delay, turns)| signals::waited(delay, turns) as f64 / whole);
    let fraction = (tally.load_cpu_ns - tally.spun_ns) as f64 / whole;
    Used { fraction, cpus: threads, spun: tally.spun_ns as f64 / whole, waited }
}

fn figures(open: &OpenTally) -> OpenLoopFigures {
    OpenLoopFigures {
        due: open.due,
        unsent: open.unsent,
        late: open.late,
        timed_out: open.timed_out,
        lost: open.lost,
        wait_ns: Latency::of(&open.wait),
        send_lag_ns: Latency::of(&open.lag),
        service_ns: Latency::of(&open.service),
        misshapen: u32::from(!open.arrivals.kept),
    }
}

fn server_used(spent: &Spent, cpus: u32, window_ns: f64) -> Used {
    // It cannot be busy on more CPUs than it has threads.
    let usable = cpus.min(spent.threads).max(1);
    let whole = window_ns * f64::from(usable);
    // More threads than CPUs wait for each other.
    let delay = spent.run_delay_ns.filter(|_| spent.threads <= cpus);
    let waited = delay.map(|delay| signals::waited(delay, spent.voluntary_switches));
    Used {
        fraction: spent.cpu_ns as f64 / whole,
        cpus: usable,
        spun: 0.0,
        waited: waited.map(|ns| ns as f64 / whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use regatta_load::{Arrivals, Until, WarmUp, Workload};
    use regatta_record::{Errors, UsageSource};
    use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

    const SECOND_NS: u64 = 1_000_000_000;

    fn plan(rate: Option<u32>) -> Plan {
        Plan {
            target: ([127, 0, 0, 1], 0).into(),
            tls: None,
            workload: Workload::parse("double").unwrap(),
            host: String::new(),
            path: None,
            connections: 1,
            idle: 0,
            pipeline: 1,
            rate: rate.and_then(NonZeroU32::new),
            in_flight: None,
            arrivals: Arrivals::Poisson,
            spin: Duration::ZERO,
            busy_poll: false,
            threads: 1,
            cpus: vec![],
            timeout: Duration::from_secs(1),
            patience: Plan::PATIENCE,
            warm_up: WarmUp::Fixed(Duration::ZERO),
            until: Until::Elapsed(Duration::from_secs(1)),
            churn: false,
            seed: 1,
        }
    }

    /// 1,000 answers in a second, by a load that used half of a CPU.
    fn tally() -> Tally {
        Tally {
            requests: 1_000,
            window_ns: SECOND_NS,
            slices: vec![],
            slice_ns: SECOND_NS,
            errors: Errors::default(),
            causes: BTreeMap::new(),
            timeouts_in_window: 0,
            first_wrong: None,
            first_unfinished: None,
            histogram: Histogram::new_with_bounds(1, SECOND_NS, 3).unwrap(),
            load_cpu_ns: SECOND_NS / 2,
            spun_ns: 0,
            load_run_delay_ns: None,
            load_turns: None,
            connections_opened: 1,
            instances_ns: vec![],
            open_loop: None,
            warm_up_ns: 0,
            interrupted: false,
            tls: None,
            server_died: false,
        }
    }

    /// Half of the window at work, half of it without a CPU.
    fn spent() -> Spent {
        Spent {
            cpu_ns: SECOND_NS / 2,
            user_ns: 0,
            system_ns: 0,
            source: UsageSource::ProcessClocks,
            voluntary_switches: 0,
            involuntary_switches: 0,
            run_delay_ns: Some(SECOND_NS / 2),
            processes: 1,
            threads: 1,
        }
    }

    #[test]
    fn no_cost_is_believed_of_a_server_that_was_not_observed() {
        for rate in [None, Some(1_000), Some(2_000)] {
            assert!(of_load(&plan(rate), &tally(), None).voids(Figure::Cost), "{rate:?}");
            let spent = &Spent { run_delay_ns: None, ..spent() };
            let server = Some(OfServer { spent, cpus: 1, shares: false });
            assert!(!of_load(&plan(rate), &tally(), server).voids(Figure::Cost), "{rate:?}");
        }
        assert!(of_load(&plan(Some(1_000)), &tally(), None).is(Kind::AtAskedRate));
    }

    #[test]
    fn a_load_on_the_servers_cpu_may_have_taken_it() {
        let because = |shares| {
            let verdict =
                of_load(&plan(None), &tally(), Some(OfServer { spent: &spent(), cpus: 1, shares }));
            assert_eq!((verdict.kind, &verdict.also[..]), (Kind::Noisy, &[Kind::Idle][..]));
            verdict.because
        };
        let alone = because(false);
        assert!(alone.starts_with("another program took the server's CPU (50%"), "{alone}");
        let shared = because(true);
        assert!(shared.starts_with("the load or another program took the server's"), "{shared}");
        assert!(shared.contains("give each CPUs of its own: --cpus for the load"), "{shared}");
    }
}
