//! `regatta load`: runs the load engine alone against any server.

mod agents;
mod args;
mod cpus;
mod on;
mod open;
mod plan;
mod progress;
mod result;
mod seconds;
mod server;
mod slow;
mod stages;
pub mod target;
mod text;
pub mod threshold;

pub use args::LoadArgs;
pub use on::{OnArgs, connect};

use crate::{exit::Outcome, interrupt, output};
use anyhow::{Context, bail};
use plan::plan;
use progress::Live;
use regatta_host::{Meter, ObservedProcesses, UsageWindow};
use regatta_judge::Settler;
use regatta_load::{LoadProcessConfig, Progress, Watch};
use regatta_race::{WarmUpObserver, load_processes};
use regatta_record::{Kind, LoadResult};
use result::result;
use seconds::{Seconds, SeriesFile, Whole};
use server::Server;
use std::{env, sync::atomic::Ordering::Relaxed};

/// How load processes are started on this machine: at least this many.
pub fn load_processes_here(least: usize) -> anyhow::Result<LoadProcessConfig> {
    let binary = env::current_exe().context("cannot find the path of this program")?;
    Ok(load_processes(&binary, least))
}

/// Loads the server.
pub fn run(args: LoadArgs) -> anyhow::Result<Outcome> {
    let series = args.series.as_ref().map(SeriesFile::path);
    let files = [args.json.as_deref(), args.hdr_log.as_deref(), series];
    files.into_iter().flatten().try_for_each(output::check)?;
    regatta_serve::raise_open_files();
    let stop = interrupt::flag()?;
    if let Some(part) = args.slow.slow {
        return slow::run(&args, part, &stop);
    }
    let processes = load_processes_here(args.processes)?;
    let plan = plan(&args, &processes)?;
    let mut fleet = match connect(&args.on, &stop) {
        Err(_) if stop.load(Relaxed) => {
            output::message("interrupted before the measurement");
            return Ok(Outcome::Interrupted);
        }
        fleet => fleet?,
    };
    let observed = observe(&args.pid)?;
    let cpus = ObservedProcesses::cpus_of(&observed).unwrap_or(1);
    let shares = fleet.is_none() && observed.iter().any(|one| one.may_run_on(&args.cpus));
    let mut settler = args.settle.map(Settler::new);
    let meter = || Meter::of(observed.clone());
    let seeing = settler.as_mut().map(|settler| WarmUpObserver::new(settler, meter()));
    let windows = observed.iter().cloned().map(UsageWindow::of).collect();
    let by_agents = fleet.is_some();
    let mut server = Server { windows, cpus, shares, by_agents, seeing };
    let mut live = Live::new(Seconds::new(args.hdr_log.is_some()));
    let mut progress = |progress: &Progress| live.show(progress);
    let watch = Watch { observer: &mut server, progress: &mut progress, stop: &stop };
    let done = agents::run(fleet.as_mut(), &plan, &processes, watch);
    let (tally, agents) = match done {
        Ok(done) => done,
        Err(error) => {
            live.clear();
            agents::void(&args, &error)?;
            return Err(error.context(args.url));
        }
    };

    let window_s = tally.window_ns as f64 / 1e9;
    live.end(window_s);
    let mut result = result(&args, &plan, &tally, &server, agents.as_ref());
    result.settling = settler.and_then(|settler| settler.settling());
    let Live { seconds, .. } = live;
    write_files(&args, &result, &seconds, window_s)?;
    if args.json.as_deref() != Some("-".as_ref()) {
        output::print(&text::text(&args, &args.adapter.label(plan.workload.name()), &result))?;
    } else if result.thresholds.iter().any(|threshold| !threshold.passed) {
        let lines = threshold::lines(&args.fail_if, &result.thresholds);
        lines.iter().for_each(|line| output::message(&format!("regatta: fail if {line}")));
    }
    if tally.interrupted {
        output::message(&match tally.window_ns {
            0 => "interrupted before the measurement".to_owned(),
            _ => format!("interrupted after {window_s:.2} s of the measurement"),
        });
    }
    Ok(outcome(tally.interrupted, &result))
}

/// The processes of the server, each with its descendants.
fn observe(pids: &[u32]) -> anyhow::Result<Vec<ObservedProcesses>> {
    let observed: Vec<_> = pids.iter().map(|pid| ObservedProcesses::tree(*pid)).collect();
    for (pid, one) in pids.iter().zip(&observed) {
        one.usage().with_context(|| format!("cannot observe process {pid}"))?;
        let own = one.pids();
        if let Some(inner) = pids.iter().find(|inner| *inner != pid && own.contains(inner)) {
            bail!(
                "--pid {inner} is a descendant of process {pid}, so it would be measured twice: name only one \
                 of them"
            );
        }
    }
    Ok(observed)
}

/// Writes the files that were asked for.
fn write_files(
    args: &LoadArgs,
    result: &LoadResult,
    seconds: &Seconds,
    window_s: f64,
) -> anyhow::Result<()> {
    if let Some(file) = &args.series {
        seconds.write_series(file, window_s)?;
    }
    if let Some(path) = &args.hdr_log {
        seconds.write_hdr_log(path, window_s, &Whole::all(result))?;
    }
    if let Some(path) = &args.json {
        output::write(path, &regatta_report::pretty(result))?;
    }
    Ok(())
}

/// How the command ends with this result.
fn outcome(interrupted: bool, result: &LoadResult) -> Outcome {
    let failed = result.thresholds.iter().any(|threshold| !threshold.passed);
    match () {
        () if interrupted => Outcome::Interrupted,
        () if matches!(result.verdict.kind(), Kind::Disqualified | Kind::Failed) => {
            Outcome::Failure
        }
        () if failed => Outcome::Failure,
        () if !open::rate_was_reached(result) => Outcome::Failure,
        () => Outcome::Success,
    }
}
