//! `regatta load`: runs the load engine alone against any server.

pub mod adapter;
mod args;
mod cpus;
mod http;
mod open;
mod progress;
mod slow;
mod text;
pub mod tls;
pub mod url;

pub use args::LoadArgs;

use crate::{exit::Outcome, interrupt, output};
use anyhow::{Context, bail};
use regatta_host::{Meter, Observed, UsageWindow};
use regatta_judge::Settler;
use regatta_load::{
    Edges, Plan, Processes, Progress, Tally, Until, WarmUp, WarmUpProgress, run_in_processes,
};
use regatta_race::{WarmUpObserver, judge_load, load_processes, processes_in_words};
use regatta_record::{
    FORMAT, Heads, Kind, Latency, LoadOperation, LoadResult, OperationCounted, encode_histogram,
};
use regatta_script::Workload;
use std::{env, num::NonZeroU32, time::Duration};

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
    }
    Ok(match () {
        () if tally.interrupted => Outcome::Interrupted,
        () if matches!(result.verdict.kind, Kind::Disqualified | Kind::Failed) => Outcome::Failure,
        () if !open::rate_was_reached(&result) => Outcome::Failure,
        () => Outcome::Success,
    })
}

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

fn plan(args: &LoadArgs, processes: &Processes) -> anyhow::Result<Plan> {
    let target = url::Target::of(&args.url, args.workload.as_ref())?;
    let target = args.http.applied(target, args.workload.as_ref())?;
    let plan = Plan {
        target: target.address,
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
        until: match (args.burst, args.requests) {
            (Some(_), _) => Until::Done,
            (None, Some(requests)) => Until::Requests(requests),
            (None, None) => Until::Elapsed(args.duration),
        },
        tolerates: args.tolerate,
        withholds: false,
        draws_sources: false,
        seed: args.seed,
    };
    let split = processes.split(&plan).with_context(|| args.url.clone())?;
    if split.processes > args.processes {
        output::message(&processes_in_words(plan.connections + plan.idle + plan.passing, split));
    }
    if args.verify && split.processes > 1 {
        bail!("--verify runs in one load process; use fewer connections or remove --processes");
    }
    if args.busy_poll {
        cpus::check_busy_poll(&args.cpus, split.threads, args.pid)?;
    }
    let own_cpus = cpus::are_own(&args.cpus, split.threads, args.pid);
    let spin = if own_cpus { Plan::SPIN } else { Duration::ZERO };
    Ok(Plan { spin, threads: split.threads, ..plan })
}

/// Reads the server's CPU at the edges of the window, and before and after it.
struct Server<'a> {
    window: Option<UsageWindow>,
    cpus: u32,
    /// Whether the server may run on CPUs of the load.
    shares: bool,
    /// Observes the warm-up, with --settle.
    seeing: Option<WarmUpObserver<'a>>,
}

impl Edges for Server<'_> {
    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }

    fn before_window(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::before);
    }

    fn window_opens(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::opens);
    }

    fn window_closes(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::closes);
    }

    fn load_over(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::after);
    }

    fn connections_open(&mut self) {}
}

fn operation(counted: &OperationCounted, duration_s: f64) -> LoadOperation {
    let OperationCounted { operation, count, whole_run, histogram } = counted;
    LoadOperation {
        operation: operation.clone(),
        count: *count,
        rate_per_s: if duration_s > 0.0 { *count as f64 / duration_s } else { 0.0 },
        whole_run: *whole_run,
        latency_ns: Latency::of(histogram),
        histogram: encode_histogram(histogram),
    }
}

fn result(args: &LoadArgs, plan: &Plan, tally: &Tally, server: &Server) -> LoadResult {
    let duration_s = tally.window_ns as f64 / 1e9;
    let failed = tally.errors.failed();
    let cost_per = plan.workload.cost_per();
    let operations = tally.count_of(&cost_per);
    let each = |ns: u64| (operations > 0).then(|| ns as f64 / operations as f64);
    let spent = server.window.as_ref().and_then(UsageWindow::spent);
    let Server { cpus, shares, .. } = *server;
    let of_server = spent.map(|spent| (spent, cpus, shares));
    let mut result = LoadResult {
        format: FORMAT,
        requests: tally.requests,
        errors: tally.errors,
        statuses: tally.statuses.clone(),
        tolerated: args.tolerate,
        failed: failed as f64 / (failed + tally.replies).max(1) as f64,
        causes: tally.causes.clone(),
        duration_s,
        rate_per_s: if duration_s > 0.0 { tally.requests as f64 / duration_s } else { 0.0 },
        connections: args.connections() as u64,
        processes: tally.processes as u32,
        tls: tally.tls.clone(),
        idle: args.idle as u64,
        stalled: args.stalled as u64,
        passing: args.passing as u64,
        passed: tally.passed,
        target_rate_per_s: args.rate.map(NonZeroU32::get),
        open_loop: None,
        unsent: 0,
        late: 0,
        wait_ns: None,
        send_lag_ns: None,
        service_ns: None,
        instances_s: tally.instances_ns.iter().map(|&ns| ns as f64 / 1e9).collect(),
        latency_ns: Latency::of(&tally.histogram),
        operations: tally.operations.iter().map(|one| operation(one, duration_s)).collect(),
        cost_per,
        load_cpu_ns_per_request: each(tally.load_cpu_ns - tally.spun_ns),
        server_cpu_ns_per_request: spent.and_then(|spent| each(spent.cpu_ns)),
        server_unseen: spent.map(|spent| spent.unseen),
        first_wrong: tally.first_wrong.clone(),
        first_unfinished: tally.first_unfinished.clone(),
        settling: None,
        verified: tally.verified,
        verdict: judge_load(plan, tally, of_server),
        histogram: encode_histogram(&tally.histogram),
    };
    open::fill(&mut result, tally);
    result
}
