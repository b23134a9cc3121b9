//! What a race was asked, and on what it ran.

use crate::{CpuSets, Fingerprint, Heads, LoadShape, Operation, Setup, years_since};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// What was asked of a race: `race.toml` of a result directory. `--resume` goes by it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The contender that ratios are taken to.
    pub baseline: String,
    /// The contender that is entered twice, where one is.
    pub twin_of: Option<String>,
    /// Passes over all cells; with `precision`, the most of them.
    pub rounds: u32,
    /// Half-width that the intervals of all ratios are to have, as a fraction: passes are added
    /// until they have, or `rounds` are run.
    #[serde(default)]
    pub precision: Option<f64>,
    /// How much dearer than the baseline a contender may be, as a fraction, before the race fails.
    #[serde(default)]
    pub fail_over: Option<f64>,
    /// The load never sleeps inside the window, where it has CPUs of its own.
    #[serde(default)]
    pub busy_poll: bool,
    /// Measured window in seconds.
    pub window_s: f64,
    /// Longest warm-up in seconds of contenders that were not seen to need a longer one.
    pub warm_up_s: f64,
    /// How long each contender was observed under each load at most, before its first round, to see how
    /// long it takes to warm up, in seconds; 0: it was not.
    #[serde(default)]
    pub settle_s: f64,
    /// Seed of the order and of all requests.
    pub seed: u64,
    /// The heads of the requests. Absent: the workload has none, or the result is of a version that
    /// knew identical heads alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<Heads>,
    /// The loads.
    pub loads: Vec<LoadShape>,
    /// CPUs.
    pub cpus: CpuSets,
    /// On what it ran.
    pub setup: Setup,
    /// With what its rounds were run, beside `setup`. Absent: an earlier regatta did not store it.
    #[serde(default)]
    pub fingerprint: Option<Fingerprint>,
    /// Loads of the race file that this machine cannot give, a sentence each.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// Where the figures of `then` come from: title and year.
    #[serde(default)]
    pub then_source: Option<String>,
    /// What others once measured elsewhere.
    #[serde(default)]
    pub then: Vec<Then>,
    /// Rates of a pilot pass, where loads were asked for at a share of them.
    #[serde(default)]
    pub pilot: Vec<PilotRate>,
    /// Text of the workload file, where `workload` is one.
    #[serde(default)]
    pub workload_file: Option<String>,
    /// Command line, lines of code and note of each contender, in the order of `contenders`.
    pub entries: Vec<Entry>,
}

/// How fast a contender was in the pilot pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PilotRate {
    /// Name of the contender.
    pub contender: String,
    /// The closed-loop load.
    pub load: LoadShape,
    /// Requests per second; 0 where it did not finish.
    pub rate_per_s: f64,
}

/// What somebody measured elsewhere, long ago, as a figure or in words: history to be shown beside
/// ours, never compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Then {
    /// Name of the contender here that it belongs to.
    pub contender: String,
    /// The figure with its unit, as printed there; `None` where only words were.
    #[serde(default)]
    pub figure: Option<String>,
    /// Under what conditions; without a figure, what was said.
    #[serde(default)]
    pub note: Option<String>,
    /// The loads of this race that it belongs to.
    pub loads: Vec<LoadShape>,
}

/// Name of the null server among the contenders: the least that a server can do. It shows the floor.
pub const NULL: &str = "null";

/// How the note of a contender begins that is there to be shown wrong: it is raced and judged as all
/// are, and its disqualification is no failure of the race.
pub const EXHIBIT: &str = "exhibit:";

/// Name under which the contender `original` is entered a second time.
pub fn twin_name(original: &str) -> String {
    format!("{original}-twin")
}

impl Asked {
    /// Name under which [`Asked::twin_of`] is entered a second time.
    pub fn twin(&self) -> Option<String> {
        self.twin_of.as_deref().map(twin_name)
    }

    /// What was once measured of a contender under a load like this one.
    pub fn then(&self, contender: &str, load: &LoadShape) -> Option<&Then> {
        self.then.iter().find(|then| then.contender == contender && then.loads.contains(load))
    }

    /// Half-width that a ratio's interval should have: as asked, or else 2%.
    pub fn half_width(&self) -> f64 {
        self.precision.unwrap_or(0.02)
    }

    /// Whether a contender is there to be shown wrong, by its note.
    pub fn is_exhibit(&self, contender: &str) -> bool {
        let mut named = self.entries.iter().filter(|entry| entry.name == contender);
        named.any(|entry| entry.about.starts_with(EXHIBIT))
    }

    /// Whether a contender is there for reference and not ranked: the null server and the twin.
    pub fn is_reference(&self, contender: &str) -> bool {
        contender == NULL || self.twin().is_some_and(|twin| twin == contender)
    }
}

/// What a report tells of a contender, beside its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name in this race.
    pub name: String,
    /// One line of what it is.
    pub about: String,
    /// Command line with its placeholders.
    pub start: Vec<String>,
    /// Version of its runtime, as that says it itself.
    #[serde(default)]
    pub version: Option<String>,
    /// When the version was released that its manifest pins, `YYYY-MM-DD`, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
    /// Environment variables that it is started with, with their placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Lines of code of its source, blank ones and comments left out.
    pub lines_of_code: Option<u32>,
    /// Its manifest, in TOML: with it and `dir` the race can be resumed.
    pub manifest: String,
    /// Directory in which it is started.
    pub dir: PathBuf,
    /// The system that it stands in for, where that is not to be had.
    #[serde(default)]
    pub stand_in_for: Option<String>,
    /// The contender whose very loop it runs when it has a single CPU.
    #[serde(default)]
    pub one_core_as: Option<String>,
    /// Why it did not take part, and how to get it.
    #[serde(default)]
    pub skipped: Option<String>,
}

impl Entry {
    /// How old its pinned version was at a moment in seconds since 1970, in words: `2.1 years old`. `None`
    /// where it is not known when that was released.
    pub fn age(&self, at_unix_s: u64) -> Option<String> {
        let years = years_since(self.released.as_deref()?, at_unix_s)?;
        Some(format!("{years:.1} years old"))
    }

    /// Its version: as its runtime says it, or that of regatta, where it is a server of regatta's own.
    pub fn version(&self, setup: &Setup) -> Option<String> {
        let own = || self.start.first().is_some_and(|program| program == "{regatta}");
        self.version.clone().or_else(|| own().then(|| format!("regatta {}", setup.regatta)))
    }

    /// How it is started, with its environment before the command: `FILE={file} server {port}`.
    pub fn command(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        env.chain(self.start.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
}
