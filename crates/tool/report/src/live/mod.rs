//! Turns events into terminal output, during a race or a capacity search and at its end.
//!
//! Pure: a state and an [`Event`] give the next texts. Times are those of the events, so a stream that
//! is read again from a result directory gives the same texts. The caller decides whether texts are
//! printed, how a progress line replaces the previous one, and how often it is drawn.

pub mod capacity;
mod progress;
mod table;

use crate::{
    formats::{
        json::{capacity_json, json},
        markdown::markdown,
    },
    numbers::{self, grouped},
    screen::{terminal::terminal_with, text::cut},
    table::visible,
    tables::warm_ups::seen_in_words,
};
pub use progress::{Bar, Expected};
use regatta_record::{
    Asked, Capacity, CapacityLoad, CapacityPhase, CapacityStep, Estimate, Event, Exchange, Form,
    Happened, Judged, JudgedCell, Kind, LoadShape, Outcome, PassStart, Phase, RaceHeader, RoundEnd,
    RoundStart, Schedule, Window,
};
use std::path::Path;
use table::Watched;

/// Time of a start besides its warm-up and its window, in seconds: what starting, connecting and
/// stopping usually take. Only for the first estimate of the remaining time.
const BESIDE_S: f64 = 0.7;
/// Maximum number of contenders of a race with one load whose ratios are a line after each round.
const IN_A_LINE: usize = 12;
/// Number of rounds that a race with a requested precision runs at least.
const FEWEST_ROUNDS: u32 = 5;
/// Lines of the terminal that the progress leaves free.
const MARGIN: usize = 2;

/// The capabilities of stdout and stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Width of the output on stdout, in columns.
    pub width: usize,
    /// Whether to print colours on stdout.
    pub colour: bool,
    /// The size of the terminal on stderr, which shows the progress. `None`: stderr is not a terminal, and
    /// each pass is announced by a line.
    pub progress: Option<Room>,
    /// Names of the columns of the loads' tables, in order; empty: those that fit.
    pub columns: Vec<String>,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

/// A change of the output after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Print these whole lines to stdout.
    Stdout(String),
    /// Print these whole lines to stderr, above the progress.
    Stderr(String),
    /// Set the progress to this text: one line, or several in a race.
    Progress(String),
    /// Remove the progress.
    NoProgress,
}

/// The state of the output.
#[derive(Debug)]
pub struct Live {
    looks: Looks,
    /// The result directory, as it was given.
    dir: String,
    /// The loads that were already reported as left out.
    left_out: Vec<String>,
    /// The pass that was announced last.
    pass: Option<u32>,
    /// Half-width of the widest ratio so far, as a fraction, if the race stops at a precision.
    widest: Option<f64>,
    /// Time of the first pass.
    began: Option<u64>,
    /// Number of passes of the race; with a requested precision, a forecast.
    passes: u32,
    task: Task,
    bar: Bar,
    watched: Watched,
}

/// The current task, for the progress.
#[derive(Debug)]
struct Task {
    /// `epoll · 64 conn`, or the level of a search.
    name: String,
    /// The contender that runs and its load, in a round of a race.
    cell: Option<(String, LoadShape)>,
    /// `round 1`, and the number of rounds.
    place: String,
    /// The start after this one: `go · 64 conn`.
    next: Option<String>,
    window: Option<Window>,
    /// Set while the warm-up of a contender is observed: the maximum time, in seconds.
    observes_s: Option<f64>,
    phase: Phase,
    /// Open connections.
    open: Option<u64>,
    /// The block of a duel: `block 3 of 6`.
    block: Option<String>,
}

impl Task {
    fn new(name: String, window: Option<Window>) -> Task {
        let (cell, place, next) = (None, String::new(), None);
        let (observes_s, phase, open, block) = (None, Phase::Starting, None, None);
        Task { name, cell, place, next, window, observes_s, phase, open, block }
    }

