//! `regatta race`: prepares, runs, judges, saves. What is printed meanwhile is drawn from the events.

use crate::{
    exit::Done,
    interrupt, output,
    screen::Screen,
    values::{duration, percent},
};
use anyhow::{Context, bail};
use regatta_host::{Containment, read_setup};
use regatta_judge::judge;
use regatta_race::{
    Changes, Contender, Contest, Events, Store, built_in, fingerprint, may_go_on, peers_folder,
    pilot, plan, prepare, run as run_race, split_loads, unix_ms,
};
use regatta_record::{
    Asked, Decision, Event, Figure, Form, Gate, Happened, Heads, Judged, Kind, RaceHeader, Round,
    Setup, Summary, Unknown,
};
use std::{
    env,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

/// Race contenders under one load or several: interleaved fresh starts, every reply checked, and a
/// verdict on every cell. Without an argument: a quick race of the built-in models and of every
/// peer found here.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta race
  regatta race double --only epoll,green,null --rounds 7
  regatta race double --dry-run
  regatta race --contender 'mine=./my-server --port {port}' --baseline mine
  regatta race --only epoll,green,null --precision 2%
  regatta race --contender 'old=./old {port}' --contender 'new=./new {port}' --baseline old \
               --only old,new,null --rounds 10 --fail-over 5%
  regatta race --resume results/20260101-120000-double

Exit status: 0 judged; 1 a cell failed, was disqualified or has no cost,
the --precision was not reached, or --fail-over found something more
expensive; 2 wrong usage or an unusable machine; 3 --fail-over is not decided,
because an interval contains the limit; 130 after Ctrl-C, with all finished
rounds saved.")]
pub struct RaceArgs {
    #[arg(
        default_value = "quick",
        value_name = "FILE.toml | NAME",
        help = format!("A bundled race by name ({}), or a race file", regatta_race::bundled::names())
    )]
    race: String,
    /// Passes over all cells; with --precision the most of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Add rounds until every ratio to the baseline is known to ± this, as 2%; --rounds is then the
    /// most (50 if absent), and 5 are the least
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    precision: Option<f64>,
    /// Fail (exit status 1) if a contender costs more than the baseline by more than this, with 95%
    /// confidence, e.g. 5%; exit with status 3 if an interval contains the limit
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_over: Option<f64>,
    /// Length of the measured window of a round
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// How long each contender is observed under each load at most, before its first round, to see
    /// when its cost is steady; every round then warms up for that long. 0s: not at all
    #[arg(long, value_name = "TIME", value_parser = duration)]
    settle: Option<Duration>,
    /// Seed of the order and of the requests; random, and recorded, if absent
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Only these contenders
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    only: Vec<String>,
    /// All but these contenders
    #[arg(long, value_name = "C", value_delimiter = ',')]
    skip: Vec<String>,
    /// The contender that ratios are taken to
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// A contender of your own; repeatable
    #[arg(long = "contender", value_name = "'NAME=CMD {port}'")]
    contenders: Vec<String>,
    /// CPUs of the contender, such as 0 or 0,1
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    server_cpus: Option<Vec<u32>>,
    /// CPUs of the load
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    load_cpus: Option<Vec<u32>>,
    /// Let the load sleep where there is nothing for it to do; else it polls, since waking it is
    /// charged to the server
    #[arg(long)]
    load_sleeps: bool,
    /// The heads of the requests of hello and hash: varied as users' are, or identical
    #[arg(long, value_name = "varied|identical")]
    heads: Option<Heads>,
    /// Result directory; results/<time>-<race> if absent
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Continue the race in this result directory; everything is as it was asked there.
    /// Refused where regatta, a contender, the kernel or the CPUs have changed since
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "race", "rounds", "window", "settle", "seed", "only", "skip", "baseline", "contenders",
        "server_cpus", "load_cpus", "load_sleeps", "heads", "precision", "fail_over",
    ])]
    resume: Option<PathBuf>,
    /// Write the judged summary as JSON; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table as Markdown; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Print the plan: contenders, CPUs, loads, rounds, and how long the race takes; start nothing.
    /// With --json the plan is written as JSON
    #[arg(long, conflicts_with_all = ["resume", "md"])]
    dry_run: bool,
    /// Race although this is a debug build: for tests of regatta itself, figures mean nothing
    #[arg(long, hide = true)]
    debug_build: bool,
}

