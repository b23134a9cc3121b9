//! `regatta load`: runs the load engine alone against any server.

pub mod adapter;
mod args;
mod cpus;
mod http;
mod open;
mod plan;
mod progress;
mod result;
mod server;
mod slow;
mod text;
pub mod threshold;
pub mod tls;
pub mod url;

pub use args::LoadArgs;

use crate::{exit::Outcome, interrupt, output};
use anyhow::Context;
use plan::plan;
use regatta_host::{Meter, Observed, UsageWindow};
use regatta_judge::Settler;
use regatta_load::{Progress, run_in_processes};
use regatta_race::{WarmUpObserver, load_processes};
use regatta_record::Kind;
use result::result;
use server::Server;
use std::{env, time::Duration};

/// Loads the server.
pub fn run(args: LoadArgs) -> anyhow::Result<Outcome> {
    args.json.iter().try_for_each(|path| output::check(path))?;
    regatta_serve::raise_open_files();
    let stop = interrupt::flag()?;
    if let Some(part) = args.slow.slow {
        return slow::run(&args, part, &stop);
    }
    let binary = env::current_exe().context("cannot find the path of this program")?;
    let processes = load_processes(&binary, args.processes);
    let plan = plan(&args, &processes)?;
    let observed = args.pid.map(Observed::tree);
    if let Some(observed) = &observed {
        let pid = args.pid.unwrap_or_default();
        observed.usage().with_context(|| format!("cannot observe process {pid}"))?;
    }
    let cpus = observed.as_ref().and_then(Observed::cpus).unwrap_or(1);
    let shares = observed.as_ref().is_some_and(|observed| observed.may_run_on(&args.cpus));
    let mut settler = args.settle.map(Settler::new);
    let meter = || Meter::of(observed.iter().cloned().collect());
    let seeing = settler.as_mut().map(|settler| WarmUpObserver::new(settler, meter()));
    let window = observed.clone().map(UsageWindow::of);
    let mut server = Server { window, cpus, shares, seeing };
    let bar = progress::bar();
    let (mut replies, mut at) = (0, Duration::ZERO);
    let mut progress = |progress: &Progress| {
        let since = progress.replies.saturating_sub(replies) as f64;
        let rate = since / progress.elapsed.saturating_sub(at).as_secs_f64().max(1e-3);
        (replies, at) = (progress.replies, progress.elapsed);
        bar.set_message(progress::message(progress, rate));
    };
    let tally = run_in_processes(&plan, &processes, &mut server, &mut progress, &stop);
    bar.finish_and_clear();
    let tally = tally.with_context(|| args.url.clone())?;

    let mut result = result(&args, &plan, &tally, &server);
    result.settling = settler.and_then(|settler| settler.settling());
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&result).context("cannot encode the result")?;
        output::write(path, &format!("{json}\n"))?;
    }
    if args.json.as_deref() != Some("-".as_ref()) {
        output::print(&text::text(&args, &args.adapter.label(plan.workload.name()), &result))?;
    } else if result.thresholds.iter().any(|threshold| !threshold.passed) {
        let lines = threshold::lines(&args.fail_if, &result.thresholds);
        lines.iter().for_each(|line| output::message(&format!("regatta: fail if {line}")));
    }
    let failed = result.thresholds.iter().any(|threshold| !threshold.passed);
    Ok(match () {
        () if tally.interrupted => Outcome::Interrupted,
        () if matches!(result.verdict.kind, Kind::Disqualified | Kind::Failed) => Outcome::Failure,
        () if failed => Outcome::Failure,
        () if !open::rate_was_reached(&result) => Outcome::Failure,
        () => Outcome::Success,
    })
}
