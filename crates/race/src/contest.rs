//! A race as asked: `races/*.toml`, bundled or the user's own, and what the command line changes.

use crate::{
    bundled,
    loads::{CoreCount, Loads, available},
    manifest::Manifest,
    nearest::hint_of_key,
    rate::Paces,
};
use regatta_record::{CpuSets, Drive, Heads, LoadShape, Then};
use regatta_script::{Workload, WorkloadError};
use serde::{Deserialize, Deserializer};
use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

/// Of a shorter window nothing can be said: slices, and the ticks of CPU clocks, are too coarse.
pub(crate) const SHORTEST_WINDOW: Duration = Duration::from_millis(50);

/// A race file. Every key has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contest {
    /// Name of the race. Absent: that of its file.
    #[serde(default)]
    pub name: String,
    /// Workload of all its cells: its name. In the file also a workload file, by its path relative
    /// to the race file. Absent: `double`.
    #[serde(default = "double")]
    pub workload: String,
    /// Whether it comes with this program. Then contenders that are unknown here are skipped, because
    /// peers are not installed everywhere.
    #[serde(skip)]
    pub bundled: bool,
    /// The whole text of the workload, where it is a file.
    #[serde(skip)]
    pub workload_file: Option<String>,
    /// What a contender must serve to be asked the workload, where it is a file.
    #[serde(skip)]
    pub(crate) file_service: Option<String>,
    /// Contenders by name; `peers` stands for every one that serves the workload and is neither
    /// built in nor this file's own. Absent: every one that is known and serves it.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// The contender that ratios are taken to. Absent: the first one.
    pub baseline: Option<String>,
    /// The contender to enter twice, as the measure of noise. Absent: the baseline.
    pub twin_of: Option<String>,
    /// Passes over all cells. Absent: 5, the fewest for a table to publish.
    #[serde(default = "five")]
    pub rounds: u32,
    /// The measured window. Absent: a second.
    #[serde(default = "second", deserialize_with = "duration")]
    pub window: Duration,
    /// The longest warm-up; it ends earlier once the rate is steady. Absent: a second.
    #[serde(default = "second", deserialize_with = "duration")]
    pub warm_up: Duration,
    /// The heads of the requests, where the workload is built in and has heads. Absent: varied.
    pub heads: Option<Heads>,
    /// How long each contender is observed under each load at most, before its first round, to see
    /// when its cost is steady; zero: it is not. Absent: half a minute.
    #[serde(default = "half_a_minute", deserialize_with = "duration")]
    pub settle: Duration,
    /// Manifests of contenders that there are in this race alone, beside those that are known; one
    /// that is known by the same name is replaced. They are started in the working directory.
    #[serde(default, rename = "contender")]
    pub own: Vec<Manifest>,
    /// The loads: every combination of each entry's values. Absent: 64 connections in closed loop.
    #[serde(default = "Loads::usual", rename = "load")]
    pub loads: Vec<Loads>,
    /// Where the figures of `then` were printed: title and year.
    pub then_source: Option<String>,
    /// What was once measured elsewhere, to be shown beside what is measured now. Of several that
    /// belong to a cell the first is shown.
    #[serde(default)]
    pub then: Vec<Once>,
}

/// What somebody once measured elsewhere: one figure of a contender, or a word on it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Once {
    /// Name of the contender here.
    contender: String,
    /// With its unit, as printed there; absent where there only were words.
    figure: Option<String>,
    /// Under what conditions; without a figure, what was said.
    note: Option<String>,
    /// The loads of this race that it belongs to: those that have all of this. Absent: every load.
    #[serde(default)]
    load: Selector,
}

/// What a load must have; what is absent may be anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Selector {
    connections: Option<u32>,
    idle: Option<u32>,
    passing: Option<u32>,
    pipeline: Option<u32>,
    in_flight: Option<u32>,
    churn: Option<bool>,
    cores: Option<CoreCount>,
    burst: Option<bool>,
    requests: Option<u32>,
    n: Option<u32>,
}

