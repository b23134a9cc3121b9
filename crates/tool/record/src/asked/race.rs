//! The settings of a race, and the machine that it ran on.

use crate::{
    CpuSets, Fingerprint, Heads, LoadShape, Operation, PilotRate, PilotShare, RunningServer,
    ServerMachine, Setup, asked::age,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// The settings of a race: `race.toml` of a result directory. `--resume` takes no other settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the race.
    pub name: String,
    /// Workload of all its cells.
    pub workload: String,
    /// The kind of operation that costs are per, under keys such as `cost_ns_per_request`. Absent: the
    /// request.
    #[serde(default, skip_serializing_if = "Operation::is_request")]
    pub cost_per: Operation,
    /// The kind of operation whose latency is that of a cell. Absent: the request.
    #[serde(default, skip_serializing_if = "Operation::is_request")]
    pub latency_of: Operation,
    /// Names of the contenders, in the order of the table.
    pub contenders: Vec<String>,
    /// The contender in the denominator of ratios.
    pub baseline: String,
    /// The contender that is entered twice, if any.
    pub twin_of: Option<String>,
    /// Passes over all cells; with `precision` or `time_s`, the maximum number.
    pub rounds: u32,
    /// Requested half-width of the intervals of all ratios, as a fraction. Passes are added until it is
    /// reached, is out of reach, or `rounds` are run.
    pub precision: Option<f64>,
    /// How contenders take turns. Absent: in rounds, as all races of the first format.
    #[serde(default)]
    pub schedule: Schedule,
    /// Length of a slice of a duel, in seconds. Absent: the result has no duels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_s: Option<f64>,
    /// Time after which no further pass starts, in seconds. It begins with the pilot pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// Maximum increase of a contender's cost over the baseline's before the race fails, as a
    /// fraction.
    pub fail_over: Option<f64>,
    /// Whether the load never sleeps inside the window, if it has its own CPUs.
    #[serde(default)]
    pub busy_poll: bool,
    /// Measured window in seconds.
    pub window_s: f64,
    /// Maximum warm-up in seconds, unless a contender was observed to need a longer one.
    pub warm_up_s: f64,
    /// How long each contender was observed at each load before its first round, at most, to
    /// measure its warm-up, in seconds; 0: not observed.
    #[serde(default)]
    pub settle_s: f64,
    /// Seed of the order and of all requests.
    pub seed: u64,
    /// Name of the protocol that the workload was sent over. Absent: its usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The heads of the requests. Absent: the workload has none, or the result is from a version
    /// with only identical heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<Heads>,
    /// The loads.
    pub loads: Vec<LoadShape>,
    /// CPUs.
    pub cpus: CpuSets,
    /// The machine and the programs.
    pub setup: Setup,
    /// The programs and files of its rounds, in addition to `setup`. Absent: an earlier regatta did
    /// not store it.
    pub fingerprint: Option<Fingerprint>,
    /// The machine of the contenders, if the load has another one. `setup` and `fingerprint` are then those of the
    /// load's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerMachine>,
    /// Loads of the race file that this machine cannot produce, one sentence each.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// The source of the figures in `then`: title and year.
    pub then_source: Option<String>,
    /// Historical measurements made elsewhere.
    #[serde(default)]
    pub then: Vec<HistoricResult>,
    /// Rates of a pilot pass, if loads are a share of them.
    #[serde(default)]
    pub pilot: Vec<PilotRate>,
    /// Which of them loads are a share of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pilot_shares: Vec<PilotShare>,
    /// Text of the workload file, if `workload` is one.
    pub workload_file: Option<String>,
    /// Command line, lines of code and description of each contender, in the order of `contenders`.
    pub entries: Vec<Entry>,
}

/// How contenders take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// In duels, at every load that allows it: the contenders are alive together, and the load drives one
    /// at a time, in short slices. Other loads are raced in rounds.
    Duels,
    /// In rounds: one contender after the other, each from its start to its stop.
    #[default]
    Rounds,
}