    /// The text of the phase. Nothing is drawn inside the window, so the phase before it announces it.
    fn phase(&self) -> String {
        if let Some(block) = &self.block {
            return block.clone();
        }
        if let (Phase::WarmUp, Some(longest_s)) = (self.phase, self.observes_s) {
            return format!("until its cost is steady, at most {longest_s} s");
        }
        match (self.phase, self.window, self.open) {
            (Phase::Starting, ..) => "starting".into(),
            (Phase::Connecting, Some(Window::Requests { n }), _) => {
                format!("{} requests", grouped(n))
            }
            (Phase::Connecting, _, None) => "connecting".into(),
            (Phase::Connecting, _, Some(open)) => format!("{} connected", grouped(open)),
            (Phase::WarmUp, Some(Window::Time { s }), _) => {
                format!("warming up, then measuring for {s} s")
            }
            (Phase::WarmUp, ..) => "warming up, then measuring".into(),
            (Phase::Window, ..) => "measured".into(),
            (Phase::Stopping, ..) => "stopping".into(),
        }
    }
}

impl Live {
    /// The state before the first event.
    pub fn new(looks: Looks) -> Live {
        Live {
            looks,
            dir: String::new(),
            left_out: Vec::new(),
            pass: None,
            widest: None,
            began: None,
            passes: 0,
            task: Task::new(String::new(), None),
            bar: Bar::default(),
            watched: Watched::default(),
        }
    }

    /// Returns the changes of the output after the next event, in order.
    pub fn show(&mut self, event: &Event) -> Vec<Shown> {
        let ns = event.ns;
        match &event.happened {
            Happened::RaceStarted(header) | Happened::RaceResumed(header) => self.starts(header),
            Happened::PilotStarted { rounds } => {
                self.line(format!("pilot: short rounds, each once its rate is steady, to determine the rates: {rounds}"))
            }
            Happened::RatesSettled { asked } => {
                self.watched = Watched::new(asked);
                let doubts = asked.doubts_of_pilot().into_iter();
                let doubts = doubts.map(|doubt| Shown::Stderr(format!("pilot: {doubt}\n")));
                self.leave_out(asked).into_iter().chain(doubts).collect()
            }
            Happened::WarmUpsStarted { starts, longest_s } => self.line(format!(
                "warm-up: each contender is observed until its cost is steady, at most {longest_s} s: \
                 {starts} starts"
            )),
            Happened::WarmUpSeen { contender, load, settling } => {
                let seen = seen_in_words(settling.as_ref());
                self.line(format!("warm-up: {contender} at {load}: {seen}"))
            }
            Happened::PassStarted(pass) => self.pass_starts(ns, pass),
            Happened::RoundStarted(round) => self.round_starts(ns, round),
            Happened::BlockStarted { contenders, block, blocks, load } => {
                self.block_starts(ns, (*contenders, *load), (*block, *blocks))
            }
            Happened::ContenderDied { because, .. } => {
                vec![Shown::Stderr(format!("died: {because}; the others go on\n"))]
            }
            Happened::PhaseStarted { phase } => self.phase_starts(ns, *phase),
            Happened::LoadSampled { open } => {
                self.task.open = Some(*open);
                self.progress(ns).into_iter().collect()
            }
            Happened::RoundEnded(round) => {
                self.watched.ended(round);
                remark(round)
            }
            Happened::PassJudged { pass, changed } => self.pass_judged(*pass, changed),
            Happened::RaceFinished => Vec::new(),
            Happened::Judged(judged) => self.judged(judged),
            Happened::RaceInterrupted { stored: Some(stored) } => over(format!(
                "interrupted; {stored} starts are saved; resume with: regatta race --resume {}",
                self.dir
            )),
            // While it connected to the machine of its contenders.
            Happened::RaceInterrupted { stored: None } if self.dir.is_empty() => {
                over("interrupted".into())
            }
            Happened::RaceInterrupted { stored: None } => {
                over("interrupted in the pilot pass; nothing is saved".into())
            }
            Happened::RaceStopped { because, stored } => over(format!(
                "regatta: the race stopped: {because}\nregatta: {stored} starts are saved; resume \
                 with: regatta race --resume {}",
                self.dir
            )),
            Happened::CapacityStarted { load } => self.capacity_starts(ns, load),
            Happened::LevelStarted { done, level, phase } => {
                self.level_starts(ns, *done, *level, *phase)
            }
            Happened::LevelEnded(step) => self.level_ends(step),
            Happened::CapacityFound { found, stdout } => self.capacity_found(found, *stdout),
            Happened::Failed { because } => over(format!("regatta: {because}")),
        }
    }