/// Runs the race.
pub fn run(args: RaceArgs) -> anyhow::Result<Done> {
    if args.dry_run {
        return dry_run(&args);
    }
    if cfg!(debug_assertions) && !args.debug_build {
        bail!(
            "this is a debug build, whose figures mean nothing; run `cargo run --release -- race`"
        );
    }
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdout(&args.json) && is_stdout(&args.md) {
        bail!("--json and --md cannot both go to stdout; give one of them a file");
    }
    args.json.iter().chain(&args.md).try_for_each(|path| output::check(path))?;
    regatta_serve::raise_open_files();
    let stop = interrupt::flag()?;
    let mut screen = Screen::new();
    let mut show = |event: &Event| screen.show(event);
    let mut events = Events::kept(&mut show);
    let done = race(&args, &mut events, &stop).unwrap_or_else(|error| {
        events.emit(Happened::Failed { because: format!("{error:#}") });
        Done::Failed
    });
    let kept = events.sync();
    screen.printed()?;
    kept.context("the result is saved, but not all of its events")?;
    Ok(done)
}

/// Prints what a race would do. Not even programs that would name their version are started.
fn dry_run(args: &RaceArgs) -> anyhow::Result<Done> {
    let mut contest = Contest::find(&args.race)?;
    let mut known = known()?;
    let manifests = known.iter_mut().map(|one| &mut one.manifest).chain(&mut contest.own);
    manifests.for_each(|manifest| manifest.version.clear());
    let asked = prepare(&contest, &changes(args), &known, setup())?;
    let plan = plan(&contest, asked)?;
    match &args.json {
        Some(path) => output::write(path, &regatta_report::plan_json(&plan))?,
        None => output::print(&regatta_report::plan_text(&plan, output::width()))?,
    }
    Ok(Done::Well)
}

fn race(args: &RaceArgs, events: &mut Events<'_>, stop: &AtomicBool) -> anyhow::Result<Done> {
    let binary = env::current_exe().context("cannot tell where this program is")?;
    let begun = match &args.resume {
        Some(dir) => Some(resume(dir, &binary, events)?),
        None => begin(args, &binary, events, stop)?,
    };
    let Some((mut store, asked, mut rounds)) = begun else {
        events.emit(Happened::RaceInterrupted { stored: None });
        return Ok(Done::Interrupted);
    };
    let ran = run_race(&binary, Containment::Best, &asked, &mut store, &mut rounds, events, stop);
    let (stored, summary) = (rounds.len() as u32, judge(&asked, &rounds));
    let done = done(&summary);
    let saved = save(args, summary, store.dir(), events);
    match ran {
        Ok(true) => events.emit(Happened::RaceFinished),
        Ok(false) => events.emit(Happened::RaceInterrupted { stored: Some(stored) }),
        Err(ref error) => {
            let because = error.to_string();
            events.emit(Happened::RaceStopped { because, stored });
        }
    }
    Ok(match ran {
        Ok(_) if !saved => Done::Failed,
        Ok(true) => done,
        Ok(false) => Done::Interrupted,
        Err(_) => Done::Failed,
    })
}

/// A new race in a new result directory, all rates known. `None` if interrupted while finding them
/// out.
fn begin(
    args: &RaceArgs,
    binary: &Path,
    events: &mut Events<'_>,
    stop: &AtomicBool,
) -> anyhow::Result<Option<(Store, Asked, Vec<Round>)>> {
    let contest = Contest::find(&args.race)?;
    let asked = prepare(&contest, &changes(args), &known()?, setup())?;
    let asked = Asked { fingerprint: Some(fingerprint(&asked, binary)?), ..asked };
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&asked));
    let notes = split_loads(&asked, binary);
    events.emit(Happened::RaceStarted(header(&dir, &asked, 0, false, notes)));
    let Some(asked) = pilot(&contest, asked, binary, Containment::Best, events, stop)? else {
        return Ok(None);
    };
    let store = Store::create(&dir, &asked)?;
    events.keep_in(&store)?;
    Ok(Some((store, asked, Vec::new())))
}

