//! A race of servers of ours, from a race file that is written for it.

use crate::stage::{Turn, is_full, run};
use regatta_race::Store;
use regatta_record::{Asked, Cell, Estimate, Kind, Round, Summary};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tempfile::TempDir;

/// What is raced.
#[derive(Clone, Copy)]
pub struct Race<'a> {
    /// Names, and what each adds to `regatta serve double --model epoll`. The first is the baseline,
    /// and is entered twice.
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

/// A race that was run, and its result directory.
pub struct Raced {
    /// Its exit status.
    pub code: i32,
    pub stderr: String,
    pub summary: Summary,
    /// Where its results are.
    pub dir: PathBuf,
    /// Removed with it.
    _folder: Option<TempDir>,
}

impl Race<'_> {
    /// Runs it, in a folder that goes with it.
    pub fn run(&self, turn: &Turn) -> Raced {
        let folder = TempDir::new().unwrap();
        let raced = self.run_in(turn, folder.path());
        Raced { _folder: Some(folder), ..raced }
    }

    /// Runs it in `folder`, where its results stay, in `out`.
    pub fn run_in(&self, turn: &Turn, folder: &Path) -> Raced {
        let file = folder.join("race.toml");
        fs::write(&file, self.file()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.arg("race").arg(&file).args(["--out", "out", "--json", "-"]);
        command.current_dir(folder).args(["--seed", &self.seed.to_string()]);
        command.args(["--server-cpus", &turn.server_cpu.to_string()]);
        command.args(["--load-cpus", &turn.load_cpu.to_string()]);
        // These servers are the same from the start, and whether that is seen has tests of its own.
        command.args(["--settle", "0s"]);
        command.args(self.more.split_whitespace());
        if cfg!(debug_assertions) {
            command.arg("--debug-build");
        }
        let ended = run(command, Duration::from_secs(300));
        let summary = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
        let (code, dir) = (ended.code(), folder.join("out"));
        Raced { code, stderr: ended.stderr, summary, dir, _folder: None }
    }

    /// Runs it again, twice at most, where the machine did not hold its speed, so that a cost was
    /// not to be believed. For tests that are about something else. The full form takes every race
    /// as it comes.
    pub fn run_steady(&self, turn: &Turn) -> Raced {
        let mut raced = self.run(turn);
        for _ in 0..if is_full() { 0 } else { 2 } {
            let lost: Vec<_> =
                raced.summary.cells.iter().filter(|c| c.verdict.kind == Kind::Unstable).collect();
            if lost.is_empty() {
                break;
            }
            eprintln!("once more: {}", lost[0].verdict.because);
            raced = self.run(turn);
        }
        raced
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
    /// What was asked, and the rounds, as they are stored.
    pub fn stored(&self) -> (Asked, Vec<Round>) {
        Store::read(&self.dir).unwrap()
    }

    /// The cell of a contender.
    pub fn cell(&self, contender: &str) -> &Cell {
        cell(&self.summary, contender)
    }
}

/// The cell of a contender in a race of one load.
pub fn cell<'a>(summary: &'a Summary, contender: &str) -> &'a Cell {
    summary.cells.iter().find(|cell| cell.contender == contender).unwrap()
}

/// Half the width of an interval of a ratio, in percent.
pub fn half_width(ratio: &Estimate) -> f64 {
    (ratio.high - ratio.low) / 2.0 * 100.0
}

/// `1.0312 [1.0201 to 1.0424]`, or why there is none.
pub fn told(cell: &Cell) -> String {
    match &cell.ratio_to_baseline {
        Some(Estimate { mean, low, high }) => format!("{mean:.4} [{low:.4} to {high:.4}]"),
        None => format!("no ratio: {}", cell.verdict.because),
    }
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
