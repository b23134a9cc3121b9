//! The race file: `races/*.toml`, bundled or the user's own. `prepare` applies the command line.

use crate::{
    ask::{
        loads::{CoreCount, Loads, available},
        over,
        rate::{Paces, Rate},
    },
    contenders::{bundled, manifest::Manifest, nearest::hint_of_key},
};
use regatta_record::{CpuSets, Drive, Heads, HistoricResult, LoadShape, PilotShare, Schedule};
use regatta_script::{Workload, WorkloadError};
use serde::{Deserialize, Deserializer};
use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

/// Minimum window. In a shorter one, slices and the ticks of CPU clocks are too coarse.
pub(crate) const SHORTEST_WINDOW: Duration = Duration::from_millis(50);

/// A race file. Every key has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contest {
    /// Name of the race. Absent: the name of its file.
    #[serde(default)]
    pub name: String,
    /// Name of the workload of all its cells. In the file also the path of a workload file, relative
    /// to the race file. Absent: `double`.
    #[serde(default = "double")]
    pub workload: String,
    /// Whether the race comes with this program. Unknown contenders of a bundled race are skipped,
    /// because peers are not installed everywhere.
    #[serde(skip)]
    pub bundled: bool,
    /// Whether the command line names every contender, so that one that cannot race is an error.
    #[serde(skip)]
    pub(crate) all_named: bool,
    /// The whole text of the workload file, if the workload is a file.
    #[serde(skip)]
    pub workload_file: Option<String>,
    /// The service that contenders must provide, if the workload is a file.
    #[serde(skip)]
    pub(crate) file_service: Option<String>,
    /// Name of the protocol that the workload is sent over, if it is not its usual one. In the file, the key is
    /// the name of the usual one, and the value the version.
    #[serde(skip)]
    pub over: Option<String>,
    /// Contenders by name. `peers` stands for all that serve the workload and are neither built in nor
    /// defined in this file, and have no further nodes. Absent: all known contenders that serve the workload,
    /// but those of further nodes only if they are defined in this file.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// The contender that all others are compared with. Absent: the first one, except the null server.
    pub baseline: Option<String>,
    /// The contender to enter twice, to measure the noise floor. Absent: the baseline.
    pub twin_of: Option<String>,
    /// Number of passes over all cells. Absent: 5, the minimum for a table to publish.
    #[serde(default = "five")]
    pub rounds: u32,
    /// How contenders take turns. Absent: in duels.
    #[serde(default = "duels")]
    pub schedule: Schedule,
    /// Length of a slice of a duel. Absent: 25 ms, longer at a low rate.
    #[serde(default, deserialize_with = "some_duration")]
    pub slice: Option<Duration>,
    /// Target half-width of the confidence intervals of all ratios, e.g. `1%`: passes are added until it is
    /// reached. Absent: `rounds` passes are run.
    #[serde(default, deserialize_with = "some_percent")]
    pub precision: Option<f64>,
    /// No pass starts after this time, which begins with the pilot pass, except the first three lives or five rounds,
    /// and lives that replace disturbed ones. Absent: no limit but `rounds`.
    #[serde(default, deserialize_with = "some_duration")]
    pub time: Option<Duration>,
    /// The measured window of a round. Absent: 1 s.
    #[serde(default = "second", deserialize_with = "duration")]
    pub window: Duration,
    /// The maximum warm-up, unless a contender was observed to need a longer one. It ends earlier once
    /// the rate is steady. Absent: 1 s.
    #[serde(default = "second", deserialize_with = "duration")]
    pub warm_up: Duration,
    /// The heads of the requests, if the workload is built in and has heads. Absent: varied.
    pub heads: Option<Heads>,
    /// Maximum time that each contender is observed under each load before its first round, to see
    /// when its cost is steady; zero: not observed. Absent: 30 s.
    #[serde(default = "half_a_minute", deserialize_with = "duration")]
    pub settle: Duration,
    /// Manifests of contenders that exist only in this race. They replace known contenders of the same
    /// name, and are started in the working directory.
    #[serde(default, rename = "contender")]
    pub own: Vec<Manifest>,
    /// The loads: every combination of each entry's values. Absent: 64 connections in a closed loop.
    #[serde(default = "Loads::usual", rename = "load")]
    pub loads: Vec<Loads>,
    /// Source of the figures in `then`: title and year.
    pub then_source: Option<String>,
    /// Figures published elsewhere, shown beside the measured ones. If several belong to a cell, the
    /// first is shown.
    #[serde(default)]
    pub then: Vec<PublishedFigure>,
}