fn setup() -> Setup {
    let revision = Some(env!("REGATTA_REVISION")).filter(|revision| !revision.is_empty());
    read_setup(env!("CARGO_PKG_VERSION"), revision, env::args().collect())
}

/// What the command line changes in the race file.
fn changes(args: &RaceArgs) -> Changes {
    Changes {
        rounds: args.rounds,
        precision: args.precision,
        fail_over: args.fail_over,
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
    }
}

/// A race that goes on, with the rounds that are there.
fn resume(
    dir: &Path,
    binary: &Path,
    events: &mut Events<'_>,
) -> anyhow::Result<(Store, Asked, Vec<Round>)> {
    let (store, asked, rounds) = Store::resume(dir)?;
    // Nothing of a complete race is run again, so any regatta may judge it.
    if !judge(&asked, &rounds).complete {
        may_go_on(&asked, &setup(), binary)?;
    }
    let events_missing = !events.go_on_in(&store)?;
    let notes = split_loads(&asked, binary);
    let header = header(dir, &asked, rounds.len(), events_missing, notes);
    events.emit(Happened::RaceResumed(header));
    events.sync()?;
    Ok((store, asked, rounds))
}

fn header(
    dir: &Path,
    asked: &Asked,
    stored: usize,
    events_missing: bool,
    notes: Vec<String>,
) -> Box<RaceHeader> {
    Box::new(RaceHeader {
        dir: dir.display().to_string(),
        unix_ms: unix_ms(),
        asked: asked.clone(),
        stored: stored as u32,
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

/// Saves the summary, the page and the forms that were asked for, and says what was judged. False if
/// something could not be saved.
fn save(args: &RaceArgs, summary: Summary, dir: &Path, events: &mut Events<'_>) -> bool {
    let (json, md) = (regatta_report::json(&summary), regatta_report::markdown(&summary));
    let write = |path: PathBuf, text: &str| output::write(&path, text);
    let in_dir = write(dir.join("summary.json"), &json)
        .and_then(|()| write(dir.join("report.html"), &regatta_report::html(&summary)));
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
    events.emit(Happened::Judged(Box::new(Judged { summary, stdout, saved })));
    failed.retain(|written| written.is_err());
    for error in failed.iter().filter_map(|written| written.as_ref().err()) {
        events.emit(Happened::Failed { because: format!("{error:#}") });
    }
    failed.is_empty()
}

fn done(summary: &Summary) -> Done {
    match summary.gate.as_ref().map(Gate::decision) {
        _ if is_short(summary) => Done::Short,
        Some(Decision::NotDecided) => Done::NotDecided,
        Some(Decision::Passed | Decision::Failed) | None => Done::Well,
    }
}

/// Whether a cell that was asked for is disqualified or failed, or lost its cost (the latency, where
/// there is no cost); or the precision was not reached, or the gate failed. One that was skipped,
/// or that its contender says it cannot hold, has been told and is no failure; nor is it one that an
/// exhibit is disqualified.
fn is_short(summary: &Summary) -> bool {
    let imprecise = summary.precision.as_ref().is_some_and(|precision| !precision.reached);
    let stopped = summary.gate.as_ref().is_some_and(|gate| gate.decision() == Decision::Failed);
    imprecise
        || stopped
        || summary.cells.iter().any(|cell| match cell.verdict.kind {
            Kind::Skipped | Kind::CannotHold => false,
            Kind::Disqualified if summary.asked.is_exhibit(&cell.contender) => false,
            // Beside another load no cost is to be told.
            _ if cell.load.beside.is_some() => cell.verdict.voids(Figure::Latency),
            _ => cell.verdict.voids(Figure::Cost) || cell.is_unknown(Unknown::Cost),
        })
}
