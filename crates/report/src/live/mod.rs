//! Turns events into terminal output, during a race or a capacity search and at its end.
//!
//! Pure: a state and an [`Event`] give the next texts. Times are those of the events, so a stream that
//! is read again from a result directory gives the same texts. The caller decides whether texts are
//! printed, how a progress line replaces the previous one, and how often it is drawn.

mod capacity;
mod progress;

use crate::{
    json::{capacity_json, json},
    markdown::markdown,
    numbers::grouped,
    terminal::terminal,
    warm_ups::seen_in_words,
};
use progress::Bar;
use regatta_record::{
    Asked, Capacity, CapacityLoad, CapacityPhase, CapacityStep, Event, Exchange, Form, Happened,
    Judged, Kind, LoadSample, Outcome, PassStart, Phase, RaceHeader, RoundEnd, RoundStart, Window,
};
use std::path::Path;

/// The capabilities of stdout and stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    /// Width of the output on stdout, in columns.
    pub width: usize,
    /// Whether to print colours on stdout.
    pub colour: bool,
    /// Whether stderr is a terminal that shows a progress line. Otherwise each pass is announced by a
    /// line.
    pub progress: bool,
}

/// A change of the output after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Print these whole lines to stdout.
    Stdout(String),
    /// Print these whole lines to stderr, above the progress line.
    Stderr(String),
    /// Set the progress line to this text.
    Progress(String),
    /// Remove the progress line.
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
    /// The precision reached so far, if the race stops at a precision.
    precision: String,
    task: Task,
    bar: Bar,
}

/// The current task, for the progress line.
#[derive(Debug)]
struct Task {
    /// `round 1 · epoll · 64 conn`.
    name: String,
    window: Option<Window>,
    /// Set while the warm-up of a contender is observed: the maximum time, in seconds.
    observes_s: Option<f64>,
    phase: Phase,
    /// Open connections.
    open: Option<u64>,
}

impl Task {
    fn new(name: String, window: Option<Window>) -> Task {
        Task { name, window, observes_s: None, phase: Phase::Starting, open: None }
    }