/// A historical measurement made elsewhere, as a figure or in words. It is printed beside our
/// figures, never compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoricResult {
    /// Name of the matching contender here.
    pub contender: String,
    /// The figure with its unit, as published; `None` if only words were published.
    pub figure: Option<String>,
    /// The conditions; without a figure, the published statement.
    pub note: Option<String>,
    /// The matching loads of this race.
    pub loads: Vec<LoadShape>,
}

/// Name of the null server among the contenders. It does the minimum work of a server for each request.
/// A contender can cost less only by waiting less often, or by fewer system calls.
pub const NULL: &str = "null";

/// Prefix in the description of a contender that demonstrates a fault. It is raced and judged like
/// all others, but a race does not fail when it is disqualified.
pub const EXHIBIT: &str = "exhibit:";

/// The name of the second entry of the contender `original`.
pub fn twin_name(original: &str) -> String {
    format!("{original}-twin")
}

impl Asked {
    /// The name of the second entry of [`Asked::twin_of`].
    pub fn twin(&self) -> Option<String> {
        self.twin_of.as_deref().map(twin_name)
    }

    /// Returns the historical measurement of a contender at this load.
    pub fn then(&self, contender: &str, load: &LoadShape) -> Option<&HistoricResult> {
        self.then.iter().find(|then| then.contender == contender && then.loads.contains(load))
    }

    /// Returns the target half-width of a ratio's interval: the requested one, or 2%.
    pub fn half_width(&self) -> f64 {
        self.precision.unwrap_or(0.02)
    }

    /// Whether a load is raced in duels.
    pub fn is_duel(&self, load: &LoadShape) -> bool {
        self.schedule == Schedule::Duels && load.allows_duels()
    }

    /// Whether a contender is an exhibit, by its description.
    pub fn is_exhibit(&self, contender: &str) -> bool {
        let mut named = self.entries.iter().filter(|entry| entry.name == contender);
        named.any(|entry| entry.about.starts_with(EXHIBIT))
    }

    /// Whether a contender is only a reference and not ranked: the null server and the twin.
    pub fn is_reference(&self, contender: &str) -> bool {
        contender == NULL || self.twin().is_some_and(|twin| twin == contender)
    }
}

/// Information on a contender in a report, in addition to its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name in this race.
    pub name: String,
    /// A one-line description.
    pub about: String,
    /// Command line with its placeholders.
    pub start: Vec<String>,
    /// Version of its runtime, as printed by it.
    pub version: Option<String>,
    /// Release date of the version that its manifest pins, `YYYY-MM-DD`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
    /// Environment variables for its start, with their placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Lines of code of its source, without blank lines and comments.
    pub lines_of_code: Option<u32>,
    /// Its manifest, in TOML: with it and `dir` the race can be resumed.
    pub manifest: String,
    /// Directory in which it is started.
    pub dir: PathBuf,
    /// The system that it replaces because that system is not available.
    pub stand_in_for: Option<String>,
    /// The contender whose loop it runs unchanged if it has a single CPU.
    pub one_core_as: Option<String>,
    /// The server that it is, if that ran before the race and is not started by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningServer>,
    /// Why it did not take part, and how to install it.
    pub skipped: Option<String>,
}

impl Entry {
    /// The age of its pinned version at a moment in seconds since 1970, in words: `2.1 years old`,
    /// `5 months old`, `12 days old`.
    /// `None` if the release date is not known, or later than that moment.
    pub fn age(&self, at_unix_s: u64) -> Option<String> {
        age::days_since(self.released.as_deref()?, at_unix_s).map(age::in_words)
    }

    /// Its version: as printed by its runtime, or the version of regatta for one of regatta's own
    /// servers.
    pub fn version(&self, setup: &Setup) -> Option<String> {
        let own = || self.start.first().is_some_and(|program| program == "{regatta}");
        self.version.clone().or_else(|| own().then(|| format!("regatta {}", setup.regatta)))
    }

    /// Its command, preceded by its environment: `FILE={file} server {port}`. For a running server its
    /// URL and its processes.
    pub fn command(&self) -> String {
        if let Some(running) = &self.running {
            return format!("{}, {}", running.url, running.processes());
        }
        let env = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        env.chain(self.start.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
}
