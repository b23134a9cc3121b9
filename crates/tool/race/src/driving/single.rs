//! Converts a load of `regatta-load` and the usage of its server to the input of `regatta-judge`.

use regatta_host::{Spent, allowed_cpus};
use regatta_judge::{Limited, LoadFaults, ObservedServer, SingleLoad, of_load};
use regatta_load::{OpenTally, Plan, Tally};
use regatta_record::{Latency, OpenLoopFigures, Outcome, Verdict};
use std::collections::BTreeSet;

/// Judges a load without a race. `server` holds the server's usage inside the window, the number of
/// its CPUs, and whether the load may have run on some of them; `None` if it was not observed. `by_agents` is
/// whether agents on other machines carried out the load.
pub fn judge_load(
    plan: &Plan,
    tally: &Tally,
    server: Option<(&Spent, u32, bool)>,
    by_agents: bool,
) -> Verdict {
    let server = server.map(|(spent, cpus, shares)| of_server(spent, cpus, shares));
    of_load(&SingleLoad { by_agents, ..single(plan, tally) }, server)
}

/// Returns the outcome that follows from the replies alone; `None` if every expected reply arrived
/// and was right.
pub(crate) fn outcome_of_replies(name: &str, tally: &Tally) -> Option<Outcome> {
    regatta_judge::of_replies(name, replies(tally))
}

/// Converts a load to the judge's input.
pub(crate) fn single<'a>(plan: &Plan, tally: &'a Tally) -> SingleLoad<'a> {
    let limited = plan.workload.limited();
    let further = tally.operations.iter().find(|one| one.operation.name == limited.name);
    SingleLoad {
        drive: plan.drive,
        threads: tally.threads as u32,
        cpus: cpus(plan),
        by_agents: false,
        requests: tally.requests,
        window_ns: tally.window_ns,
        replies: replies(tally),
        answered: tally.replies,
        tolerates: plan.tolerates.map(|most| (tally.failed_share(tally.errors.failed(), 0), most)),
        latencies: &tally.histogram,
        limited: Limited {
            latencies: further.map_or(&tally.histogram, |one| &one.histogram),
            further: further.map(|one| one.count),
        },
        load_cpu_ns: tally.load_cpu_ns,
        spun_ns: tally.spun_ns,
        run_delay_ns: tally.run_delay_ns,
        turns: tally.turns,
        open_loop: tally.open_loop.as_ref().map(figures),
    }
}

/// Converts a server's usage to the judge's input.
pub(crate) fn of_server(spent: &Spent, cpus: u32, shares: bool) -> ObservedServer {
    ObservedServer {
        cpu_ns: spent.cpu_ns,
        threads: spent.threads,
        voluntary_switches: spent.voluntary_switches,
        run_delay_ns: spent.run_delay_ns,
        busiest_thread_ns: spent.busiest_thread_ns,
        cpus,
        shares,
    }
}

/// Returns the number of CPUs that the load may use.
fn cpus(plan: &Plan) -> u32 {
    let given: BTreeSet<u32> = plan.cpus.iter().copied().collect();
    let any = || allowed_cpus().map_or(u32::MAX, |cpus| cpus.len() as u32);
    if given.is_empty() { any() } else { given.len() as u32 }
}

fn replies(tally: &Tally) -> LoadFaults<'_> {
    LoadFaults {
        errors: tally.errors,
        missing_deliveries: tally.wrong_deliveries.map_or(0, |wrong| wrong.missing),
        first_wrong: tally.first_wrong.as_ref(),
        server_died: tally.server_died,
    }
}

fn figures(open: &OpenTally) -> OpenLoopFigures {
    OpenLoopFigures {
        due: open.due,
        unsent: open.unsent,
        late: open.late,
        timed_out: open.timed_out,
        lost: open.lost,
        refused: open.refused,
        wait_ns: Latency::of(&open.wait),
        send_lag_ns: Latency::of(&open.lag),
        service_ns: Latency::of(&open.service),
        misshapen: u32::from(!open.arrivals.kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use regatta_record::{ArrivalCheck, ArrivalsSeen, OpenCounted};

    #[test]
    fn the_outcomes_of_an_open_loop_add_up_to_the_requests_that_were_due() {
        let mut times = Histogram::<u64>::new(3).unwrap();
        times.record_n(1, 100).unwrap();
        let counts = OpenCounted {
            due: 115,
            unsent: 1,
            late: 50,
            timed_out: 2,
            lost: 4,
            refused: 8,
            ..OpenCounted::nothing(
                [times.clone(), times.clone(), times],
                ArrivalsSeen::nothing(1, 1),
            )
        };
        let arrivals = ArrivalCheck {
            gaps: 0,
            rate_per_s: 0.0,
            distance: 0.0,
            lag1: 0.0,
            unsteadiness: 0.0,
            kept: true,
        };
        let open = figures(&OpenTally { counts, arrivals, spin_ns: 0 });
        assert_eq!(open.due, 100 + open.unsent + open.timed_out + open.lost + open.refused);
    }
}