impl Selector {
    fn takes(&self, load: &LoadShape, available: u32) -> bool {
        let cores = self.cores.map(|cores| Some(cores.resolve(available)));
        self.connections.is_none_or(|n| n == load.connections)
            && self.idle.is_none_or(|n| n == load.idle)
            && self.passing.is_none_or(|n| n == load.passing)
            && self.pipeline.is_none_or(|n| n == load.pipeline)
            && self.in_flight.is_none_or(|n| load.drive == bounded(n))
            && self.churn.is_none_or(|churn| churn == load.drive.churns())
            && cores.is_none_or(|cores| cores == load.cores)
            && self.burst.is_none_or(|burst| burst == load.drive.burst().is_some())
            && self.requests.is_none_or(|n| Some(n) == load.requests)
            && self.n.is_none_or(|n| Some(n) == load.n)
    }
}

/// So many requests in flight over all connections, if that is a number.
fn bounded(in_flight: u32) -> Drive {
    let in_flight = NonZeroU32::new(in_flight);
    in_flight.map_or(Drive::Closed, |in_flight| Drive::Bounded { in_flight })
}

/// Why a race file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContestError {
    /// It cannot be read.
    #[error("cannot read the race {origin}: {error}")]
    Read {
        /// The path that was given.
        origin: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It is not TOML of the right form.
    #[error("the race {origin} cannot be understood: {error}{}", hint_of_key(error))]
    Syntax {
        /// Where it came from.
        origin: String,
        /// Line, column and what was expected.
        error: toml::de::Error,
    },
    /// It is well-formed but asks for something that cannot be.
    #[error("the race {origin} cannot be run: {because}")]
    Value {
        /// Where it came from.
        origin: String,
        /// What is wrong, and what is permitted.
        because: String,
    },
    /// Neither a file nor the name of a bundled race.
    #[error(
        "there is no race `{name}`: expected a path to a .toml file, or one of the bundled races: {}",
        bundled::names()
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
}

/// All bundled races.
#[cfg(test)]
pub(crate) fn bundled_races() -> Vec<Contest> {
    let found = |(name, _)| Contest::find(name).expect("a bundled race is right");
    bundled::RACES.into_iter().map(found).collect()
}

impl Contest {
    /// What contenders must serve to take part, as in their manifests: that of the workload.
    pub fn service(&self) -> String {
        let built_in = || Some(Workload::parse(&self.workload)?.service().to_owned());
        self.file_service.clone().or_else(built_in).unwrap_or_else(|| self.workload.clone())
    }

