//! A load of `regatta-load`, and what was read of its server, as `regatta-judge` takes them.

use regatta_host::{Spent, allowed_cpus};
use regatta_judge::{Limited, OfServer, Replies, SingleLoad, of_load};
use regatta_load::{OpenTally, Plan, Tally};
use regatta_record::{Latency, OpenLoopFigures, Outcome, Verdict};
use std::collections::BTreeSet;

/// Judges a load without a race. `server` is what the server spent inside the window, on how many
/// CPUs, and whether the load may have run on some of them; `None` where it was not observed.
pub fn judge_load(plan: &Plan, tally: &Tally, server: Option<(&Spent, u32, bool)>) -> Verdict {
    let server = server.map(|(spent, cpus, shares)| of_server(spent, cpus, shares));
    of_load(&single(plan, tally), server)
}

/// The outcome that follows from the replies alone; `None` if all that were owed came and were
/// right.
pub(crate) fn outcome_of_replies(name: &str, tally: &Tally) -> Option<Outcome> {
    regatta_judge::of_replies(name, replies(tally))
}

/// A load as its judge takes it.
pub(crate) fn single<'a>(plan: &Plan, tally: &'a Tally) -> SingleLoad<'a> {
    let limited = plan.workload.limited();
    let further = tally.operations.iter().find(|one| one.operation.name == limited.name);
    SingleLoad {
        drive: plan.drive,
        threads: tally.threads as u32,
        cpus: cpus(plan),
        requests: tally.requests,
        window_ns: tally.window_ns,
        replies: replies(tally),
        answered: tally.replies,
        tolerates: plan.tolerates,
        latencies: &tally.histogram,
        limited: Limited {
            latencies: further.map_or(&tally.histogram, |one| &one.histogram),
            further: further.map(|one| one.count),
        },
        load_cpu_ns: tally.load_cpu_ns,
        spun_ns: tally.spun_ns,
        run_delay_ns: tally.load_run_delay_ns,
        turns: tally.load_turns,
        open_loop: tally.open_loop.as_ref().map(figures),
    }
}

/// A server as its judge takes it.
pub(crate) fn of_server(spent: &Spent, cpus: u32, shares: bool) -> OfServer {
    OfServer {
        cpu_ns: spent.cpu_ns,
        threads: spent.threads,
        voluntary_switches: spent.voluntary_switches,
        run_delay_ns: spent.run_delay_ns,
        busiest_thread_ns: spent.busiest_thread_ns,
        cpus,
        shares,
    }
}

/// How many CPUs the load may use.
fn cpus(plan: &Plan) -> u32 {
    let given: BTreeSet<u32> = plan.cpus.iter().copied().collect();
    let any = || allowed_cpus().map_or(u32::MAX, |cpus| cpus.len() as u32);
    if given.is_empty() { any() } else { given.len() as u32 }
}

fn replies(tally: &Tally) -> Replies<'_> {
    Replies {
        errors: tally.errors,
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
        wait_ns: Latency::of(&open.wait),
        send_lag_ns: Latency::of(&open.lag),
        service_ns: Latency::of(&open.service),
        misshapen: u32::from(!open.arrivals.kept),
    }
}
