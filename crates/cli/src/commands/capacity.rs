//! `regatta capacity`: finds how many clients, or requests per second, a server sustains within a
//! latency limit.

use crate::{
    commands::{
        load::{
            OnArgs, connect,
            target::{adapter::AdapterArgs, grpc::GrpcArgs, http::over_http2, tls::TlsArgs, url},
            threshold::without_limit,
        },
        race::known,
    },
    exit::Outcome,
    interrupt,
    options::values::{duration, http_path, one_of, small_count, workload},
    output,
    screen::Screen,
};
use anyhow::{Context, bail};
use regatta_host::read_setup;
use regatta_load::{Arrivals, Plan};
use regatta_race::{
    Events,
    capacity::{self, CapacityError, CapacityTarget, Question},
};
use regatta_record::{Asked, Capacity, CapacityLoad, Event, Form, Happened, Limit, Setup};
use regatta_report::capacity::unit;
use regatta_script::Workload;
use std::{
    env, fs, mem,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};

/// Find how many clients, or requests per second, a server sustains while a latency percentile stays
/// within a limit. The load steps up until the limit is exceeded, then the boundary is bisected, and
/// both sides of it are repeated several times. The result is an interval.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("server").required(true))]
#[command(after_help = "Examples:
  regatta capacity line://127.0.0.1:4000 --limit p95=250ms
  regatta capacity line://127.0.0.1:4000 --limit p99=10ms --by rate \\
      --pid $(pidof my-server)
  regatta capacity http://127.0.0.1:8080/ --limit p99=10ms --by rate
  regatta capacity http://10.0.0.5:8080/ --limit p99=10ms --on gen1,gen2
  regatta capacity --contender epoll --limit p95=50ms --in-flight 4
  regatta capacity --contender 'mine=./mine {port}' --limit p99=5ms --by rate
  regatta capacity --contender 'mine=./mine {port}' --http / --limit p99=5ms
  regatta capacity --contender nginx --workload hello --http2 --limit p99=5ms

With a URL, every step opens new connections to the same server. With --contender, every step
starts the server again. With --on, the figures are those of all machines together.