    /// A bundled race by its name, or a file by its path.
    pub fn find(name: &str) -> Result<Self, ContestError> {
        if let Some((_, text)) = bundled::RACES.iter().find(|(bundled, _)| *bundled == name) {
            let mut contest = Contest { bundled: true, ..Contest::parse(text, name)? };
            if let Some(path) = contest.workload_path() {
                let stem = path.file_stem().unwrap_or_default();
                let (file, text) = bundled::WORKLOADS
                    .iter()
                    .find(|(file, _)| *file == stem)
                    .expect("the workload files of bundled races are bundled");
                contest.ask(Workload::from_text(text, file), name)?;
            }
            return Ok(contest);
        }
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err(ContestError::Unknown { name: name.into() });
        }
        let text = std::fs::read_to_string(name)
            .map_err(|error| ContestError::Read { origin: name.into(), error })?;
        let mut contest = Contest::parse(&text, name)?;
        if let Some(path) = contest.workload_path() {
            let folder = Path::new(name).parent().unwrap_or(Path::new(""));
            contest.ask(Workload::read(&folder.join(path)), name)?;
        }
        Ok(contest)
    }

    /// The workload file that the race file names, if it names one.
    fn workload_path(&self) -> Option<PathBuf> {
        self.workload.ends_with(".toml").then(|| PathBuf::from(&self.workload))
    }

    /// Asks what a workload file says.
    fn ask(
        &mut self,
        file: Result<Workload, WorkloadError>,
        origin: &str,
    ) -> Result<(), ContestError> {
        let file = file.map_err(|error| ContestError::Value {
            origin: origin.into(),
            because: error.to_string(),
        })?;
        self.workload = file.name().into();
        self.workload_file = file.text().map(str::to_owned);
        self.file_service = Some(file.service().into());
        Ok(())
    }

    /// Reads a race file, but not the workload file that it may name; `origin` is named in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ContestError> {
        let mut contest: Contest = toml::from_str(text)
            .map_err(|error| ContestError::Syntax { origin: origin.into(), error })?;
        if contest.name.is_empty() {
            let stem = Path::new(origin).file_stem().unwrap_or(origin.as_ref());
            contest.name = stem.to_string_lossy().into_owned();
        }
        let wrong = |because: &str| {
            Err(ContestError::Value { origin: origin.into(), because: because.into() })
        };
        if contest.rounds == 0 {
            return wrong("`rounds` is 0; at least 1 is needed, at least 5 for a table to publish");
        }
        if contest.window < SHORTEST_WINDOW {
            return wrong("`window` is shorter than 50ms; nothing can be measured in that");
        }
        if contest.loads.is_empty() {
            return wrong("it has no load; add [[load]] with connections = 64");
        }
        if let Some(because) = contest.loads.iter().find_map(Loads::contradiction) {
            return wrong(&because);
        }
        let of_hash = contest.loads.iter().find_map(Loads::of_hash_alone);
        if let Some(what) = of_hash.filter(|_| contest.workload != "hash") {
            return wrong(&format!(
                "`{what}` is of the workload hash, and this race is of {}; leave it out",
                contest.workload
            ));
        }
        let is_pushed = Workload::parse(&contest.workload).is_some_and(|w| w.is_pushed());
        let of_hub = contest.loads.iter().find_map(Loads::of_hub_alone);
        if let Some(what) = of_hub.filter(|_| !is_pushed) {
            return wrong(&format!(
                "`{what}` is of the workloads hub and hub-echo, and this race is of {}; leave it out",
                contest.workload
            ));
        }
        if let Some(because) = contest.own.iter().find_map(|own| own.check().err()) {
            return wrong(&because);
        }
        if !contest.then.is_empty() && contest.then_source.is_none() {
            return wrong(
                "`then` needs `then_source`: title and year of what its figures are from",
            );
        }
        if contest.then.iter().any(|then| then.figure.is_none() && then.note.is_none()) {
            return wrong("`then` needs a `figure`, or words in a `note`");
        }
        Ok(contest)
    }

    /// The loads on these CPUs, multiplied out, in the order of the file, without repetitions; and
    /// which of them these CPUs cannot give, a sentence each. Loads at a share of what the
    /// contenders can do stand there in closed loop, until a pilot pass has told the rates.
    pub fn loads(&self, cpus: &CpuSets) -> (Vec<LoadShape>, Vec<String>) {
        self.loads_at(cpus, &Paces::default())
    }

    /// The same, after a pilot pass.
    pub(crate) fn loads_at(&self, cpus: &CpuSets, paces: &Paces) -> (Vec<LoadShape>, Vec<String>) {
        let (shapes, left_out) =
            self.loads.iter().map(|entry| entry.shapes(cpus, paces)).collect::<(Vec<_>, Vec<_>)>();
        (without_repetitions(shapes.into_iter().flatten()), left_out.concat())
    }

    /// The closed-loop loads whose rates a pilot pass must find out, without repetitions. In these, all
    /// connections read.
    pub(crate) fn pilot_loads(&self, cpus: &CpuSets) -> Vec<LoadShape> {
        let entries = self.loads.iter().filter(|entry| entry.needs_pilot());
        let shapes = entries.flat_map(|entry| entry.shapes(cpus, &Paces::default()).0);
        let closed = |load: LoadShape| LoadShape { drive: Drive::Closed, stalled: 0, ..load };
        without_repetitions(shapes.map(closed))
    }

    /// What was once measured, with the loads that each figure belongs to.
    pub fn then(&self, cpus: &CpuSets, loads: &[LoadShape]) -> Vec<Then> {
        let available = available(cpus);
        let resolved = self.then.iter().map(|once| Then {
            contender: once.contender.clone(),
            figure: once.figure.clone(),
            note: once.note.clone(),
            loads: loads.iter().filter(|l| once.load.takes(l, available)).copied().collect(),
        });
        resolved.filter(|then| !then.loads.is_empty()).collect()
    }
}

fn without_repetitions(all: impl Iterator<Item = LoadShape>) -> Vec<LoadShape> {
    let mut loads = Vec::new();
    for load in all {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    loads
}

fn double() -> String {
    "double".into()
}

fn five() -> u32 {
    5
}

fn half_a_minute() -> Duration {
    Duration::from_secs(30)
}

fn second() -> Duration {
    Duration::from_secs(1)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|error| {
        serde::de::Error::custom(format!("{error}; write a time with its unit, as \"500ms\""))
    })
}

#[cfg(test)]
mod tests;
