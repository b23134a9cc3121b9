//! `regatta race`: prepares, runs, judges and saves a race. Its terminal output is derived from the
//! events.

mod own;
mod server;

use crate::{
    exit::Outcome,
    interrupt,
    live::{self, LivePage},
    options::{
        formats::Formats,
        values::{columns, duration, percent, schedule},
    },
    output, own_session,
    screen::Screen,
};
use anyhow::{Context, bail};
use own::OwnArgs;
use regatta_fleet::{Error as FleetError, Site};
use regatta_host::read_setup;
use regatta_judge::judge;
use regatta_race::{
    AgentSite, Changes, Contender, Contest, Events, Machines, OwnRace, Server, Store, built_in,
    check_can_resume, fingerprint, peers_folder, pilot, plan, prepare, run as run_race,
    split_loads, unix_ms,
};
use regatta_record::{
    Asked, Decision, Event, Figure, Form, Gate, Happened, Heads, Judged, Kind, RaceHeader,
    Schedule, ServerMachine, Setup, Summary, Unknown,
};
use server::{ServerArgs, entered};
use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Race contenders under one or more loads: all alive together, loaded in turns, every reply checked, and
/// a verdict for every cell. Without an argument, it runs a quick race of the built-in models and of
/// every peer found here. With two or more commands, it compares these servers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta race
  regatta race './old --port {port}' './new --port {port}' --http /items
  regatta race './new --port {port}' http://127.0.0.1:8080/items
  regatta race nginx node --workload hello --http2 -p 16
  regatta race double --only epoll,green,null --rounds 10
  regatta race double --dry-run
  regatta race --contender 'mine=./my-server --port {port}' --baseline mine
  regatta race --only epoll,green,null --precision 0.5% --time 5m
  regatta race './old {port}' './new {port}' --http / --fail-over 5%
  regatta race --contender 'mine=./my-server --port {port}' --http / -c 256
  regatta race --resume results/20260101-120000-double

Exit status: 0 judged; 1 a cell failed, was disqualified or has no cost, the
--precision was not reached and there is no --time, or --fail-over found
something more expensive; 2 wrong usage, an unusable machine, or a result that
could not be saved; 3 --fail-over is not decided, because an interval contains
the limit; 130 after Ctrl-C, with all finished lives and rounds saved.")]
pub struct RaceArgs {
    #[arg(
        value_name = "RACE | SERVER SERVER…",
        help = format!(
            "A bundled race by name ({}), or the path of a race file. Or two or more servers to compare: \
             commands with {{port}} ('./server --port {{port}}', 'PORT={{port}} ./server', \
             'name=COMMAND'), images ('image:NAME COMMAND {{port}}'), URLs of servers that already run on \
             this machine (http://127.0.0.1:8080/items, 'name=URL'), or contenders; the first is the \
             baseline. Default: quick",
            regatta_race::bundled::names()
        )
    )]
    race: Vec<String>,
    #[command(flatten)]
    own: OwnArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Number of lives of a duel, or of rounds: in each, every contender is started, and raced under every
    /// load. Replaces the --precision of the race; beside --precision, it is the maximum
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Run lives or rounds until every ratio to the baseline is known to ± this, e.g. 2%, at most --rounds
    /// (default 50), and none after --time. Default of `quick` and of servers to compare: 1% in 60s
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    precision: Option<f64>,
    /// Run lives or rounds until this time, and start none after it, except the first three lives or five rounds, and
    /// lives that replace disturbed ones. A --precision that is not reached by then is no failure
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// rounds: one contender after the other, each from its start to its stop. duels: all are alive together,
    /// and the load drives one at a time in short slices, while the others are frozen. Default: duels
    #[arg(long, value_name = "duels|rounds", value_parser = schedule)]
    schedule: Option<Schedule>,
    /// Length of a slice of a duel
    #[arg(long, value_name = "TIME", value_parser = duration)]
    slice: Option<Duration>,
    /// Fail (exit status 1) if, with 95% confidence, a contender's cost exceeds the baseline's by more
    /// than this, e.g. 5%; exit with status 3 if an interval contains the limit
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_over: Option<f64>,
    /// Length of the measurement window of a round. Duels have slices instead
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// Maximum time to observe each contender, in its first life or before its first round, until its cost
    /// is steady; later ones warm up 1.25 times as long, one that is compiled at least a third of this. 0s: no
    /// observation
    #[arg(long, value_name = "TIME", value_parser = duration)]
    settle: Option<Duration>,
    /// Seed of the order and of the requests. Default: random, and recorded
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Race only these contenders
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    only: Vec<String>,
    /// Race all contenders except these
    #[arg(long, value_name = "C", value_delimiter = ',')]
    skip: Vec<String>,
    /// The contender to which the others are compared
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Add your own contender; repeatable
    #[arg(long = "contender", value_name = "'NAME=CMD {port}'")]
    contenders: Vec<String>,
    /// CPUs of the contender, e.g. 0 or 0,1
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    server_cpus: Option<Vec<u32>>,
    /// CPUs of the load
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    load_cpus: Option<Vec<u32>>,
    /// Let the load sleep when it is idle. By default it polls, because the cost of waking it is
    /// charged to the server
    #[arg(long)]
    load_sleeps: bool,
    /// Request headers of hello and hash: varied as those of real users, or identical
    #[arg(long, value_name = "varied|identical")]
    heads: Option<Heads>,
    /// Result directory. Default: results/TIME-RACE
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Continue the race in this result directory with its recorded options. Refused if regatta, a
    /// contender, the kernel or the CPUs have changed since
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "race", "rounds", "window", "settle", "seed", "only", "skip", "baseline", "contenders",
        "server_cpus", "load_cpus", "load_sleeps", "heads", "precision", "fail_over", "time",
        "schedule", "slice", "OwnArgs",
    ])]
    resume: Option<PathBuf>,
    /// Write the judged summary as JSON; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table as Markdown; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Show these columns in the tables, in this order. Default: those that fit the terminal
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = columns())]
    columns: Vec<String>,
    /// Serve the report page while the race runs, on a port of 127.0.0.1, e.g. 8080, or on an address,
    /// e.g. 127.0.0.1:0; 0 chooses a free port. Read-only. Nothing is sent while a load is measured
    #[arg(long, value_name = "ADDR", value_parser = live::address)]
    live: Option<SocketAddr>,
    /// Print the plan without starting anything: contenders, CPUs, loads, rounds, and how long the race
    /// takes. With --json, write the plan as JSON. With --server, an agent there describes the machine
    #[arg(long, conflicts_with_all = [
        "resume", "md", "live", "bmf", "gha_benchmark", "prometheus", "hdr_log",
    ])]
    dry_run: bool,
    /// Allow a debug build, whose figures are meaningless: for tests of regatta itself
    #[arg(long, hide = true)]
    debug_build: bool,
    // Last, because its heading would also apply to what follows.
    #[command(flatten)]
    formats: Formats,
}

