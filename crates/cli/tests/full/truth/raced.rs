//! A race of built-in servers, with a generated race file.

use crate::{support::regatta, truth::stage::Turn};
use regatta_race::Store;
use regatta_record::{Asked, Cell, Estimate, Round, Summary};
use regatta_testkit::child::run_within;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// A race to run.
#[derive(Clone, Copy)]
pub struct Race<'a> {
    /// Names, and the arguments that each adds to `regatta serve double --model epoll`. The first is the
    /// baseline and has a twin.
    pub contenders: &'a [(&'a str, &'a str)],
    /// Whether the null server takes part.
    pub null: bool,
    /// The lines of its one load.
    pub load: &'a str,
    /// Passes.
    pub rounds: u32,
    /// Length of the window in milliseconds.
    pub window_ms: u32,
    /// The seed.
    pub seed: u64,
    /// More arguments of `regatta race`.
    pub more: &'a str,
}

/// A finished race and its result directory.
pub struct Raced {
    /// Its exit status.
    pub code: i32,
    pub stderr: String,
    pub summary: Summary,
    /// Its result directory.
    pub dir: PathBuf,
    /// Removed when this value is dropped.
    _folder: Option<TempDir>,
}

impl Race<'_> {
    /// Runs the race in a temporary folder.
    pub fn run(&self, turn: &Turn) -> Raced {
        let folder = TempDir::new().unwrap();
        let raced = self.run_in(turn, folder.path());
        Raced { _folder: Some(folder), ..raced }
    }

    /// Runs the race in `folder`, and leaves its results in `out` there.
    pub fn run_in(&self, turn: &Turn, folder: &Path) -> Raced {
        let file = folder.join("race.toml");
        fs::write(&file, self.file()).unwrap();
        let Race { seed, more, .. } = self;
        // These servers need no warm-up. Other tests check the observation of warm-ups.
        let (file, cpus) = (file.display(), turn.cpus());
        let mut race =
            regatta!("race {file} --out out --json - --seed {seed} {cpus} --settle 0s {more}");
        let ended = run_within(Duration::from_secs(300), race.current_dir(folder));
        let summary = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
        let (code, dir) = (ended.code(), folder.join("out"));
        Raced { code, stderr: ended.stderr, summary, dir, _folder: None }
    }

    fn file(&self) -> String {
        let Race { contenders, null, load, rounds, window_ms, .. } = self;
        let mut names: Vec<&str> = contenders.iter().map(|(name, _)| *name).collect();
        names.extend(null.then_some("null"));
        let own = |(name, more): &(&str, &str)| {
            let start = format!("serve double --model epoll {more} --listen 127.0.0.1:{{port}}");
            let start: Vec<&str> =
                ["{regatta}"].into_iter().chain(start.split_whitespace()).collect();
            format!(
                "[[contender]]\nname = '{name}'\nabout = 'epoll {more}'\nworkloads = ['double']\n\
                 start = {start:?}\n"
            )
        };
        let own: String = contenders.iter().map(own).collect();
        format!(
            "name = 'truth'\nworkload = 'double'\ncontenders = {names:?}\nrounds = {rounds}\n\
             window = '{window_ms}ms'\nwarm_up = '100ms'\n[[load]]\n{load}\n{own}"
        )
    }
}

impl Raced {
    /// The stored settings and rounds.
    pub fn stored(&self) -> (Asked, Vec<Round>) {
        Store::read(&self.dir).unwrap()
    }

    /// The cell of a contender.
    pub fn cell(&self, contender: &str) -> &Cell {
        cell(&self.summary, contender)
    }
}

/// Returns the cell of a contender in a race of one load.
pub fn cell<'a>(summary: &'a Summary, contender: &str) -> &'a Cell {
    summary.cells.iter().find(|cell| cell.contender == contender).unwrap()
}

/// Returns half the width of a ratio's interval, in percent.
pub fn half_width(ratio: &Estimate) -> f64 {
    (ratio.high - ratio.low) / 2.0 * 100.0
}

/// Formats the ratio as `1.0312 [1.0201 to 1.0424]`, or returns why there is none.
pub fn shown(cell: &Cell) -> String {
    match &cell.ratio_to_baseline {
        Some(Estimate { mean, low, high }) => format!("{mean:.4} [{low:.4} to {high:.4}]"),
        None => format!("no ratio: {}", cell.verdict.because()),
    }
}

/// Returns the median; of an even number of values, the upper one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
