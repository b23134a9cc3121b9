//! `regatta race`: prepares, runs with live progress, judges, reports.

use crate::{
    exit::Done,
    interrupt, output,
    values::{duration, percent},
};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_host::{Containment, read_setup};
use regatta_judge::{Due, judge};
use regatta_load::{Phase, Progress};
use regatta_race::{
    Cell, Changes, Contender, Contest, PilotStep, Store, Watch, built_in, peers_folder, pilot,
    prepare, run as run_race,
};
use regatta_record::{Asked, Figure, Kind, Outcome, Round, Summary};
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
  regatta race --contender 'mine=./my-server --port {port}' --baseline mine
  regatta race --only epoll,green,null --precision 2%
  regatta race --contender 'old=./old {port}' --contender 'new=./new {port}' --baseline old \
               --only old,new,null --rounds 10 --fail-over 5%
  regatta race --resume results/20260101-120000-double

Exit status: 0 judged; 1 a cell failed, was disqualified or has no cost, the --precision was not
reached, or --fail-over found something dearer; 2 wrong usage or an unusable machine; 130 after Ctrl-C, with what was finished saved.")]
pub struct RaceArgs {
    /// A bundled race by name (quick, double, models, sweep, dialogue, hello,
    /// readiness, hash, hash-quick, fairness, truth), or a race file
    #[arg(default_value = "quick", value_name = "FILE.toml | NAME")]
    race: String,
    /// Passes over all cells; with --precision the most of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Add rounds until every ratio to the baseline is known to ± this, as 2%; --rounds is then the
    /// most (50 if absent), and 5 are the least
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    precision: Option<f64>,
    /// Fail (exit status 1) if a contender is surely dearer than the baseline by more than this, as 5%
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_over: Option<f64>,
    /// Length of the measured window of a round
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
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
    /// Result directory; results/<time>-<race> if absent
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Continue the race in this result directory; everything is as it was asked there
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "race", "rounds", "window", "seed", "only", "skip", "baseline", "contenders",
        "server_cpus", "load_cpus", "load_sleeps", "precision", "fail_over",
    ])]
    resume: Option<PathBuf>,
    /// Write the judged summary as JSON; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the table as Markdown; - for stdout instead of the table
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Race although this is a debug build: for tests of regatta itself, figures mean nothing
    #[arg(long, hide = true)]
    debug_build: bool,
}

/// Runs the race.
pub fn run(args: RaceArgs) -> anyhow::Result<Done> {
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
    let binary = env::current_exe().context("cannot tell where this program is")?;
    let (mut store, asked, mut rounds) = match &args.resume {
        Some(dir) => Store::resume(dir)?,
        None => {
            let Some(asked) = ask(&args, &binary, &stop)? else {
                eprintln!("interrupted in the pilot pass; nothing is saved");
                return Ok(Done::Interrupted);
            };
            let dir = args.out.clone().unwrap_or_else(|| default_dir(&asked));
            (Store::create(&dir, &asked)?, asked, Vec::new())
        }
    };
    for entry in &asked.entries {
        if let Some(why) = &entry.skipped {
            eprintln!("skipped: {}: {why}", entry.name);
        }
    }
    for load in &asked.left_out {
        eprintln!("left out: {load}");
    }
    let mut live = Live::new();
    let ran =
        run_race(&binary, Containment::Best, &asked, &mut store, &mut rounds, &mut live, &stop);
    live.bar.finish_and_clear();

    let summary = judge(&asked, &rounds);
    let saved = report(&args, &summary, store.dir());
    let dir = store.dir().display();
    match ran {
        Ok(true) => {
            saved?;
            Ok(if is_short(&summary) { Done::Short } else { Done::Well })
        }
        Ok(false) => {
            saved?;
            eprintln!(
                "interrupted; {} starts are saved: regatta race --resume {dir}",
                rounds.len()
            );
            Ok(Done::Interrupted)
        }
        Err(error) => {
            eprintln!("regatta: the race stopped: {error}");
            bail!("{} starts are saved; go on with: regatta race --resume {dir}", rounds.len())
        }
    }
}

