//! `regatta load`: the load engine on its own, against any server.

mod cpus;
mod http;
mod open;
mod slow;
mod text;
pub mod tls;
pub mod url;

use crate::{
    exit::Done,
    interrupt, output,
    values::{count, duration, one_of, percent, rate, workload},
};
use anyhow::Context;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_host::{Observed, Spent, Usage};
use regatta_load::{
    Arrivals, Drive, Edges, Phase, Plan, Processes, Progress, Tally, Until, WarmUp,
    run_in_processes,
};
use regatta_race::{judge_load, load_processes, processes_in_words};
use regatta_record::{
    Burst, FORMAT, Kind, Latency, LoadOperation, LoadResult, OperationCounted, encode_histogram,
};
use regatta_script::Workload;
use std::{
    env,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

/// Load a server and check every reply: in closed loop, in open loop at a rate, or by a burst.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta load line://127.0.0.1:4000
  regatta load line://127.0.0.1:4000 -c 1000 -p 16 -d 10s --pid $(pidof my-server)
  regatta load line://127.0.0.1:4000 -n 5000 -c 500 -p 3 --json -
  regatta load line://127.0.0.1:4000 -c 10 --idle 10000
  regatta load line://127.0.0.1:4000 -c 45000 --processes 3
  regatta load line://127.0.0.1:4000 --rate 20k/s
  regatta load line://127.0.0.1:4000 --rate 20k/s --arrivals constant --cpus 1
  regatta load line://127.0.0.1:4000 --burst 10x500x10
  regatta load line://127.0.0.1:4000 --workload workloads/double.toml
  regatta load http://127.0.0.1:8080/index.html -c 100 -p 16
  regatta load http://127.0.0.1:8080/ --workload hello --churn -n 1000 -c 100
  regatta load http://127.0.0.1:8080/items -X POST --body '{\"n\": 1}' --expect-status 201 \\
      -H 'Content-Type: application/json' --expect-json /n=1 --expect-header Location
  regatta load http://127.0.0.1:8080 --workload workloads/http.toml
  regatta load http://127.0.0.1:8080/ --tolerate 1%
  regatta load https://localhost:8443/ --cacert my-roots.pem
  regatta load memcached://127.0.0.1:11211 -p 16
  regatta load http://127.0.0.1:8080/ --slow headers -c 5000 -d 30s

With --rate requests are sent when they are due, whatever became of those before, and latency counts
from then: the wait for a free connection (the server's doing), the send lag (the load's), and the
service. Before a send the load spins for 50 µs if --cpus gives each of its threads a CPU, unless the
process of --pid may use one of these too; else it sleeps, and sends some 50 µs later.

What is not found: replies are not compared in the names and values of headers that nothing is
expected of, Date among them; the length that a reply to HEAD announces cannot be checked; and of
replies that are all alike, one that is sent too early looks like one that is prompt.

Exit status: 0 loaded and judged; 1 a reply was wrong or missing (with --tolerate, too many were), or
none came, or more than 1% of the
requests that a rate asked for were not sent, or timed out, or slow clients kept the server from
serving new ones, or not all of them came to stand; 2 wrong usage, or the server cannot be reached, or
does not keep connections open, or a load process failed; 130 after Ctrl-C.")]
pub struct LoadArgs {
    #[arg(help = format!("What to load: {}", url::forms()))]
    url: String,
    /// Connections open at a time
    #[arg(short, long, default_value = "64", value_name = "N")]
    connections: NonZeroUsize,
    /// Length of the measured window
    #[arg(short, long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    duration: Duration,
    /// Send exactly so many requests instead, without a warm-up
    #[arg(short = 'n', long, value_parser = count, value_name = "N", conflicts_with = "duration")]
    requests: Option<u64>,
    /// Requests outstanding on each connection, at most; 1 if absent, 3 with --burst
    #[arg(short, long, value_name = "N")]
    pipeline: Option<NonZeroUsize>,
    /// Requests per second in all, scheduled ahead (open loop), such as 20k/s; as fast as the replies
    /// come if absent
    #[arg(short, long, value_parser = rate, value_name = "R", conflicts_with_all = ["requests", "churn"])]
    rate: Option<NonZeroU32>,
    /// How the requests of --rate arrive: poisson (as from many users) or constant (evenly spaced)
    #[arg(long, default_value = "poisson", requires = "rate",
          value_parser = |text: &str| one_of(text, &Arrivals::ALL, Arrivals::name))]
    arrivals: Arrivals,
    /// Further connections that send one request when they open and are silent from then on
    #[arg(long, default_value = "0", value_name = "N", conflicts_with_all = ["requests", "churn"])]
    idle: usize,
    /// So many load instances at once, each with so many connections, each of which connects, sends
    /// so many requests and closes; tells how long each instance took
    #[arg(long, value_parser = shape_of_burst, value_name = "INSTANCESxCONNECTIONSxREQUESTS",
          conflicts_with_all = ["connections", "requests", "duration", "churn", "rate", "idle"])]
    burst: Option<Shape>,
    /// Load threads, over all processes; each process has equally many, and at least one
    #[arg(short, long, default_value = "1", value_name = "N")]
    threads: NonZeroUsize,
    /// Load processes, at most 64; more are started if this many may not open enough files
    #[arg(long, default_value = "1", value_name = "N",
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    processes: usize,
    /// How long a reply may take
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    timeout: Duration,
    /// Longest warm-up; it ends earlier once the rate is steady
    #[arg(long, default_value = "1s", value_parser = duration, value_name = "TIME")]
    warm_up: Duration,
    /// A new connection for every request, or for every conversation where a workload file has steps
    #[arg(long, conflicts_with = "pipeline")]
    churn: bool,
    /// What to send, and what must come back: to line:// double (if absent), dialogue, echo (for a
    /// server that sends back what it gets), or a workload file of your own; to http:// a GET of the
    /// path, or what the flags below say (if absent), hello, hash, or a workload file; to memcached://
    /// cache (if absent), or a workload file
    #[arg(long, value_parser = workload, value_name = "NAME|FILE.toml")]
    workload: Option<Workload>,
    /// Also measure the process PID and all below it
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Pin the load threads to these CPUs
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Never sleep inside the window: waking the load is charged to a server on the same machine.
    /// Only where no server runs on the load's CPUs, and each load thread has one
    #[arg(long)]
    busy_poll: bool,
    /// Go on after replies that are wrong or missing, and count them: the load succeeds unless more
    /// than this share of all requests fails. Without it, the first wrong reply ends the load
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    tolerate: Option<f64>,
    #[command(flatten)]
    tls: tls::TlsArgs,
    #[command(flatten)]
    slow: slow::SlowArgs,
    /// Seed of the requests, and of their moments
    #[arg(long, default_value = "1", value_name = "S")]
    seed: u64,
    /// Write the result as JSON; - for stdout instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    http: http::HttpArgs,
}