Exit status: 0 found; 1 no capacity found (the lowest level already fails, or the load itself was
the bottleneck from the start), or the ends of the interval could not be verified; 2 wrong usage, or
the server cannot be reached, or a machine of --on is absent or was lost; 130 after Ctrl-C, with the
result up to then.")]
pub struct CapacityArgs {
    #[arg(group = "server", help = format!("A server that is already running: {}", url::forms()))]
    url: Option<String>,
    /// Start this server again for every step instead: a contender by name, or your own
    #[arg(long, group = "server", value_name = "NAME | 'NAME=CMD {port}'", conflicts_with = "on")]
    contender: Option<String>,
    /// The latency limit: a percentile (p50, p90, p95, p99 or p99.9) and a time
    #[arg(short, long, value_parser = limit, value_name = "pN=TIME")]
    limit: Limit,
    /// What to increase: clients in a closed loop, or the rate of an open loop
    #[arg(long, default_value = "clients", value_enum)]
    by: By,
    /// With --by clients: maximum requests in flight over all clients. Default: no limit
    #[arg(long, value_name = "N")]
    in_flight: Option<NonZeroU32>,
    /// The first level. With --by clients it is also the increment to the next level; with --by rate
    /// each level is twice the one before
    #[arg(long, default_value = "1000", value_parser = small_count, value_name = "N")]
    step: NonZeroU32,
    /// The highest level to try. Default: 20,000 clients, or a rate of 10M/s
    #[arg(long, value_parser = small_count, value_name = "N")]
    max: Option<NonZeroU32>,
    /// With --by rate: number of connections that share the rate
    #[arg(short, long, value_parser = small_count, value_name = "N")]
    connections: Option<NonZeroU32>,
    /// Maximum requests in flight on each connection. Default: 1 with --by clients, 16 with --by rate
    #[arg(short, long, value_name = "N")]
    pipeline: Option<NonZeroU32>,
    /// With --by rate: how requests arrive, poisson or constant. Default: poisson
    #[arg(long, value_parser = |text: &str| one_of(text, &Arrivals::ALL, Arrivals::name))]
    arrivals: Option<Arrivals>,
    /// What to send, and which replies to expect. line://: double (default), dialogue, echo, or your
    /// own workload file. http://: a GET of the path (default), hello, hash, or a workload file.
    /// memcached://: cache (default), or a workload file. redis://: shard (default), or a workload
    /// file. ws://: hub (broadcasts; default), or hub-echo. grpc://: the empty message (default), or a
    /// workload file
    #[arg(long, value_parser = workload, value_name = "NAME|FILE.toml")]
    workload: Option<Workload>,
    /// With --contender: send GET requests of this path, e.g. /items; any status from 200 to 299 is right
    #[arg(long, value_name = "PATH", value_parser = http_path, requires = "contender",
          conflicts_with = "workload")]
    http: Option<Workload>,
    /// Speak HTTP/2, as `regatta load --http2` does. --pipeline is the number of streams on each
    /// connection
    #[arg(long)]
    http2: bool,
    #[command(flatten)]
    adapter: AdapterArgs,
    /// Length of a step's measurement window. Default: 1s, or twice the limit if that is longer. It is
    /// extended if the percentile needs more replies
    #[arg(long, value_parser = duration, value_name = "TIME")]
    window: Option<Duration>,
    /// Warm-up of a step; raised to slightly more than the limit if it is shorter. Default: the time
    /// that --settle found, and at least 300ms
    #[arg(long, value_parser = duration, value_name = "TIME")]
    warm_up: Option<Duration>,
    /// Maximum time to observe the server before the first step, from a fresh start, to find when its
    /// CPU per request is steady; every step then warms up for that long. Default: 30s with --contender
    /// or --pid; 0s: no observation
    #[arg(long, value_parser = duration, value_name = "TIME", conflicts_with = "warm_up")]
    settle: Option<Duration>,
    /// Stop the search after this time, with the result up to then
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "15m")]
    time_limit: Duration,
    /// Timeout of a reply. Default: 5s, or twice the limit if that is longer
    #[arg(long, value_parser = duration, value_name = "TIME")]
    timeout: Option<Duration>,
    /// Load threads. Default: one for each CPU of the load with --contender, otherwise 1
    #[arg(short, long, value_name = "N", conflicts_with = "on")]
    threads: Option<NonZeroUsize>,
    /// CPUs of the load threads
    #[arg(long, value_name = "CPUS", value_delimiter = ',', conflicts_with = "on")]
    cpus: Option<Vec<u32>>,
    /// With --contender: CPUs of the server
    #[arg(long, value_name = "CPUS", value_delimiter = ',', requires = "contender")]
    server_cpus: Option<Vec<u32>>,
    /// Also measure the process PID and its descendants: memory, and whether server or load was the
    /// bottleneck
    #[arg(long, value_name = "PID", conflicts_with = "contender")]
    pid: Option<u32>,
    #[command(flatten)]
    on: OnArgs,
    #[command(flatten)]
    tls: TlsArgs,
    /// Seed of the requests
    #[arg(long, default_value = "1", value_name = "S")]
    seed: u64,
    /// Write the result as JSON; - for stdout instead of the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the result as a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// With --html: a result of --json to show on the same page, e.g. of another server; it must have the
    /// same --by, --limit and --http2. Repeatable
    #[arg(long, value_name = "FILE", requires = "html")]
    compare: Vec<PathBuf>,
    /// Allow a debug build to start a contender: for tests of regatta itself
    #[arg(long, hide = true)]
    debug_build: bool,
}

/// The quantity that the search increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Connections in a closed loop
    Clients,
    /// Requests per second in an open loop
    Rate,
}