/// What is asked, with all rates known. `None` if interrupted while finding them out.
fn ask(args: &RaceArgs, binary: &Path, stop: &AtomicBool) -> anyhow::Result<Option<Asked>> {
    let contest = Contest::find(&args.race)?;
    let changes = Changes {
        rounds: args.rounds,
        precision: args.precision,
        fail_over: args.fail_over,
        window: args.window,
        seed: args.seed,
        only: args.only.clone(),
        skip: args.skip.clone(),
        baseline: args.baseline.clone(),
        contenders: args.contenders.clone(),
        server_cpus: args.server_cpus.clone(),
        load_cpus: args.load_cpus.clone(),
        load_sleeps: args.load_sleeps,
    };
    let revision = Some(env!("REGATTA_REVISION")).filter(|revision| !revision.is_empty());
    let setup = read_setup(env!("CARGO_PKG_VERSION"), revision, env::args().collect());
    let asked = prepare(&contest, &changes, &known()?, setup)?;
    let live = Live::new();
    let mut begins = |step: PilotStep<'_>| live.pilot_begins(step);
    let asked = pilot(&contest, asked, binary, Containment::Best, &mut begins, stop)?;
    live.bar.finish_and_clear();
    Ok(asked)
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

/// Saves the summary and the page, and prints what was asked for.
fn report(args: &RaceArgs, summary: &Summary, dir: &Path) -> anyhow::Result<()> {
    let json = regatta_report::json(summary);
    output::write(&dir.join("summary.json"), &json)?;
    output::write(&dir.join("report.html"), &regatta_report::html(summary))?;
    let mut table = true;
    for (path, text) in [(&args.json, json), (&args.md, regatta_report::markdown(summary))] {
        if let Some(path) = path {
            output::write(path, &text)?;
            table &= path != Path::new("-");
        }
    }
    if table {
        output::print(&regatta_report::terminal(summary, output::width(), output::colour()))?;
        output::print(&format!("\nreport: {}\n", dir.join("report.html").display()))?;
    }
    Ok(())
}

/// Whether a cell that was asked for is disqualified or failed, or lost its cost (the latency, where
/// there is no cost); or the precision was not reached, or the gate not passed. One that was skipped,
/// or that its contender says it cannot hold, has been told and is no failure; nor is it one that an
/// exhibit is disqualified.
fn is_short(summary: &Summary) -> bool {
    let imprecise = summary.precision.as_ref().is_some_and(|precision| !precision.reached);
    let stopped = summary.gate.as_ref().is_some_and(|gate| !gate.passes());
    imprecise
        || stopped
        || summary.cells.iter().any(|cell| match cell.verdict.kind {
            Kind::Skipped | Kind::CannotHold => false,
            Kind::Disqualified if summary.asked.is_exhibit(&cell.contender) => false,
            // Beside another load no cost is to be told.
            _ if cell.load.beside.is_some() => cell.verdict.voids(Figure::Latency),
            _ => cell.verdict.voids(Figure::Cost),
        })
}

/// Live progress on a terminal's stderr; a line per pass elsewhere.
struct Live {
    bar: ProgressBar,
    place: String,
    pass: Option<u32>,
    /// How precise the race is by now, where that decides when it ends.
    precision: String,
}

impl Live {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{pos}/{len} {bar:24} {eta:>4} left  {wide_msg}")
            .expect("the template is right");
        bar.set_style(style.progress_chars("━╸─"));
        Live { bar, place: String::new(), pass: None, precision: String::new() }
    }

    fn pilot_begins(&self, step: PilotStep<'_>) {
        self.bar.set_length(step.all as u64);
        self.bar.set_position(step.done as u64);
        self.bar.set_message(format!("pilot · {} · {}", step.contender, step.load));
        if self.bar.is_hidden() && step.done == 0 {
            eprintln!("pilot: short rounds, to find out the rates: {}", step.all);
        }
    }
}

impl Watch for Live {
    fn pass_begins(&mut self, due: &Due) {
        let widest = due.widest.map(|widest| format!(" · widest ratio ±{:.1}%", widest * 100.0));
        self.precision = widest.unwrap_or_default();
    }

    fn round_begins(&mut self, done: usize, all: usize, at: &Cell<'_>) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.place =
            format!("round {}{} · {} · {}", at.pass + 1, self.precision, at.contender, at.load);
        self.bar.set_message(format!("{} · starting", self.place));
        if self.bar.is_hidden() && self.pass.replace(at.pass) != Some(at.pass) {
            let about = if self.precision.is_empty() { "" } else { "about " };
            eprintln!(
                "round {}: {done} of {about}{all} starts are done{}",
                at.pass + 1,
                self.precision
            );
        }
    }

    fn under_load(&mut self, progress: &Progress) {
        let phase = match progress.phase {
            Phase::Starting => "starting".into(),
            Phase::Connecting => format!("{} connected", progress.open),
            Phase::WarmingUp => "warming up".into(),
            Phase::Measuring => "measuring".into(),
            Phase::Draining | Phase::Ended => "stopping".into(),
        };
        self.bar.set_message(format!("{} · {phase}", self.place));
    }

    fn round_ended(&mut self, round: &Round) {
        let name = &round.contender;
        let told = match &round.outcome {
            Outcome::Finished => return,
            Outcome::CannotHold { because } | Outcome::Failed { because } => because.clone(),
            Outcome::Disqualified { because, exchange: None } => format!("{name}: {because}"),
            Outcome::Disqualified { because, exchange: Some(e) } => format!(
                "{name}: {because}\n  sent      {}\n  expected  {}\n  received  {}",
                e.sent, e.expected, e.received
            ),
        };
        self.bar.suspend(|| eprintln!("{}: {told}", kind_of(&round.outcome)));
    }
}

fn kind_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Finished => "finished",
        Outcome::Disqualified { .. } => Kind::Disqualified.name(),
        Outcome::Failed { .. } => Kind::Failed.name(),
        Outcome::CannotHold { .. } => Kind::CannotHold.name(),
    }
}