    /// The text of the phase. Nothing is drawn inside the window, so the phase before it announces it.
    fn phase(&self) -> String {
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
            precision: String::new(),
            task: Task::new(String::new(), None),
            bar: Bar::default(),
        }
    }

    /// Returns the changes of the output after the next event, in order.
    pub fn show(&mut self, event: &Event) -> Vec<Shown> {
        let ns = event.ns;
        match &event.happened {
            Happened::RaceStarted(header) | Happened::RaceResumed(header) => self.starts(header),
            Happened::PilotStarted { rounds } => {
                self.line(format!("pilot: short rounds to determine the rates: {rounds}"))
            }
            Happened::RatesSettled { asked } => self.leave_out(asked),
            Happened::WarmUpsStarted { starts, longest_s } => self.line(format!(
                "warm-up: each contender is observed until its cost is steady, at most {longest_s} s: \
                 {starts} starts"
            )),
            Happened::WarmUpSeen { contender, load, settling } => {
                let seen = seen_in_words(settling.as_ref());
                self.line(format!("warm-up: {contender} at {load}: {seen}"))
            }
            Happened::PassStarted(pass) => self.pass_starts(pass),
            Happened::RoundStarted(round) => self.round_starts(ns, round),
            Happened::PhaseStarted { phase } => self.phase_starts(ns, *phase),
            Happened::LoadSampled(progress) => self.load_sampled(ns, progress),
            Happened::RoundEnded(round) => remark(round),
            Happened::PassJudged { .. } | Happened::RaceFinished => Vec::new(),
            Happened::Judged(judged) => self.judged(judged),
            Happened::RaceInterrupted { stored: Some(stored) } => over(format!(
                "interrupted; {stored} starts are saved; resume with: regatta race --resume {}",
                self.dir
            )),
            Happened::RaceInterrupted { stored: None } => {
                over("interrupted in the pilot pass; nothing is saved".into())
            }
            Happened::RaceStopped { because, stored } => over(format!(
                "regatta: the race stopped: {because}\nregatta: {stored} starts are saved; resume \
                 with: regatta race --resume {}",
                self.dir
            )),
            Happened::CapacityStarted(header) => self.capacity_starts(ns, &header.load),
            Happened::LevelStarted { done, level, phase } => {
                self.level_starts(ns, *done, *level, *phase)
            }
            Happened::LevelEnded(step) => self.level_ends(step),
            Happened::CapacityFound { found, stdout } => self.capacity_found(found, *stdout),
            Happened::Failed { because } => over(format!("regatta: {because}")),
        }
    }

    fn starts(&mut self, header: &RaceHeader) -> Vec<Shown> {
        *self = Live { dir: header.dir.clone(), ..Live::new(self.looks) };
        let mut shown = Vec::new();
        if header.events_missing {
            shown.push(Shown::Stderr(
                "note: this race has no events of earlier rounds; a replay starts here\n".into(),
            ));
        }
        for note in &header.notes {
            shown.push(Shown::Stderr(format!("note: {note}\n")));
        }
        for entry in &header.asked.entries {
            if let Some(why) = &entry.skipped {
                shown.push(Shown::Stderr(format!("skipped: {}: {why}\n", entry.name)));
            }
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
        if self.looks.progress { Vec::new() } else { vec![Shown::Stderr(text + "\n")] }
    }

    fn pass_starts(&mut self, pass: &PassStart) -> Vec<Shown> {
        let widest = pass.widest.map(|widest| format!(" · widest ratio ±{:.1}%", widest * 100.0));
        self.precision = widest.unwrap_or_default();
        Vec::new()
    }

    fn round_starts(&mut self, ns: u64, round: &RoundStart) -> Vec<Shown> {
        let RoundStart { pass, observes_s, done, all, contender, load, window } = round;
        self.bar.starts(ns, *done, *all);
        let place = match pass {
            Some(pass) => format!("round {}{}", pass + 1, self.precision),
            None if observes_s.is_some() => "warm-up".into(),
            None => "pilot".into(),
        };
        self.task = Task {
            observes_s: *observes_s,
            ..Task::new(format!("{place} · {contender} · {load}"), Some(*window))
        };
        let mut shown = Vec::new();
        if let Some(pass) = pass
            && self.pass.replace(*pass) != Some(*pass)
        {
            let about = if self.precision.is_empty() { "" } else { "about " };
            shown = self.line(format!(
                "round {}: {done} of {about}{all} starts are done{}",
                pass + 1,
                self.precision
            ));
        }
        shown.extend(self.progress(ns));
        shown
    }

    fn phase_starts(&mut self, ns: u64, phase: Phase) -> Vec<Shown> {
        self.task.phase = phase;
        self.progress(ns).into_iter().collect()
    }

    fn load_sampled(&mut self, ns: u64, progress: &LoadSample) -> Vec<Shown> {
        self.task.open = Some(progress.open);
        self.progress(ns).into_iter().collect()
    }

    fn progress(&self, ns: u64) -> Option<Shown> {
        let text = format!("{}  {} · {}", self.bar.text(ns), self.task.name, self.task.phase());
        self.looks.progress.then_some(Shown::Progress(text))
    }

    fn judged(&self, judged: &Judged) -> Vec<Shown> {
        let Judged { summary, stdout, saved } = judged;
        let text = match stdout {
            Form::Text => {
                let mut text = terminal(summary, self.looks.width, self.looks.colour);
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
        *self = Live { bar: Bar::unbounded(ns, capacity::unit(load)), ..Live::new(self.looks) };
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
            true => capacity::row(step, capacity::WIDEST),
            false => format!("{}: {}\n", self.task.name, capacity::verdict(step)),
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