/// A figure or remark on a contender that was published elsewhere.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Name of the contender here.
    contender: String,
    /// The figure with its unit, as published; absent if there were only words.
    figure: Option<String>,
    /// The conditions of the figure; without a figure, the remark itself.
    note: Option<String>,
    /// The loads of this race that it belongs to: those that match all of this. Absent: every load.
    #[serde(default)]
    load: Selector,
}

/// Values that a load must have; an absent one may be anything.
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

/// Returns the drive with so many requests in flight over all connections; a closed loop for 0.
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
        /// The system's error.
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
    /// It is well-formed but asks for something impossible.
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
    /// Returns the service that a contender's manifest must name to take part.
    pub fn service(&self) -> String {
        let built_in = || Some(Workload::parse(&self.workload)?.service().to_owned());
        self.file_service.clone().or_else(built_in).unwrap_or_else(|| self.workload.clone())
    }

    /// Finds a bundled race by its name, or reads a file by its path.
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

    /// Returns the path of the workload file that the race file names, if it names one.
    fn workload_path(&self) -> Option<PathBuf> {
        self.workload.ends_with(".toml").then(|| PathBuf::from(&self.workload))
    }

    /// Returns the workload. `None`: it is unknown, or its file is wrong, which is reported elsewhere.
    pub(crate) fn spoken(&self) -> Option<Workload> {
        match &self.workload_file {
            Some(text) => Workload::from_text(text, &self.workload).ok(),
            None => Workload::parse(&self.workload),
        }
    }

    /// Sets the workload to that of a workload file.
    pub(crate) fn ask(
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

    /// Parses a race file, but does not read the workload file that it may name. Errors name `origin`.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ContestError> {
        let (text, over) = over::taken_out(text)
            .map_err(|because| ContestError::Value { origin: origin.into(), because })?;
        let mut contest: Contest = toml::from_str(&text)
            .map_err(|error| ContestError::Syntax { origin: origin.into(), error })?;
        contest.over = over.map(str::to_owned);
        if contest.name.is_empty() {
            let stem = Path::new(origin).file_stem().unwrap_or(origin.as_ref());
            contest.name = stem.to_string_lossy().into_owned();
        }
        let wrong = |because: &str| {
            Err(ContestError::Value { origin: origin.into(), because: because.into() })
        };
        if contest.rounds == 0 {
            return wrong(
                "`rounds` is 0; it must be at least 1, at least 5 for a table to publish",
            );
        }
        if contest.window < SHORTEST_WINDOW {
            return wrong("`window` is too short to measure anything; it must be at least 50ms");
        }
        if contest.loads.is_empty() {
            return wrong("it has no load; add [[load]] with connections = 64");
        }
        if let Some(because) = contest.loads.iter().find_map(Loads::contradiction) {
            return wrong(&because);
        }
        let of_hash = contest.loads.iter().find_map(Loads::hash_only_key);
        if let Some(what) = of_hash.filter(|_| contest.workload != "hash") {
            return wrong(&format!(
                "`{what}` applies only to the workload hash; this race runs {}; leave it out",
                contest.workload
            ));
        }
        let is_pushed = Workload::parse(&contest.workload).is_some_and(|w| w.is_pushed());
        let of_hub = contest.loads.iter().find_map(Loads::hub_only_key);
        if let Some(what) = of_hub.filter(|_| !is_pushed) {
            return wrong(&format!(
                "`{what}` applies only to the workloads hub and hub-echo; this race runs {}; leave \
                 it out",
                contest.workload
            ));
        }
        if let Some(because) = contest.own.iter().find_map(|own| own.check().err()) {
            return wrong(&because);
        }
        if !contest.then.is_empty() && contest.then_source.is_none() {
            return wrong(
                "`then` needs `then_source`: title and year of the source of its figures",
            );
        }
        if contest.then.iter().any(|then| then.figure.is_none() && then.note.is_none()) {
            return wrong("`then` needs a `figure` or a `note`");
        }
        Ok(contest)
    }

    /// Returns the loads that fit these CPUs, multiplied out, in the order of the file, without
    /// repetitions; and a sentence for each that does not fit. Loads at a share of what the
    /// contenders can do are returned as closed loops, until a pilot pass has measured the rates.
    pub fn loads(&self, cpus: &CpuSets) -> (Vec<LoadShape>, Vec<String>) {
        self.loads_at(cpus, &Paces::default())
    }

    /// Returns the same after a pilot pass.
    pub(crate) fn loads_at(&self, cpus: &CpuSets, paces: &Paces) -> (Vec<LoadShape>, Vec<String>) {
        let (shapes, left_out) =
            self.loads.iter().map(|entry| entry.shapes(cpus, paces)).collect::<(Vec<_>, Vec<_>)>();
        let (mut left_out, shapes) = (left_out.concat(), shapes.into_iter().flatten());
        let (duels, rounds): (Vec<_>, Vec<_>) = without_repetitions(shapes)
            .into_iter()
            .partition(|load| !cpus.apart || load.allows_duels());
        let why = |load: LoadShape| {
            format!("{load}: it is raced in rounds, and with --server only duels work yet")
        };
        left_out.extend(rounds.into_iter().map(why));
        (duels, left_out)
    }

    /// Returns the closed-loop loads whose rates a pilot pass must measure, without repetitions. All
    /// of their connections read.
    pub(crate) fn pilot_loads(&self, cpus: &CpuSets) -> Vec<LoadShape> {
        without_repetitions(self.loads.iter().flat_map(|entry| entry.pilot_loads(cpus)))
    }

    /// Returns which rates of a pilot pass its loads are a share of, without repetitions.
    pub(crate) fn pilot_shares(&self, cpus: &CpuSets) -> Vec<PilotShare> {
        without_repetitions(self.loads.iter().flat_map(|entry| {
            let closed = entry.pilot_loads(cpus).into_iter();
            closed.flat_map(move |load| {
                let extremes = entry.rates().filter_map(Rate::extreme);
                extremes.map(move |of| PilotShare { load, of })
            })
        }))
    }

    /// Returns the figures published elsewhere, with the loads that each belongs to.
    pub fn then(&self, cpus: &CpuSets, loads: &[LoadShape]) -> Vec<HistoricResult> {
        let available = available(cpus);
        let resolved = self.then.iter().map(|once| HistoricResult {
            contender: once.contender.clone(),
            figure: once.figure.clone(),
            note: once.note.clone(),
            loads: loads.iter().filter(|l| once.load.takes(l, available)).copied().collect(),
        });
        resolved.filter(|then| !then.loads.is_empty()).collect()
    }
}

fn without_repetitions<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut different = Vec::new();
    for one in all {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    different
}

fn double() -> String {
    "double".into()
}

fn five() -> u32 {
    5
}

fn duels() -> Schedule {
    Schedule::Duels
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
        serde::de::Error::custom(format!("{error}; write a time with its unit, e.g. \"500ms\""))
    })
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

fn some_percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.strip_suffix('%').and_then(|digits| digits.trim_end().parse::<f64>().ok());
    number.filter(|n| *n > 0.0 && *n <= 100.0).map(|n| Some(n / 100.0)).ok_or_else(|| {
        serde::de::Error::custom("expected a percentage above 0% and up to 100%, e.g. \"1%\"")
    })
}

#[cfg(test)]
mod tests;