/// Runs the race.
pub fn run(args: RaceArgs) -> anyhow::Result<Outcome> {
    if args.dry_run {
        return dry_run(&args);
    }
    if cfg!(debug_assertions) && !args.debug_build {
        bail!(
            "this is a debug build, whose figures are meaningless; run `cargo run --release -- race`"
        );
    }
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdout(&args.json) && is_stdout(&args.md) {
        bail!("--json and --md cannot both write to stdout; write one of them to a file");
    }
    args.json.iter().chain(&args.md).try_for_each(|path| output::check(path))?;
    args.formats.check()?;
    // Debug builds only race in tests, beside one another.
    if !args.debug_build {
        own_session::highest_priority()?;
    }
    regatta_serve::raise_open_files();
    let stop = interrupt::flag()?;
    let mut screen = Screen::new(args.columns.clone());
    let mut page = args.live.map(LivePage::start).transpose()?;
    let mut show = |event: &Event| {
        screen.show(event);
        page.iter_mut().for_each(|page| page.show(event));
    };
    let mut events = Events::kept(&mut show);
    let outcome = race(&args, &mut events, &stop).unwrap_or_else(|error| {
        events.emit(Happened::Failed { because: format!("{error:#}") });
        Outcome::Error
    });
    let kept = events.sync();
    page.into_iter().for_each(LivePage::finish);
    screen.printed()?;
    kept.context("the result was saved, but some of its events were not")?;
    Ok(outcome)
}

/// Prints the plan of a race. Starts no program, not even to ask for its version, except the agent on the server machine.
fn dry_run(args: &RaceArgs) -> anyhow::Result<Outcome> {
    let mut known = known()?;
    let mut contest = contest(args, &known)?;
    let manifests = known.iter_mut().map(|one| &mut one.manifest).chain(&mut contest.own);
    manifests.for_each(|manifest| manifest.version.clear());
    let stop = interrupt::flag()?;
    let (server, machine) = match args.server.connect(&stop) {
        Err(error) if matches!(error.downcast_ref(), Some(FleetError::Interrupted)) => {
            return Ok(Outcome::Interrupted);
        }
        connected => connected?.unzip(),
    };
    // It is known now, and its agent is not needed any longer.
    drop(server);
    let asked = prepare(&contest, &changes(args, machine), &known, setup())?;
    let plan = plan(&contest, asked)?;
    match &args.json {
        Some(path) => output::write(path, &regatta_report::plan_json(&plan))?,
        None => output::print(&regatta_report::plan_text(&plan, output::width()))?,
    }
    Ok(Outcome::Success)
}