    fn starts(&mut self, header: &RaceHeader) -> Vec<Shown> {
        let watched = Watched::new(&header.asked);
        *self = Live { dir: header.dir.clone(), watched, ..Live::new(self.looks.clone()) };
        let mut shown = Vec::new();
        if header.events_missing {
            shown.push(Shown::Stderr(
                "note: this race has no events of earlier rounds; a replay starts here\n".into(),
            ));
        }
        for note in &header.notes {
            shown.push(Shown::Stderr(format!("note: {note}\n")));
        }
        for (names, why) in header.asked.skipped() {
            shown.push(Shown::Stderr(format!("skipped: {}: {why}\n", names.join(", "))));
        }
        shown.extend(self.leave_out(&header.asked));
        shown
    }

    /// Reports new loads that this machine cannot run. The pilot pass may add some.
    fn leave_out(&mut self, asked: &Asked) -> Vec<Shown> {
        let is_new = |load: &&String| !self.left_out.contains(load);
        let new: Vec<String> = asked.left_out.iter().filter(is_new).cloned().collect();
        let shown = new.iter().map(|load| Shown::Stderr(format!("left out: {load}\n"))).collect();
        self.left_out.extend(new);
        shown
    }

    /// A line on stderr, if there is no progress line.
    fn line(&self, text: String) -> Vec<Shown> {
        if self.looks.progress.is_some() { Vec::new() } else { vec![Shown::Stderr(text + "\n")] }
    }

    fn pass_starts(&mut self, ns: u64, pass: &PassStart) -> Vec<Shown> {
        let began = *self.began.get_or_insert(ns);
        let time_s = self.watched.asked().and_then(Asked::time_for_passes_s);
        self.bar.ends_by(time_s.map(|time_s| began + (time_s * 1e9) as u64));
        (self.widest, self.passes) = (pass.widest, pass.passes);
        Vec::new()
    }

    /// The pass with the precision so far: `round 3 of 20 · widest ratio ±1.4%`; in duels
    /// `±1.4% after 5 lives`.
    fn pass_in_words(&self, pass: u32) -> String {
        let of = match self.passes {
            passes if passes > pass && !self.is_in_duels() => format!(" of {passes}"),
            _ => String::new(),
        };
        match self.reached(pass) {
            Some(reached) if self.is_in_duels() => reached,
            Some(reached) => format!("{}{of} · {reached}", self.start_in_words(pass)),
            None => format!("{}{of}", self.start_in_words(pass)),
        }
    }

    /// The precision so far: `widest ratio ±1.4%`; in duels `±1.4% after 5 lives`.
    fn reached(&self, pass: u32) -> Option<String> {
        let widest = match self.widest? {
            wide if wide > 1.0 => "over ±100%".to_owned(),
            widest => format!("±{:.1}%", widest * 100.0),
        };
        Some(match self.is_in_duels() {
            true => format!("{widest} after {pass} lives"),
            false => format!("widest ratio {widest}"),
        })
    }

    /// `round 3`; in duels `life 3`.
    fn start_in_words(&self, pass: u32) -> String {
        format!("{} {}", if self.is_in_duels() { "life" } else { "round" }, pass + 1)
    }

    fn is_in_duels(&self) -> bool {
        self.watched.asked().is_some_and(|asked| asked.schedule == Schedule::Duels)
    }

    /// `38 s of 60 s`: the time since the first pass and that of the pilot, if it is limited.
    fn time_in_words(&self, ns: u64) -> Option<String> {
        let asked = self.watched.asked()?;
        let time_s = asked.time_s?;
        let pilot_s = time_s - asked.time_for_passes_s()?;
        let since = ns.saturating_sub(self.began?) / 1_000_000_000 + pilot_s as u64;
        Some(format!("{since} s of {time_s} s"))
    }