/// Parses a limit such as `p95=250ms`.
fn limit(text: &str) -> Result<Limit, String> {
    const KNOWN: [(&str, f64); 5] =
        [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
    let form = "expected a percentile and a time, e.g. p95=250ms";
    let is_known = |name: &str| KNOWN.iter().find(|(known, _)| *known == name.trim());
    let Some((name, time)) = text.split_once(['=', '>']) else {
        return Err(match is_known(text) {
            Some(_) => without_limit(text),
            None => form.into(),
        });
    };
    let known = is_known(name);
    let (_, quantile) = *known.ok_or_else(|| {
        let names = KNOWN.map(|(name, _)| name).join(", ");
        format!("{name:?} is not one of the percentiles {names}; write it as p95=250ms")
    })?;
    let time = crate::options::values::limit(time.trim())?;
    if time > Plan::MAX_TIMEOUT / 2 {
        return Err(format!("{time:?} is too long; expected at most {:?}", Plan::MAX_TIMEOUT / 2));
    }
    Ok(Limit { quantile, ns: time.as_nanos() as u64 })
}

/// Searches and prints the result.
pub fn run(args: CapacityArgs) -> anyhow::Result<Outcome> {
    args.json.iter().chain(&args.html).try_for_each(|path| output::check(path))?;
    regatta_serve::raise_open_files();
    let stop = interrupt::flag()?;
    let binary = env::current_exe().context("cannot find the path of this program")?;
    let setup = read_setup(env!("CARGO_PKG_VERSION"), None, env::args().collect());
    let asked = args.contender.as_deref().map(|name| ask(&args, name, &setup)).transpose()?;
    let question = question(&args, asked.as_ref())?;
    let others = others(&args, &question)?;
    check_on(&args)?;
    let place = match (&asked, &args.url) {
        (Some(asked), _) => CapacityTarget::Contender { asked, binary: &binary },
        (None, Some(url)) => {
            let target = url::Target::of(url, args.workload.as_ref())?;
            let target = GrpcArgs::default().applied(target, args.workload.as_ref())?;
            let target = if args.http2 { over_http2(target)? } else { target };
            let tls = args.tls.of(&target)?;
            let url::Target { address: addr, workload, host, path, .. } = target;
            let workload = args.adapter.applied(workload)?;
            let (url, pid, binary) = (url.clone(), args.pid, binary.as_path());
            CapacityTarget::Address { url, addr, tls, workload, host, path, pid, binary }
        }
        (None, None) => bail!("give a URL, or --contender"),
    };
    let mut fleet = match connect(&args.on, &stop) {
        Err(_) if stop.load(Ordering::Relaxed) => return Ok(Outcome::Interrupted),
        fleet => fleet?,
    };
    let mut screen = Screen::new(Vec::new());
    let mut show = |event: &Event| screen.show(event);
    let mut events = Events::shown(&mut show);
    let outcome = match capacity::run(&question, &place, fleet.as_mut(), &mut events, &stop) {
        Ok(found) => {
            let contender = asked.as_ref().and_then(|asked| asked.entries.first().cloned());
            let found = Capacity { setup: Some(setup), contender, ..found };
            conclude(&args, found, others, &mut events, stop.load(Ordering::Relaxed))
        }
        Err(error) => {
            let outcome = match error {
                CapacityError::NotStarted(_) => Outcome::Failure,
                _ => Outcome::Error,
            };
            let url = args.url.iter().map(|url| format!("{url}: ")).collect::<String>();
            let because = format!("{url}{:#}", anyhow::Error::from(error));
            events.emit(Happened::Failed { because });
            outcome
        }
    };
    screen.printed()?;
    Ok(outcome)
}

/// Checks that every machine of --on has work at each level.
fn check_on(args: &CapacityArgs) -> anyhow::Result<()> {
    let machines = args.on.hosts.len();
    let few = |option: &str, value: NonZeroU32| {
        format!(
            "--on has {machines} machines, so {option} must be at least {machines}, not {value}: each \
             needs a connection that sends requests"
        )
    };
    let least = [
        (By::Clients, "--step", Some(args.step)),
        (By::Clients, "--in-flight", args.in_flight),
        (By::Rate, "--connections", args.connections),
    ];
    let too_few = least.into_iter().find_map(|(by, option, value)| {
        let value = value.filter(|value| by == args.by && (value.get() as usize) < machines)?;
        Some(few(option, value))
    });
    too_few.map_or(Ok(()), |because| bail!(because))
}

/// Saves and emits the result.
fn conclude(
    args: &CapacityArgs,
    found: Capacity,
    others: Vec<Capacity>,
    events: &mut Events<'_>,
    interrupted: bool,
) -> Outcome {
    let (to_stdout, file) = match args.json.as_deref() {
        Some(path) if path == Path::new("-") => (Form::Json, None),
        file => (Form::Text, file),
    };
    let json = regatta_report::capacity_json(&found);
    let mut saved = file.map_or(Ok(()), |path| output::write(path, &json));
    if let Some(path) = &args.html {
        let all: Vec<Capacity> = [found.clone()].into_iter().chain(others).collect();
        saved = saved.and(output::write(path, &regatta_page::capacity_page(&all)));
    }
    let nothing = found.clients.or(found.rate_per_s).is_none() || found.unverified.is_some();
    events.emit(Happened::CapacityFound { found: Box::new(found), stdout: to_stdout });
    if let Err(error) = &saved {
        events.emit(Happened::Failed { because: format!("{error:#}") });
    }
    match () {
        () if saved.is_err() => Outcome::Error,
        () if interrupted => Outcome::Interrupted,
        () if nothing => Outcome::Failure,
        () => Outcome::Success,
    }
}

/// Reads the results of `--compare`.
fn others(args: &CapacityArgs, question: &Question) -> anyhow::Result<Vec<Capacity>> {
    if args.html.as_deref() == Some(Path::new("-")) {
        bail!("--html expects a file: stdout has the text; give a name, e.g. --html capacity.html");
    }
    let read = |path: &PathBuf| -> anyhow::Result<Capacity> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let found: Capacity = serde_json::from_str(&text).with_context(|| {
            format!("{} is not a result of `regatta capacity --json`", path.display())
        })?;
        let same_load = mem::discriminant(&found.load) == mem::discriminant(&question.load);
        if !same_load || found.limit != question.limit {
            bail!(
                "{} has {} at {}, and this search {} at {}; --compare expects the same --by and --limit",
                path.display(),
                unit(&found.load),
                found.limit,
                unit(&question.load),
                question.limit
            );
        }
        if found.over.is_some() != args.http2 {
            let (that, this) = if args.http2 { ("is not", "is") } else { ("is", "is not") };
            bail!(
                "{} {that} a result over HTTP/2, and this search {this}; --compare expects the same",
                path.display()
            );
        }
        Ok(found)
    };
    args.compare.iter().map(read).collect()
}

