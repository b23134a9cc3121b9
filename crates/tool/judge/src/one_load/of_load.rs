//! The verdict on a single load, without a race.

use crate::{
    ObservedServer, SingleLoad,
    cell::signals,
    one_load::fault,
    verdict::{self, AtRate, Remedy, Used},
};
use regatta_record::{Drive, FailedShare, Figure, Kind, Outcome, Verdict};

/// Judges the result of a load; `server` is `None` if it was not observed.
pub fn of_load(load: &SingleLoad<'_>, server: Option<ObservedServer>) -> Verdict {
    match fault(load) {
        Some(Outcome::Disqualified { because, .. }) => {
            return Verdict::new(Kind::Disqualified, because);
        }
        Some(Outcome::Failed { because }) => return Verdict::new(Kind::Failed, because),
        _ if load.requests == 0 => {
            let because = match load.answered {
                0 => "no correct reply arrived",
                _ => "no correct reply arrived inside the window (-d), only before or after it",
            };
            return Verdict::new(Kind::Failed, because);
        }
        _ => {}
    }
    let shares = server.is_some_and(|server| server.shares);
    let remedy = match load.by_agents {
        true => Remedy::Agents,
        false => Remedy::Load { threads: load.threads, shares },
    };
    let usual = signals::Signals::default();
    let window_ns = load.window_ns.max(1) as f64;
    let used = load_used(load, window_ns);
    let server = server.map(|server| server_used(server, window_ns));
    match load.drive {
        Drive::Closed | Drive::Bounded { .. } | Drive::Churn | Drive::Burst(_) => {
            let noise = verdict::disturbed(None, server, Some(used), usual, remedy);
            let limit = verdict::bottleneck(server, Some(used), None, remedy);
            verdict::together(noise.chain([limit]))
        }
        Drive::Open { rate, arrivals } => {
            let at_rate = AtRate {
                asked: rate.get(),
                arrivals,
                answered: load.rate_per_s(),
                open_loop: load.open_loop.as_ref(),
                latency: &load.latency(),
                rounds: 1,
                server,
            };
            let noise = verdict::disturbed(None, server, None, usual, remedy);
            let mut at_rate = at_rate.verdict(Some(used), remedy);
            if server.is_none() {
                at_rate.void.push(Figure::Cost);
            }
            verdict::together(noise.chain([at_rate]))
        }
    }
}

/// Faults of the server, or more of them than tolerated.
fn fault(load: &SingleLoad<'_>) -> Option<Outcome> {
    let tolerated = load.tolerates.filter(|_| !load.replies.server_died);
    let Some((FailedShare { share, of }, most)) = tolerated else {
        return fault::of_replies("the server", load.replies);
    };
    let because = || {
        let (share, most) = (share * 100.0, most * 100.0);
        format!("{share:.2}% of the {of} failed; at most {most}% are tolerated")
    };
    (share > most).then(|| Outcome::Disqualified { because: because(), exchange: None })
}

fn load_used(load: &SingleLoad<'_>, window_ns: f64) -> Used {
    let usable = load.usable_cpus();
    let whole = window_ns * f64::from(usable);
    // If there are more threads than CPUs, the threads wait for each other.
    let waited = load.run_delay_ns.zip(load.turns).filter(|_| load.threads <= load.cpus);
    let waited = waited.map(|(delay, turns)| signals::waited(delay, turns) as f64 / whole);
    let fraction = (load.load_cpu_ns - load.spun_ns) as f64 / whole;
    let spun = load.spun_ns as f64 / whole;
    Used { fraction, cpus: usable, busiest_thread: None, spun, waited }
}