fn race(
    args: &RaceArgs,
    events: &mut Events<'_>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Outcome> {
    let binary = env::current_exe().context("cannot find the path of this program")?;
    let begun = match &args.resume {
        Some(dir) => resume(args, dir, (&binary, stop), events).map(Some),
        None => begin(args, &binary, events, stop),
    };
    let begun = match begun {
        Err(error) if matches!(error.downcast_ref(), Some(FleetError::Interrupted)) => None,
        begun => begun?,
    };
    let Some((mut store, asked, server)) = begun else {
        events.emit(Happened::RaceInterrupted { stored: None });
        return Ok(Outcome::Interrupted);
    };
    let machines = Machines { binary: &binary, server: server.as_ref(), stop };
    let ran = run_race(machines, &asked, &mut store, events);
    drop(server);
    let (stored, summary) = (store.rounds().len() as u32, judge(&asked, store.rounds()));
    let outcome = outcome(&summary);
    let saved = save(args, summary, &store, events);
    match ran {
        Ok(true) => events.emit(Happened::RaceFinished),
        Ok(false) => events.emit(Happened::RaceInterrupted { stored: Some(stored) }),
        Err(ref error) => {
            let because = error.to_string();
            events.emit(Happened::RaceStopped { because, stored });
        }
    }
    Ok(match ran {
        Ok(_) if !saved => Outcome::Error,
        Ok(true) => outcome,
        Ok(false) => Outcome::Interrupted,
        Err(_) => Outcome::Error,
    })
}

/// A race that begins or goes on, and the machine of its contenders if it is another one.
type Begun = (Store, Asked, Option<Server>);

/// Starts a new race in a new result directory, with all rates determined. Returns `None` if
/// interrupted while determining them.
fn begin(
    args: &RaceArgs,
    binary: &Path,
    events: &mut Events<'_>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Option<Begun>> {
    let known = known()?;
    let contest = contest(args, &known)?;
    let (server, machine) = args.server.connect(stop)?.unzip();
    let asked = prepare(&contest, &changes(args, machine), &known, setup())?;
    let asked = entered(server.as_ref(), asked)?;
    let asked = Asked { fingerprint: Some(fingerprint(&asked, binary)?), ..asked };
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&asked));
    Store::check_new(&dir)?;
    let notes = split_loads(&asked, binary);
    events.emit(Happened::RaceStarted(header(&dir, &asked, false, notes)));
    let machines = Machines { binary, server: server.as_ref(), stop };
    let Some(asked) = pilot(&contest, asked, machines, events)? else {
        return Ok(None);
    };
    let store = Store::create(&dir, &asked)?;
    events.keep_in(&store)?;
    Ok(Some((store, asked, server)))
}

/// The race that the arguments describe.
fn contest(args: &RaceArgs, known: &[Contender]) -> anyhow::Result<Contest> {
    let (workload, load) = (args.own.workload(&args.race)?, args.own.load());
    let own = OwnRace {
        words: &args.race,
        workload: workload.as_ref(),
        over: args.own.over(),
        load: load.as_ref(),
        adds_contenders: !args.contenders.is_empty(),
    };
    Ok(Contest::of_command_line(own, known)?)
}

fn setup() -> Setup {
    let revision = Some(env!("REGATTA_REVISION")).filter(|revision| !revision.is_empty());
    read_setup(env!("CARGO_PKG_VERSION"), revision, env::args().collect())
}

/// What an agent runs contenders with.
pub fn site(stop: Arc<AtomicBool>) -> Box<dyn Site> {
    let revision = Some(env!("REGATTA_REVISION")).filter(|revision| !revision.is_empty());
    let binary = env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    Box::new(AgentSite::new(binary, (env!("CARGO_PKG_VERSION"), revision), stop))
}

/// The changes to the race file from the command line.
fn changes(args: &RaceArgs, server: Option<ServerMachine>) -> Changes {
    Changes {
        rounds: args.rounds,
        precision: args.precision,
        fail_over: args.fail_over,
        time: args.time,
        schedule: args.schedule,
        slice: args.slice,
        window: args.window,
        settle: args.settle,
        seed: args.seed,
        only: args.only.clone(),
        skip: args.skip.clone(),
        baseline: args.baseline.clone(),
        contenders: args.contenders.clone(),
        server_cpus: args.server_cpus.clone(),
        load_cpus: args.load_cpus.clone(),
        load_sleeps: args.load_sleeps,
        heads: args.heads,
        server,
    }
}