fn ask(args: &CapacityArgs, contender: &str, setup: &Setup) -> anyhow::Result<Asked> {
    if cfg!(debug_assertions) && !args.debug_build {
        bail!(
            "this is a debug build, whose servers are slow; run `cargo run --release -- capacity`"
        );
    }
    let cpus = [args.server_cpus.clone(), args.cpus.clone()];
    if args.adapter.is_given() {
        bail!("--adapter applies only to a URL; the protocol of a contender is in its manifest");
    }
    let workload = args.http.clone().or_else(|| args.workload.clone()).unwrap_or_default();
    let workload = (&workload, args.http2.then_some("http2"));
    let asked = capacity::alone(contender, workload, cpus, &known()?, setup.clone())?;
    if asked.entries.iter().any(|entry| entry.running.is_some()) {
        let url = contender.split_once('=').map_or(contender, |(_, url)| url);
        bail!(
            "a contender of a capacity search is restarted for every step, and this one already runs; \
             leave out --contender: `regatta capacity {url}`"
        );
    }
    Ok(asked)
}

fn question(args: &CapacityArgs, asked: Option<&Asked>) -> anyhow::Result<Question> {
    let twice = Duration::from_nanos(args.limit.ns) * 2;
    let timeout = args.timeout.unwrap_or(Duration::from_secs(5).max(twice));
    if timeout <= twice / 2 {
        let limit = twice / 2;
        bail!(
            "--timeout {timeout:?} must be longer than the limit of {limit:?}; otherwise every late \
             reply is an error"
        );
    }
    let (load, max) = match args.by {
        By::Clients => {
            let by_rate = [
                ("--connections", args.connections.is_some()),
                ("--arrivals", args.arrivals.is_some()),
            ];
            refuse(&by_rate, "--by rate")?;
            let pipeline = args.pipeline.map_or(1, NonZeroU32::get);
            let in_flight = args.in_flight.map(NonZeroU32::get);
            (CapacityLoad::Clients { pipeline, in_flight }, 20_000)
        }
        By::Rate => {
            refuse(&[("--in-flight", args.in_flight.is_some())], "--by clients")?;
            if args.max.is_some_and(|max| max.get() > Plan::MAX_RATE) {
                bail!(
                    "--max is too high: expected a rate of at most {} per second",
                    Plan::MAX_RATE
                );
            }
            let pipeline = args.pipeline.map_or(16, NonZeroU32::get);
            let connections = args.connections.map_or(64, NonZeroU32::get);
            let arrivals = args.arrivals.unwrap_or_default();
            (CapacityLoad::Rate { connections, pipeline, arrivals }, Plan::MAX_RATE)
        }
    };
    let cpus = asked.map(|asked| asked.cpus.load.clone()).or(args.cpus.clone()).unwrap_or_default();
    let threads = match (args.threads, asked) {
        (Some(threads), _) => threads.get(),
        (None, Some(_)) => cpus.len().max(1),
        (None, None) => 1,
    };
    let is_observed = asked.is_some() || args.pid.is_some();
    if args.settle.is_some_and(|settle| !settle.is_zero()) && !is_observed {
        bail!(
            "--settle observes the server's CPU: name its process with --pid, or use --contender"
        );
    }
    let settle = match args.warm_up {
        None if is_observed => args.settle.unwrap_or(Duration::from_secs(30)),
        _ => Duration::ZERO,
    };
    Ok(Question {
        load,
        limit: args.limit,
        step: args.step.get(),
        max: args.max.map_or(max, NonZeroU32::get),
        window: args.window.unwrap_or(Duration::from_secs(1).max(twice)),
        warm_up: args.warm_up.unwrap_or(Duration::from_millis(300)),
        settle,
        time_limit: args.time_limit,
        timeout,
        threads,
        cpus,
        seed: args.seed,
    })
}

/// Refuses options that apply only to the other kind of search.
fn refuse(given: &[(&str, bool)], belongs_to: &str) -> anyhow::Result<()> {
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => bail!("{name} applies only with {belongs_to}; remove it"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_percentile_and_a_time() {
        assert_eq!(limit("p95=250ms"), Ok(Limit { quantile: 0.95, ns: 250_000_000 }));
        assert_eq!(limit("p95 > 250ms"), limit("p95=250ms"));
        assert_eq!(limit("p99.9=1s"), Ok(Limit { quantile: 0.999, ns: 1_000_000_000 }));
        for (text, expected) in [
            ("250ms", "e.g. p95=250ms"),
            ("p95", "the shell redirected the output to a file"),
            ("p96=250ms", "p50, p90, p95, p99, p99.9"),
            ("p95=250", "unit"),
            ("p95=0ms", "above zero"),
            ("p95=2h", "too long"),
        ] {
            let error = limit(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
