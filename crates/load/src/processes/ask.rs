//! A plan as a message to a load process, and back.

use crate::{Error, Plan, Tls, Until, WarmUp};
use regatta_record::{Ask, AskedWindow, FORMAT, Part};
use regatta_script::Workload;
use std::time::Duration;

/// The message to the process that runs `part`. `shared` is the path of the memory that all processes
/// share.
pub(super) fn ask(plan: &Plan, part: Part, shared: Option<String>) -> Ask {
    let ns = |duration: Duration| duration.as_nanos() as u64;
    Ask {
        format: FORMAT,
        part,
        target: plan.target,
        unix: plan.unix.clone(),
        tls: plan.tls.as_ref().map(Tls::to_message),
        workload: plan.workload.to_message(),
        host: plan.host.clone(),
        path: plan.path.clone(),
        connections: plan.connections as u64,
        idle: plan.idle as u64,
        stalled: plan.stalled as u64,
        passing: plan.passing as u64,
        pipeline: plan.pipeline as u64,
        drive: plan.drive,
        spin_ns: ns(plan.spin),
        busy_poll: plan.busy_poll,
        cpus: plan.cpus.clone(),
        timeout_ns: ns(plan.timeout),
        window: match plan.until {
            Until::Elapsed(length) => AskedWindow::Elapsed { ns: ns(length) },
            Until::Requests(n) => AskedWindow::Requests { n },
            Until::Done => AskedWindow::Done,
        },
        stages: plan.stages.clone(),
        tolerates: plan.tolerates,
        withholds: plan.withholds,
        draws_sources: plan.draws_sources,
        seconds: plan.seconds,
        seed: plan.seed,
        shared,
    }
}

/// The plan that a message asks for. The leader decides on warm-up and patience.
pub(super) fn plan(ask: &Ask) -> Result<Plan, Error> {
    let refuse = |what: String| Error::Plan(what);
    if ask.format != FORMAT {
        return Err(refuse(format!(
            "the leader sent format {}, but this program reads format {FORMAT}",
            ask.format
        )));
    }
    let Part { process, processes, threads } = ask.part;
    if processes == 0 || process >= processes || threads < processes {
        return Err(refuse(format!("the leader sent an invalid part of a load: {:?}", ask.part)));
    }
    let tls = ask.tls.clone().map(Tls::of_message).transpose();
    let plan = Plan {
        target: ask.target,
        unix: ask.unix.clone(),
        tls: tls.map_err(|error| refuse(error.to_string()))?,
        workload: Workload::of_message(&ask.workload).map_err(refuse)?,
        host: ask.host.clone(),
        path: ask.path.clone(),
        connections: ask.connections as usize,
        idle: ask.idle as usize,
        stalled: ask.stalled as usize,
        passing: ask.passing as usize,
        pipeline: ask.pipeline as usize,
        drive: ask.drive,
        spin: Duration::from_nanos(ask.spin_ns),
        busy_poll: ask.busy_poll,
        threads: threads as usize,
        cpus: ask.cpus.clone(),
        timeout: Duration::from_nanos(ask.timeout_ns),
        patience: Plan::PATIENCE,
        warm_up: WarmUp::Fixed(Duration::ZERO),
        until: match ask.window {
            AskedWindow::Elapsed { ns } => Until::Elapsed(Duration::from_nanos(ns)),
            AskedWindow::Requests { n } => Until::Requests(n),
            AskedWindow::Done => Until::Done,
        },
        tolerates: ask.tolerates,
        withholds: ask.withholds,
        draws_sources: ask.draws_sources,
        seconds: ask.seconds,
        stages: ask.stages.clone(),
        seed: ask.seed,
    };
    plan.check()?;
    Ok(plan)
}
