//! The plan of a load on one contender, which follows from the race alone.

use crate::{
    ask::entrant::Entrant, ask::host_name::HOST, contenders::adapter::Adapter, driving::reply_seen,
    site::start::Addresses,
};
use regatta_host::what_is_spoken;
use regatta_load::{Drive, Plan, Until, WarmUp};
use regatta_record::{Asked, LoadShape, NULL};
use regatta_script::Workload;
use std::{net::SocketAddr, time::Duration};

/// Timeout of a reply.
const REPLY_WITHIN: Duration = Duration::from_secs(5);

/// Timeout of a reply under a counted load, and of a whole burst.
const COUNTED_WITHIN: Duration = Plan::MAX_TIMEOUT;
/// Timeout of a counted number of requests as a whole. It is long because one slow computation can
/// hold up all other requests.
const REQUESTS_WITHIN: Duration = Duration::from_secs(600);

/// What the server under this load speaks, if it is doubtful that it speaks the protocol of the load.
pub(crate) fn spoken(plan: &Plan, is_doubtful: bool) -> Option<String> {
    is_doubtful.then(|| what_is_spoken(plan.target, &plan.workload, plan.path.as_deref())).flatten()
}

/// Returns the plan of a load of a race against a contender at `addresses`, as the contender is to be loaded.
pub(crate) fn plan_against(
    asked: &Asked,
    entrant: &Entrant,
    addresses: &Addresses,
    load: LoadShape,
    seed: u64,
) -> Plan {
    let path = entrant.contender.manifest.path.clone();
    // A null server replies to bytes, not to whole requests. For a workload file, only its author knows
    // whether servers may do the same, unless its protocol forbids it, or it has a single request without content.
    let adapter = entrant.contender.manifest.adapter;
    let is_null = adapter.is_some_and(Adapter::is_null) || entrant.name == NULL;
    let are_whole = asked.workload_file.is_none() || entrant.speaks.needs_whole_requests();
    let withholds = !is_null && (are_whole || reply_seen::is_only_request(entrant));
    let nodes = addresses.further(|_| HOST.to_owned());
    let plan = plan(asked, entrant.speaks_under(load.n), addresses.own, load, seed);
    Plan { path, withholds, nodes, ..plan }
}

/// Returns the measured window of a load.
pub(crate) fn window(asked: &Asked, load: &LoadShape) -> regatta_record::Window {
    let of_burst =
        load.drive.burst().map(|burst| u64::from(load.connections) * u64::from(burst.requests));
    match of_burst.or(load.requests.map(u64::from)) {
        Some(n) => regatta_record::Window::Requests { n },
        None => regatta_record::Window::Time { s: asked.window_s },
    }
}

/// Returns the time limit of a counted load as a whole; `None`: it ends by itself.
pub(crate) fn time_limit(load: &LoadShape) -> Option<Duration> {
    let of_all = if load.drive.burst().is_some() { COUNTED_WITHIN } else { REQUESTS_WITHIN };
    load.is_counted().then_some(of_all)
}

/// Returns the plan of a load of a race against a contender at `target`.
pub(crate) fn plan(
    asked: &Asked,
    speaks: Workload,
    target: SocketAddr,
    load: LoadShape,
    seed: u64,
) -> Plan {
    let cpus = asked.cpus.of_load(&load);
    let shares_cpus = asked.cpus.overlap(&load);
    let window = Until::Elapsed(Duration::from_secs_f64(asked.window_s));
    let until = match (load.drive, load.requests) {
        (Drive::Burst(_), _) => Until::Done,
        (_, Some(requests)) => Until::Requests(requests.into()),
        (_, None) => window,
    };
    Plan {
        host: HOST.to_owned(),
        connections: load.connections as usize,
        idle: load.idle as usize,
        stalled: load.stalled as usize,
        passing: load.passing as usize,
        pipeline: load.pipeline as usize,
        drive: load.drive,
        // On shared CPUs, a spinning load would take CPU time from the server.
        spin: if shares_cpus { Duration::ZERO } else { Plan::SPIN },
        // Nor may it take CPU time from the load beside it.
        busy_poll: asked.busy_poll && !shares_cpus && load.beside.is_none(),
        threads: cpus.len().max(1),
        cpus,
        timeout: if load.is_counted() { COUNTED_WITHIN } else { REPLY_WITHIN },
        patience: if load.is_counted() { COUNTED_WITHIN } else { Plan::PATIENCE },
        warm_up: WarmUp::steady(Duration::from_secs_f64(asked.warm_up_s)),
        until,
        // Only 127.0.0.0/8 has other addresses than this machine's.
        draws_sources: !asked.cpus.apart,
        seed,
        ..Plan::closed(target, speaks)
    }
}