/// A burst as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    burst: Burst,
    /// Of each instance.
    connections: u32,
}

impl LoadArgs {
    fn connections(&self) -> usize {
        let in_burst = |shape: Shape| shape.burst.instances as usize * shape.connections as usize;
        self.burst.map_or(self.connections.get(), in_burst)
    }

    /// The flags that exclude each other are refused before.
    fn drive(&self) -> Drive {
        match (self.burst, self.rate) {
            (Some(shape), _) => Drive::Burst(shape.burst),
            (None, Some(rate)) => Drive::Open { rate, arrivals: self.arrivals },
            (None, None) if self.churn => Drive::Churn,
            (None, None) => Drive::Closed,
        }
    }

    fn pipeline(&self) -> usize {
        let absent = if self.burst.is_some() { 3 } else { 1 };
        self.pipeline.map_or(absent, NonZeroUsize::get)
    }
}

/// `10x500x10`: instances, connections of each, requests of each connection.
fn shape_of_burst(text: &str) -> Result<Shape, String> {
    let numbers: Option<Vec<u32>> =
        text.split('x').map(|number| number.parse().ok().filter(|n| *n > 0)).collect();
    match numbers.as_deref() {
        Some(&[instances, connections, requests]) => {
            Ok(Shape { burst: Burst { instances, requests }, connections })
        }
        _ => Err("expected instances x connections of each x requests of each connection, as \
                  10x500x10"
            .into()),
    }
}