    /// A line with the ratios so far, if there is no progress and one load.
    fn pass_judged(&mut self, pass: u32, changed: &[JudgedCell]) -> Vec<Shown> {
        self.watched.judged(changed);
        let loads = self.watched.asked().map(|asked| asked.loads.clone()).unwrap_or_default();
        let [load] = loads[..] else { return Vec::new() };
        let ratios = self.watched.ratios(&load);
        if ratios.is_empty() || ratios.len() > IN_A_LINE {
            return Vec::new();
        }
        let text = |(name, e): &(String, Estimate)| format!("{name} {}", numbers::ratio(e));
        let ratios: Vec<String> = ratios.iter().map(text).collect();
        self.line(format!(
            "after {}, cost as a multiple of the baseline's: {}",
            self.start_in_words(pass),
            ratios.join(", ")
        ))
    }

    fn round_starts(&mut self, ns: u64, round: &RoundStart) -> Vec<Shown> {
        let RoundStart { pass, observes_s, done, all, contender, load, window, next } = round;
        self.bar.starts(ns, *done, *all, self.expected(round));
        let place = match pass {
            Some(pass) => self.pass_in_words(*pass),
            None if observes_s.is_some() => "warm-up, before the first round".into(),
            None => "pilot, before the first round".into(),
        };
        let next = next.as_ref().map(|next| format!("{} · {}", next.contender, next.load));
        self.task = Task {
            cell: pass.map(|_| (contender.clone(), *load)),
            place,
            next,
            observes_s: *observes_s,
            ..Task::new(format!("{contender} · {load}"), Some(*window))
        };
        let mut shown = Vec::new();
        if let Some(pass) = pass
            && self.pass.replace(*pass) != Some(*pass)
        {
            let about = if self.widest.is_some() { "about " } else { "" };
            let left = || self.bar.left(ns).map_or(String::new(), |left| format!(", {left} left"));
            let so_far = self
                .time_in_words(ns)
                .unwrap_or_else(|| format!("{done} of {about}{all} starts are done{}", left()));
            let reached =
                self.reached(*pass).map_or(String::new(), |reached| format!(" · {reached}"));
            shown = self.line(format!("{}: {so_far}{reached}", self.start_in_words(*pass)));
        }
        shown.extend(self.progress(ns));
        shown
    }

    /// How long a start takes, and what follows after those that are counted with it.
    fn expected(&self, round: &RoundStart) -> Expected {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let Some(asked) = self.watched.asked() else { return Expected::default() };
        let of_window = |window_s: f64| ns(window_s + asked.warm_up_s + BESIDE_S);
        let each = match (round.observes_s, round.window) {
            (Some(longest_s), _) => Some(ns(longest_s + BESIDE_S)),
            (None, Window::Time { s }) => Some(of_window(s)),
            (None, Window::Requests { .. }) => None,
        };
        let later = match round.pass {
            Some(_) => 0,
            None => {
                let is_there = |e: &&regatta_record::Entry| e.skipped.is_none();
                let cells = asked.loads.len() * asked.entries.iter().filter(is_there).count();
                let rounds = if asked.precision.is_some() { FEWEST_ROUNDS } else { asked.rounds };
                cells as u64 * u64::from(rounds) * of_window(asked.window_s)
            }
        };
        Expected { each, later }
    }

    /// All contenders are alive and take turns. The first block is not counted.
    fn block_starts(
        &mut self,
        ns: u64,
        (contenders, load): (u32, LoadShape),
        (block, blocks): (u32, u32),
    ) -> Vec<Shown> {
        self.task.name = format!("{contenders} contenders take turns · {load}");
        self.task.next = None;
        self.task.block = Some(format!("block {block} of {}", blocks.saturating_sub(1)));
        self.progress(ns).into_iter().collect()
    }

    fn phase_starts(&mut self, ns: u64, phase: Phase) -> Vec<Shown> {
        self.task.phase = phase;
        self.progress(ns).into_iter().collect()
    }

