//! A race of honest contenders and liars.

use crate::{
    support::{example::example, regatta},
    truth::stage::Turn,
};
use regatta_race::Store;
use regatta_record::{Cell, Kind, Relation, Round, Summary, WarmUpClass};
use regatta_testkit::child::run_within;
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// A contender: its name, its start command, and a variable of its environment.
pub struct Contender {
    name: &'static str,
    start: Vec<String>,
    env: Option<(&'static str, PathBuf)>,
}

impl Contender {
    /// The program of `examples/PROGRAM.rs`, started with its port and these arguments.
    pub fn example(name: &'static str, program: &str, words: &[&str]) -> Contender {
        let path = example(program);
        let words = words.iter().map(|word| (*word).to_owned());
        let start = [path.display().to_string(), "{port}".to_owned()];
        Contender { name, start: start.into_iter().chain(words).collect(), env: None }
    }

    /// The liar that tells this lie.
    pub fn liar(name: &'static str, lie: &str) -> Contender {
        Contender::example(name, "liar", &lie.split(' ').collect::<Vec<_>>())
    }

    /// A built-in server.
    pub fn regatta(name: &'static str, words: &str) -> Contender {
        let words = format!("{{regatta}} {words} --listen 127.0.0.1:{{port}}");
        Contender { name, start: words.split(' ').map(str::to_owned).collect(), env: None }
    }

    /// The path of its program.
    pub fn program(&self) -> &Path {
        Path::new(&self.start[0])
    }

    /// Adds a path to its environment.
    pub fn with_env(self, variable: &'static str, path: PathBuf) -> Contender {
        Contender { env: Some((variable, path)), ..self }
    }
}

/// A race to run.
pub struct Race<'a> {
    pub workload: &'a str,
    /// The first is the baseline and has a twin.
    pub contenders: &'a [Contender],
    /// The lines of its one load.
    pub load: &'a str,
    /// Passes.
    pub rounds: u32,
    /// Maximum time for which each contender is observed.
    pub settle: &'a str,
}

impl Race<'_> {
    /// Runs the race in `folder`, with its results in `out` there. Each run has another seed.
    pub fn run(&self, turn: &Turn, folder: &Path) -> Raced {
        self.run_in("duels", turn, folder)
    }

    /// The same in `duels` or `rounds`.
    pub fn run_in(&self, schedule: &str, turn: &Turn, folder: &Path) -> Raced {
        let out = folder.join("out");
        if out.exists() {
            fs::remove_dir_all(&out).unwrap();
        }
        fs::write(folder.join("race.toml"), self.file()).unwrap();
        let cpus = turn.cpus();
        let mut race = regatta!("race race.toml --out out --json - --schedule {schedule} {cpus}");
        let ended = run_within(Duration::from_secs(400), race.current_dir(folder));
        assert!(matches!(ended.code(), 0 | 1), "{}", ended.stderr);
        let summary: Summary = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
        let (_, rounds) = Store::read(&out).unwrap();
        Raced { summary, rounds }
    }

    fn file(&self) -> String {
        const WINDOW: &str = "300ms";
        let Race { workload, contenders, load, rounds, settle } = self;
        let names: Vec<&str> = contenders.iter().map(|contender| contender.name).collect();
        let mut file = format!(
            "name = 'lies'\nworkload = '{workload}'\ncontenders = {names:?}\nrounds = {rounds}\n\
             window = '{WINDOW}'\nwarm_up = '{WINDOW}'\nsettle = '{settle}'\n[[load]]\n{load}\n"
        );
        for Contender { name, start, env } in *contenders {
            write!(
                file,
                "[[contender]]\nname = '{name}'\nabout = 'planted'\nworkloads = ['{workload}']\n\
                 start = {start:?}\nready = 'tcp'\n"
            )
            .expect("a string takes it");
            if let Some((variable, path)) = env {
                writeln!(file, "env = {{ {variable} = {path:?} }}").expect("a string takes it");
            }
        }
        file
    }
}

/// A finished race.
pub struct Raced {
    pub summary: Summary,
    pub rounds: Vec<Round>,
}

impl Raced {
    /// The cell of a contender.
    pub fn cell(&self, contender: &str) -> &Cell {
        self.summary.cells.iter().find(|cell| cell.contender == contender).unwrap()
    }

    /// The first doubt that contains this text and names the contender.
    pub fn doubt(&self, contender: &str, text: &str) -> Option<&String> {
        self.summary.doubts.iter().find(|doubt| doubt.contains(text) && names(doubt, contender))
    }

    /// The reason if an honest contender is accused of a lie.
    pub fn accused(&self, honest: &str) -> Option<String> {
        let cell = self.cell(honest);
        let kind = cell.verdict.kind();
        let accuses = [Kind::Disqualified, Kind::Failed, Kind::ServerNotObserved, Kind::OtherCpus];
        if accuses.iter().any(|one| cell.verdict.is(*one)) {
            return Some(format!("{}: {}", kind.name(), cell.verdict.because()));
        }
        if let Some(seen) = cell.settling.filter(|seen| seen.class != WarmUpClass::Flat) {
            return Some(format!("{}: {seen:?}", seen.class.in_words()));
        }
        ACCUSING.iter().find_map(|text| self.doubt(honest, text)).cloned()
    }

    /// Whether `liar` is ranked as cheaper than any of the `honest` contenders.
    pub fn is_above(&self, liar: &str, honest: &[&str]) -> bool {
        let cell = self.cell(liar);
        let beats = |honest: &str| match (cell.band, self.cell(honest).band) {
            (Some(own), Some(other)) => own.worst < other.best,
            _ => false,
        };
        cell.relation == Some(Relation::Cheaper) || honest.iter().any(|one| beats(one))
    }

    /// The rounds of a contender.
    pub fn rounds_of(&self, contender: &str) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(move |round| round.contender == contender)
    }

    /// The cost of a request in each round of a contender, in microseconds.
    pub fn costs(&self, contender: &str) -> Vec<f64> {
        let cost = |round: &Round| {
            Some(round.server.as_ref()?.cpu_ns as f64 / round.requests.max(1) as f64 / 1e3)
        };
        self.rounds_of(contender).filter_map(cost).collect()
    }

    /// Mean and interval of the ratio to the baseline.
    pub fn ratio(&self, contender: &str) -> String {
        match self.cell(contender).ratio_to_baseline {
            Some(ratio) => format!("{:.2}× [{:.2}–{:.2}]", ratio.mean, ratio.low, ratio.high),
            None => "no ratio".to_owned(),
        }
    }
}

/// Texts of doubts that accuse a contender.
const ACCUSING: [&str; 6] = [
    "leaves the machine",
    "leaves work behind",
    "differs between starts",
    "source addresses",
    "never settled",
    "the figures remain valid",
];

/// Returns whether a sentence has the whole name of a contender.
fn names(sentence: &str, contender: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '-';
    sentence.split(|c| !is_of_name(c)).any(|word| word == contender)
}

/// Returns a folder for a race.
pub fn folder() -> TempDir {
    TempDir::new().unwrap()
}