/// Loads the server.
pub fn run(args: LoadArgs) -> anyhow::Result<Done> {
    regatta_serve::raise_open_files();
    let stop = interrupt::flag()?;
    if let Some(part) = args.slow.slow {
        return slow::run(&args, part, &stop);
    }
    let binary = env::current_exe().context("cannot tell where this program is")?;
    let processes = load_processes(&binary, args.processes);
    let plan = plan(&args, &processes)?;
    let observed = args.pid.map(Observed::tree);
    if let Some(observed) = &observed {
        let pid = args.pid.unwrap_or_default();
        observed.usage().with_context(|| format!("cannot observe process {pid}"))?;
    }
    let cpus = observed.as_ref().and_then(Observed::cpus).unwrap_or(1);
    let shares = observed.as_ref().is_some_and(|observed| observed.may_run_on(&args.cpus));
    let mut server = Server { observed, cpus, shares, opened: None, spent: None };
    let bar = progress_bar();
    let (mut replies, mut at) = (0, Duration::ZERO);
    let mut progress = |progress: &Progress| {
        let since = progress.replies.saturating_sub(replies) as f64;
        let rate = since / progress.elapsed.saturating_sub(at).as_secs_f64().max(1e-3);
        (replies, at) = (progress.replies, progress.elapsed);
        bar.set_message(message(progress, rate));
    };
    let tally = run_in_processes(&plan, &processes, &mut server, &mut progress, &stop);
    bar.finish_and_clear();
    let tally = tally.with_context(|| args.url.clone())?;

    let result = result(&args, &plan, &tally, &server);
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&result).context("the result has no JSON")?;
        output::write(path, &format!("{json}\n"))?;
    }
    if args.json.as_deref() != Some("-".as_ref()) {
        output::print(&text::text(&args, plan.workload.name(), &result))?;
    }
    Ok(match () {
        () if tally.interrupted => Done::Interrupted,
        () if matches!(result.verdict.kind, Kind::Disqualified | Kind::Failed) => Done::Short,
        () if !open::rate_was_reached(&result) => Done::Short,
        () => Done::Well,
    })
}

fn plan(args: &LoadArgs, processes: &Processes) -> anyhow::Result<Plan> {
    let asked = url::Asked::of(&args.url, args.workload.as_ref())?;
    let asked = args.http.applied(asked, args.workload.as_ref())?;
    let plan = Plan {
        target: asked.target,
        tls: args.tls.of(&asked)?,
        workload: asked.workload,
        host: asked.host,
        path: asked.path,
        connections: args.connections(),
        idle: args.idle,
        pipeline: args.pipeline(),
        drive: args.drive(),
        busy_poll: args.busy_poll,
        spin: Duration::ZERO,
        threads: args.threads.get(),
        cpus: args.cpus.clone(),
        timeout: args.timeout,
        patience: Plan::PATIENCE,
        warm_up: WarmUp::Steady { longest: args.warm_up },
        until: match (args.burst, args.requests) {
            (Some(_), _) => Until::Done,
            (None, Some(requests)) => Until::Requests(requests),
            (None, None) => Until::Elapsed(args.duration),
        },
        tolerates: args.tolerate,
        seed: args.seed,
    };
    let split = processes.split(&plan).with_context(|| args.url.clone())?;
    if split.processes > args.processes {
        eprintln!("{}", processes_in_words(plan.connections + plan.idle, split));
    }
    if args.busy_poll {
        cpus::check_busy_poll(&args.cpus, split.threads, args.pid)?;
    }
    let own_cpus = cpus::are_own(&args.cpus, split.threads, args.pid);
    let spin = if own_cpus { Plan::SPIN } else { Duration::ZERO };
    Ok(Plan { spin, threads: split.threads, ..plan })
}

/// Reads the server's CPU at the edges of the window.
struct Server {
    observed: Option<Observed>,
    cpus: u32,
    /// Whether the load may run on some of them.
    shares: bool,
    opened: Option<Usage>,
    spent: Option<Spent>,
}

impl Edges for Server {
    fn window_opens(&mut self) {
        self.opened = self.observed.as_ref().and_then(|observed| observed.usage().ok());
    }

    fn window_closes(&mut self) {
        let closed = self.observed.as_ref().and_then(|observed| observed.usage().ok());
        self.spent = self.opened.as_ref().zip(closed).map(|(opened, closed)| closed.since(opened));
    }

    fn connections_open(&mut self) {}
}

fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {elapsed:>3}  {wide_msg}");
    bar.set_style(style.expect("the template is right"));
    bar
}

/// `rate` is the replies per second since the last message.
fn message(progress: &Progress, rate: f64) -> String {
    let phase = match progress.phase {
        Phase::Starting | Phase::Connecting => "connecting",
        Phase::WarmingUp => "warming up",
        Phase::Measuring => "measuring",
        Phase::Draining | Phase::Ended => "stopping",
    };
    let (open, rate) = (HumanCount(progress.open as u64), HumanCount(rate.round() as u64));
    format!("{phase} · {open} connections · {rate}/s · {} errors", progress.errors)
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
    let spent = server.spent.as_ref();
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
        first_wrong: tally.first_wrong.clone(),
        first_unfinished: tally.first_unfinished.clone(),
        verdict: judge_load(plan, tally, of_server),
        histogram: encode_histogram(&tally.histogram),
    };
    open::fill(&mut result, tally);
    result
}