    /// The progress: for a race the table so far, what runs, what is next, and the time left.
    fn progress(&self, ns: u64) -> Option<Shown> {
        let Room { width, height } = self.looks.progress?;
        let (bar, task) = (self.bar.text(ns), &self.task);
        if self.watched.asked().is_none() {
            return Some(Shown::Progress(format!("{bar}  {} · {}", task.name, task.phase())));
        }
        let width = width.saturating_sub(1);
        let mut last = vec![format!("now: {} · {}", task.name, task.phase())];
        last.extend(task.next.as_ref().map(|next| format!("next: {next}")));
        let time = task.cell.as_ref().and_then(|_| self.time_in_words(ns));
        let time = time.map_or(String::new(), |time| format!(", {time}"));
        last.push(format!("{bar} · {}{time}", task.place));
        let room = (width, height.saturating_sub(last.len() + MARGIN));
        let table = task.cell.as_ref().map_or_else(Vec::new, |cell| {
            let title = format!("{} · {}", task.place, cell.1);
            self.watched.lines(cell, &visible(&title), room, self.looks.colour)
        });
        let last = last.iter().map(|line| cut(&visible(line), width));
        Some(Shown::Progress(table.into_iter().chain(last).collect::<Vec<_>>().join("\n")))
    }

    fn judged(&self, judged: &Judged) -> Vec<Shown> {
        let Judged { summary, stdout, saved } = judged;
        let text = match stdout {
            Form::Text => {
                let mut text = {
                    let Looks { width, colour, columns, .. } = &self.looks;
                    terminal_with(summary, *width, *colour, columns)
                };
                if *saved {
                    let page = Path::new(&self.dir).join("report.html");
                    text += &format!("\nreport: {}\n", page.display());
                }
                text
            }
            Form::Json => json(summary),
            Form::Markdown => markdown(summary),
        };
        vec![Shown::NoProgress, Shown::Stdout(text)]
    }

    fn capacity_starts(&mut self, ns: u64, load: &CapacityLoad) -> Vec<Shown> {
        *self =
            Live { bar: Bar::unbounded(ns, capacity::unit(load)), ..Live::new(self.looks.clone()) };
        Vec::new()
    }

    fn level_starts(&mut self, ns: u64, done: u32, level: u32, phase: CapacityPhase) -> Vec<Shown> {
        let (level, unit) = (grouped(level.into()), self.bar.unit());
        let name = format!("step {} · {} · {level} {unit}", done + 1, capacity::phase(phase));
        self.task = Task::new(name, None);
        self.progress(ns).into_iter().collect()
    }

    /// On a terminal, the row that is also in the result; otherwise a short line.
    fn level_ends(&self, step: &CapacityStep) -> Vec<Shown> {
        let text = match self.looks.progress {
            Some(_) => capacity::row(step, capacity::WIDEST),
            None => format!("{}: {}\n", self.task.name, capacity::verdict(step)),
        };
        vec![Shown::Stderr(text)]
    }

    fn capacity_found(&self, found: &Capacity, stdout: Form) -> Vec<Shown> {
        let text = match stdout {
            Form::Text | Form::Markdown => capacity::text(found, self.looks.width),
            Form::Json => capacity_json(found),
        };
        vec![Shown::NoProgress, Shown::Stdout(text)]
    }
}

fn over(text: String) -> Vec<Shown> {
    vec![Shown::NoProgress, Shown::Stderr(text + "\n")]
}

/// A line on a round that did not finish. Pilot rounds have none.
fn remark(round: &RoundEnd) -> Vec<Shown> {
    let name = &round.contender;
    if round.pass.is_none() {
        return Vec::new();
    }
    let (kind, text) = match &round.outcome {
        Outcome::Finished => return Vec::new(),
        Outcome::CannotHold { because } => (Kind::CannotHold, because.clone()),
        Outcome::Failed { because } => (Kind::Failed, because.clone()),
        Outcome::Disqualified { because, exchange: None } => {
            (Kind::Disqualified, format!("{name}: {because}"))
        }
        Outcome::Disqualified { because, exchange: Some(exchange) } => {
            let Exchange { sent, expected, received, .. } = exchange;
            let exchange =
                format!("  sent      {sent}\n  expected  {expected}\n  received  {received}");
            (Kind::Disqualified, format!("{name}: {because}\n{exchange}"))
        }
    };
    vec![Shown::Stderr(format!("{}: {text}\n", kind.name()))]
}