fn server_used(server: ObservedServer, window_ns: f64) -> Used {
    let usable = server.usable_cpus();
    let whole = window_ns * f64::from(usable);
    // If there are more threads than CPUs, the threads wait for each other.
    let delay = server.run_delay_ns.filter(|_| server.threads <= server.cpus);
    let waited = delay.map(|delay| signals::waited(delay, server.voluntary_switches));
    Used {
        fraction: server.cpu_ns as f64 / whole,
        cpus: usable,
        busiest_thread: server.busiest_thread_ns.map(|ns| ns as f64 / window_ns),
        spun: 0.0,
        waited: waited.map(|ns| ns as f64 / whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limited, LoadFaults};
    use hdrhistogram::Histogram;
    use regatta_record::{Arrivals, Errors, Exchange};
    use std::num::NonZeroU32;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Judges 1,000 replies in a second, by a load that used half of a CPU.
    fn judged(rate: Option<u32>, server: Option<ObservedServer>) -> Verdict {
        of_replies(rate, server, LoadFaults::default(), None)
    }

    fn of_replies(
        rate: Option<u32>,
        server: Option<ObservedServer>,
        replies: LoadFaults<'_>,
        tolerates: Option<f64>,
    ) -> Verdict {
        let latencies = Histogram::new_with_bounds(1, SECOND_NS, 3).unwrap();
        let drive = rate
            .and_then(NonZeroU32::new)
            .map_or(Drive::Closed, |rate| Drive::Open { rate, arrivals: Arrivals::Poisson });
        let failed = replies.errors.failed() as f64;
        let failed = FailedShare { share: failed / (failed + 1_000.0), of: "requests" };
        let tolerates = tolerates.map(|most| (failed, most));
        of_load(&SingleLoad { drive, replies, tolerates, ..load(&latencies) }, server)
    }

    fn load(latencies: &Histogram<u64>) -> SingleLoad<'_> {
        SingleLoad {
            drive: Drive::Closed,
            threads: 1,
            cpus: 1,
            by_agents: false,
            requests: 1_000,
            window_ns: SECOND_NS,
            replies: LoadFaults::default(),
            answered: 1_000,
            tolerates: None,
            latencies,
            limited: Limited { latencies, further: None },
            load_cpu_ns: SECOND_NS / 2,
            spun_ns: 0,
            run_delay_ns: None,
            turns: None,
            open_loop: None,
        }
    }

    /// Runs for half of the window, and waits for a CPU for the other half.
    const SERVER: ObservedServer = ObservedServer {
        cpu_ns: SECOND_NS / 2,
        threads: 1,
        voluntary_switches: 0,
        run_delay_ns: Some(SECOND_NS / 2),
        busiest_thread_ns: None,
        cpus: 1,
        shares: false,
    };

    #[test]
    fn voids_the_cost_of_a_server_that_was_not_observed() {
        for rate in [None, Some(1_000), Some(2_000)] {
            assert!(judged(rate, None).voids(Figure::Cost), "{rate:?}");
            let server = Some(ObservedServer { run_delay_ns: None, ..SERVER });
            assert!(!judged(rate, server).voids(Figure::Cost), "{rate:?}");
        }
        assert!(judged(Some(1_000), None).is(Kind::AtAskedRate));
    }

    #[test]
    fn a_server_with_one_busy_thread_on_two_cpus_is_bound_by_it() {
        let with = |busiest_thread_ns| {
            let of_two = ObservedServer { threads: 7, cpus: 2, run_delay_ns: None, ..SERVER };
            judged(None, Some(ObservedServer { cpu_ns: SECOND_NS, busiest_thread_ns, ..of_two }))
        };
        assert_eq!(with(None).kind(), Kind::Idle, "the busiest thread is not known");
        assert_eq!(with(Some(SECOND_NS / 2)).kind(), Kind::Idle);
        let bound = with(Some(SECOND_NS * 97 / 100));
        assert_eq!(bound.kind(), Kind::ServerBound);
        let expected = "server busy 0.50 of 2 CPUs, its busiest thread 0.97 of one, load 0.50";
        assert!(bound.because().starts_with(expected), "{}", bound.because());
    }

    #[test]
    fn replies_outside_the_window_are_not_denied() {
        let latencies = Histogram::new_with_bounds(1, SECOND_NS, 3).unwrap();
        for (answered, because) in [
            (0, "no correct reply arrived"),
            (7, "no correct reply arrived inside the window (-d), only before or after it"),
        ] {
            let verdict = of_load(&SingleLoad { requests: 0, answered, ..load(&latencies) }, None);
            assert_eq!((verdict.kind(), verdict.because()), (Kind::Failed, because.into()));
        }
    }

    #[test]
    fn load_threads_that_share_a_cpu_wait_for_each_other() {
        let latencies = Histogram::new_with_bounds(1, SECOND_NS, 3).unwrap();
        let verdict = |cpus| {
            let waits = SingleLoad {
                threads: 3,
                cpus,
                run_delay_ns: Some(SECOND_NS),
                turns: Some(0),
                ..load(&latencies)
            };
            of_load(&waits, Some(ObservedServer { run_delay_ns: None, ..SERVER }))
        };
        assert_eq!(verdict(3).kind(), Kind::Noisy);
        let shared = verdict(1);
        assert_eq!(shared.kind(), Kind::Idle);
        assert!(shared.because().contains("load 0.50"), "{shared:?}");
    }

    #[test]
    fn tolerates_the_requested_share_of_failures_but_no_death() {
        let errors = Errors { wrong_reply: 7, timeout: 3, connect: 500, ..Errors::default() };
        let exchange =
            Exchange { sent: "".into(), expected: "".into(), received: "".into(), reply_index: 0 };
        let replies = LoadFaults { errors, first_wrong: Some(&exchange), ..LoadFaults::default() };
        let kind = |replies, tolerates| of_replies(None, None, replies, tolerates).kind();
        // 10 of 1,010.
        assert_eq!(kind(replies, Some(0.01)), Kind::ServerNotObserved);
        assert_eq!(kind(replies, Some(0.009)), Kind::Disqualified);
        assert_eq!(kind(replies, None), Kind::Disqualified);
        assert_eq!(
            kind(LoadFaults { server_died: true, ..replies }, Some(1.0)),
            Kind::Disqualified
        );
        let died = LoadFaults { server_died: true, first_wrong: None, ..replies };
        assert_eq!(kind(died, Some(1.0)), Kind::Failed);
    }

    #[test]
    fn the_deliveries_of_a_hub_may_fail_by_no_more_than_the_requests() {
        let latencies = Histogram::new_with_bounds(1, SECOND_NS, 3).unwrap();
        let failed = FailedShare { share: 0.02, of: "deliveries" };
        let judged = |most| {
            let errors = Errors { closed_early: 20, ..Errors::default() };
            let replies = LoadFaults { errors, ..LoadFaults::default() };
            let tolerates = Some((failed, most));
            of_load(&SingleLoad { replies, tolerates, ..load(&latencies) }, None)
        };
        assert_eq!(judged(0.02).kind(), Kind::ServerNotObserved);
        let because = "2.00% of the deliveries failed; at most 1% are tolerated";
        assert_eq!(
            (judged(0.01).kind(), judged(0.01).because()),
            (Kind::Disqualified, because.into())
        );
    }

    #[test]
    fn a_load_on_the_servers_cpu_may_have_taken_it() {
        let because = |shares| {
            let verdict = judged(None, Some(ObservedServer { shares, ..SERVER }));
            assert_eq!(verdict.kind(), Kind::Noisy);
            assert!(verdict.is(Kind::Idle), "{verdict:?}");
            verdict.because()
        };
        let alone = because(false);
        assert!(alone.starts_with("another program took the server's CPU (50%"), "{alone}");
        let shared = because(true);
        assert!(shared.starts_with("the load or another program took the server's"), "{shared}");
        assert!(shared.contains("give each its own CPUs: --cpus for the load"), "{shared}");
    }
}