/// Resumes a race with its stored rounds.
fn resume(
    args: &RaceArgs,
    dir: &Path,
    (binary, stop): (&Path, &Arc<AtomicBool>),
    events: &mut Events<'_>,
) -> anyhow::Result<Begun> {
    let (store, asked) = Store::resume(dir)?;
    // A complete race runs nothing again, so any version of regatta may judge it.
    let is_complete = judge(&asked, store.rounds()).complete;
    let mut server = None;
    if !is_complete {
        let (there, machine) = args.server.connect_again(&asked, stop)?.unzip();
        check_can_resume(&asked, &setup(), binary, machine.as_ref())?;
        server = there;
    }
    let events_missing = !events.resume_in(&store, is_complete)?;
    let notes = split_loads(&asked, binary);
    let header = header(dir, &asked, events_missing, notes);
    events.emit(Happened::RaceResumed(header));
    events.sync()?;
    Ok((store, asked, server))
}

fn header(dir: &Path, asked: &Asked, events_missing: bool, notes: Vec<String>) -> Box<RaceHeader> {
    Box::new(RaceHeader {
        dir: dir.display().to_string(),
        unix_ms: unix_ms(),
        asked: asked.clone(),
        events_missing,
        notes,
    })
}

/// The built-in contenders and the peers.
pub fn known() -> anyhow::Result<Vec<Contender>> {
    let mut known = built_in();
    if let Some(folder) = peers_folder() {
        known.extend(Contender::find_all(&folder)?);
    }
    Ok(known)
}

fn default_dir(asked: &Asked) -> PathBuf {
    let time = chrono::Local::now().format("%Y%m%d-%H%M%S");
    Path::new("results").join(format!("{time}-{}", asked.name))
}

/// Saves the summary, the page and the requested forms, and emits the judgement. Returns false if
/// something could not be saved.
fn save(args: &RaceArgs, summary: Summary, store: &Store, events: &mut Events<'_>) -> bool {
    let (dir, rounds) = (store.dir(), store.rounds());
    let (json, md) = (regatta_report::json(&summary), regatta_report::markdown(&summary));
    let write = |path: PathBuf, text: &str| output::write(&path, text);
    let in_dir = write(dir.join("summary.json"), &json)
        .and_then(|()| write(dir.join("report.html"), &regatta_page::page(&summary, rounds)));
    let saved = in_dir.is_ok();
    let mut failed = vec![in_dir];
    let mut stdout = Form::Text;
    for (path, form, text) in [(&args.json, Form::Json, json), (&args.md, Form::Markdown, md)] {
        match path {
            Some(path) if path == Path::new("-") => stdout = form,
            Some(path) => failed.push(output::write(path, &text)),
            None => {}
        }
    }
    failed.push(args.formats.write(&summary, rounds));
    events.emit(Happened::Judged(Box::new(Judged { summary, stdout, saved })));
    failed.retain(|written| written.is_err());
    for error in failed.iter().filter_map(|written| written.as_ref().err()) {
        events.emit(Happened::Failed { because: format!("{error:#}") });
    }
    if !saved {
        let dir = dir.display();
        let because = format!(
            "the rounds are in {dir}; to write the result once it can be written: regatta report {dir} \
             --json {dir}/summary.json --html {dir}/report.html"
        );
        events.emit(Happened::Failed { because });
    }
    failed.is_empty()
}

fn outcome(summary: &Summary) -> Outcome {
    match summary.gate.as_ref().map(Gate::decision) {
        _ if has_failed(summary) => Outcome::Failure,
        Some(Decision::NotDecided) => Outcome::NotDecided,
        Some(Decision::Passed | Decision::Failed) | None => Outcome::Success,
    }
}

/// Whether a requested cell failed, was disqualified or has no valid cost (beside another load: no valid
/// latency), the precision was not reached, or the gate failed. A cell that was skipped, or that its
/// contender declares it cannot hold, has been reported and is not a failure. Neither is a disqualified
/// exhibit, nor a null server or a twin without a valid cost.
fn has_failed(summary: &Summary) -> bool {
    // With a time limit, the precision is a goal.
    let is_required = summary.asked.time_s.is_none();
    let imprecise = summary.precision.as_ref().is_some_and(|p| is_required && !p.reached);
    let gate_failed = summary.gate.as_ref().is_some_and(|gate| gate.decision() == Decision::Failed);
    imprecise
        || gate_failed
        || summary.cells.iter().any(|cell| match cell.verdict.kind() {
            Kind::Skipped | Kind::CannotHold => false,
            Kind::Disqualified if summary.asked.is_exhibit(&cell.contender) => false,
            kind if summary.asked.is_reference(&cell.contender) => {
                matches!(kind, Kind::Disqualified | Kind::Failed)
            }
            // A cell that shares the server with another load has no cost.
            _ if cell.load.beside.is_some() => cell.verdict.voids(Figure::Latency),
            _ => cell.verdict.voids(Figure::Cost) || cell.is_unknown(Unknown::Cost),
        })
}

#[cfg(test)]
mod tests;
