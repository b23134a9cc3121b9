//! The plan of a load, from the options of `regatta load`.

use super::{
    agents,
    args::LoadArgs,
    cpus,
    target::{nodes::nodes, url},
    threshold::Threshold,
};
use crate::output;
use anyhow::{Context, bail};
use regatta_load::{LoadProcessConfig, Plan, Until, WarmUp};
use regatta_race::processes_in_words;
use regatta_record::Heads;
use regatta_script::Workload;
use std::time::Duration;

/// The workload with the headers of --heads.
fn with_heads(workload: Workload, heads: Option<Heads>) -> anyhow::Result<Workload> {
    let Some(heads) = heads else { return Ok(workload) };
    workload.with_heads(heads).with_context(|| {
        let name = workload.name();
        format!("--heads applies only to the workloads hello and hash; this load runs {name}")
    })
}

/// The workload, with keys that all connections share if --verify was given.
fn verified(workload: Workload, verify: bool) -> anyhow::Result<Workload> {
    if !verify {
        return Ok(workload);
    }
    workload.sharing_keys().with_context(|| {
        let name = workload.name();
        format!(
            "--verify applies only to redis:// workloads with keys per connection; this load runs {name}"
        )
    })
}

/// Refuses thresholds of figures that a load of this workload cannot have.
fn check_thresholds(args: &LoadArgs, workload: &Workload) -> anyhow::Result<()> {
    if args.pid.is_empty()
        && let Some(threshold) = args.fail_if.iter().find(|threshold| threshold.needs_cost())
    {
        bail!("--fail-if '{threshold}' needs the cost of a server: name its process with --pid");
    }
    if !args.allow_gaps
        && let Some(threshold) = args.fail_if.iter().find(|threshold| threshold.is_of_refusals())
    {
        bail!(
            "--fail-if '{threshold}' is about broadcasts that a hub refuses, which is an error without \
             --allow-gaps: add --allow-gaps"
        );
    }
    if args.on.hosts.len() < 2
        && let Some(threshold) = args.fail_if.iter().find(|threshold| threshold.is_across())
    {
        bail!(
            "--fail-if '{threshold}' is about deliveries between machines, and this load comes from one: \
             name several with --on"
        );
    }
    check_stream_thresholds(args, workload)
}

/// Checks that each server has a process of its own to observe, if any is observed: the cost of some of them would
/// be taken for that of all.
fn check_pids(args: &LoadArgs) -> anyhow::Result<()> {
    let (pids, servers) = (args.pid.len(), args.nodes.len() + 1);
    if (1..servers).contains(&pids) {
        bail!(
            "{servers} servers, but {pids} --pid: name a process of each, e.g. --pid 71,72; more of them, \
             e.g. of their broker, are added"
        );
    }
    match args.pid.iter().enumerate().find(|(nth, pid)| args.pid[..*nth].contains(pid)) {
        Some((_, pid)) => bail!("--pid {pid} is given twice: name each process once"),
        None => Ok(()),
    }
}

/// Refuses thresholds of messages of streams, if this workload has none.
fn check_stream_thresholds(args: &LoadArgs, workload: &Workload) -> anyhow::Result<()> {
    let most = workload.most_messages();
    let needs = |threshold: &Threshold| threshold.needs_messages().filter(|n| most < Some(*n));
    let Some((threshold, needed)) =
        args.fail_if.iter().find_map(|threshold| Some((threshold, needs(threshold)?)))
    else {
        return Ok(());
    };
    match most {
        None => bail!(
            "--fail-if '{threshold}' is about streams of messages, and this load of {} has none: it needs \
             grpc:// with --stream, or a workload file with stream = true",
            workload.name()
        ),
        Some(most) => bail!(
            "--fail-if '{threshold}' needs streams of at least {}, and those of this load have at most {most}",
            if needed == 1 { "one message" } else { "two messages" }
        ),
    }
}

/// When the load ends.
fn until(args: &LoadArgs) -> Until {
    match (args.burst, args.requests) {
        (Some(_), _) => Until::Done,
        (None, Some(requests)) => Until::Requests(requests),
        (None, None) => Until::Elapsed(args.duration),
    }
}

/// Builds the plan, and checks the options against each other.
pub fn plan(args: &LoadArgs, processes: &LoadProcessConfig) -> anyhow::Result<Plan> {
    check_pids(args)?;
    cpus::check_allowed(&args.cpus)?;
    let target = url::Target::at(&args.url, args.workload.as_ref(), &args.connect)?;
    let target = args.http.applied(target, args.workload.as_ref())?;
    let target = args.grpc.applied(target, args.workload.as_ref())?;
    check_thresholds(args, &target.workload)?;
    let nodes = nodes(&args.nodes, &target, &args.connect)?;
    let plan = Plan {
        target: target.address,
        nodes,
        unix: target.unix.clone(),
        tls: args.tls.of(&target)?,
        workload: verified(
            args.adapter.applied(with_heads(target.workload, args.heads)?)?,
            args.verify,
        )?,
        host: target.host,
        path: target.path,
        connections: args.connections(),
        idle: args.idle,
        stalled: args.stalled,
        passing: args.passing,
        pipeline: args.pipeline(),
        drive: args.drive(),
        busy_poll: args.busy_poll,
        spin: Duration::ZERO,
        threads: args.threads.get(),
        cpus: args.cpus.clone(),
        timeout: args.timeout,
        patience: Plan::PATIENCE,
        warm_up: match (args.warm_up, args.settle) {
            (Some(length), _) => WarmUp::Fixed(length),
            (None, Some(longest)) => WarmUp::Judged { longest },
            (None, None) => WarmUp::steady(Duration::from_secs(1)),
        },
        until: until(args),
        tolerates: args.tolerated(),
        in_one_order: args.one_order,
        allows_gaps: args.allow_gaps,
        withholds: false,
        draws_sources: false,
        seconds: true,
        stages: Vec::new(),
        machines: None,
        seed: args.seed,
    };
    let plan = match args.stages.is_empty() {
        true => plan,
        false => plan.in_stages(args.stages.clone(), args.arrivals),
    };
    if !args.on.hosts.is_empty() {
        agents::check(args, &plan).with_context(|| args.url.clone())?;
        return Ok(plan);
    }
    let split = processes.split(&plan).with_context(|| args.url.clone())?;
    if split.processes > args.processes {
        output::message(&processes_in_words(plan.connections + plan.idle + plan.passing, split));
    }
    if args.verify && split.processes > 1 {
        bail!("--verify runs in one load process; use fewer connections or remove --processes");
    }
    if args.busy_poll {
        cpus::check_busy_poll(&args.cpus, split.threads, &args.pid)?;
    }
    let own_cpus = cpus::are_own(&args.cpus, split.threads, &args.pid);
    let spin = if own_cpus { Plan::SPIN } else { Duration::ZERO };
    Ok(Plan { spin, threads: split.threads, ..plan })
}
