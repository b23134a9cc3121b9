//! What a race was asked, on what it ran, and its judged summary.

use crate::{Latency, Verdict};
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};

/// One load that every contender of a race meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LoadShape {
    /// Open connections that send.
    pub connections: u32,
    /// Further connections, open and silent.
    #[serde(default)]
    pub idle: u32,
    /// Requests outstanding on each connection, at most.
    pub pipeline: u32,
    /// A new connection for every request.
    #[serde(default)]
    pub churn: bool,
    /// Requests per second in all, evenly spaced; `None`: as fast as the replies come.
    #[serde(default)]
    pub rate: Option<u32>,
    /// CPUs that the contender gets; `None`: all that the race has for it.
    #[serde(default)]
    pub cores: Option<u32>,
    /// A counted burst instead of a window of time.
    #[serde(default)]
    pub burst: Option<Burst>,
}

/// A burst: several load instances at once, each with its share of the connections; every
/// connection connects, sends its requests, reads its replies and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Burst {
    /// Load instances; each has `connections / instances` connections.
    pub instances: u32,
    /// Requests of each connection.
    pub requests: u32,
}

impl LoadShape {
    /// So many connections, each with so many requests outstanding, in closed loop.
    pub const fn closed(connections: u32, pipeline: u32) -> Self {
        let (idle, churn, rate, cores, burst) = (0, false, None, None, None);
        LoadShape { connections, idle, pipeline, churn, rate, cores, burst }
    }
}

impl fmt::Display for LoadShape {
    /// As it stands in tables: `64 conn`, `64 conn × 16`, `64 conn, churn`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} conn", self.connections)?;
        if self.idle > 0 {
            write!(f, " + {} idle", self.idle)?;
        }
        if self.pipeline > 1 {
            write!(f, " × {}", self.pipeline)?;
        }
        if self.churn {
            write!(f, ", churn")?;
        }
        if let Some(rate) = self.rate {
            write!(f, ", {rate}/s")?;
        }
        if let Some(cores) = self.cores {
            write!(f, ", {cores} {}", if cores == 1 { "core" } else { "cores" })?;
        }
        if let Some(Burst { instances, requests }) = self.burst {
            write!(f, ", burst of {instances} × {requests}")?;
        }
        Ok(())
    }
}

/// Which CPUs were given to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSets {
    /// The contender's.
    pub server: Vec<u32>,
    /// The load's.
    pub load: Vec<u32>,
}

/// What was asked of a race: `race.toml` of a result directory. `--resume` goes by it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the race.
    pub name: String,
    /// Workload of all its cells.
    pub workload: String,
    /// Names of the contenders, in the order of the table.
    pub contenders: Vec<String>,
    /// The contender that ratios are taken to.
    pub baseline: String,
    /// The contender that is entered twice, where one is.
    pub twin_of: Option<String>,
    /// Passes over all cells.
    pub rounds: u32,
    /// Measured window in seconds.
    pub window_s: f64,
    /// Longest warm-up in seconds.
    pub warm_up_s: f64,
    /// Seed of the order and of all requests.
    pub seed: u64,
    /// The loads.
    pub loads: Vec<LoadShape>,
    /// CPUs.
    pub cpus: CpuSets,
    /// On what it ran.
    pub setup: Setup,
    /// Command line, lines of code and note of each contender, in the order of `contenders`.
    pub entries: Vec<Entry>,
}

/// Name of the null server among the contenders: the least that a server can do. It shows the floor.
pub const NULL: &str = "null";

/// Name under which the contender `original` is entered a second time.
pub fn twin_name(original: &str) -> String {
    format!("{original}-twin")
}

impl Asked {
    /// Name under which [`Asked::twin_of`] is entered a second time.
    pub fn twin(&self) -> Option<String> {
        self.twin_of.as_deref().map(twin_name)
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
    /// Lines of code of its source, blank ones and comments left out.
    pub lines_of_code: Option<u32>,
    /// Its manifest, in TOML: with it and `dir` the race can be resumed.
    pub manifest: String,
    /// Directory in which it is started.
    pub dir: PathBuf,
    /// The system that it stands in for, where that is not to be had.
    #[serde(default)]
    pub stand_in_for: Option<String>,
    /// Why it did not take part, and how to get it.
    #[serde(default)]
    pub skipped: Option<String>,
}

/// The machine and the programs of a race.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Version of regatta and git revision, as far as known at its build.
    pub regatta: String,
    /// The whole command line.
    pub command_line: Vec<String>,
    /// Kernel release and version.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// CPUs online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Frequency governor, where there is one.
    pub governor: Option<String>,
    /// CPU mitigations that are active, by vulnerability.
    pub mitigations: Vec<String>,
    /// Open files a process may have.
    pub open_files: u64,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// Local port range.
    pub port_range: Option<(u16, u16)>,
    /// How processes were contained: `v2`, `v1` or `none`.
    pub cgroup: String,
    /// Seconds since the Unix epoch at the start.
    pub started_unix_s: u64,
}

/// A mean with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean (geometric for ratios).
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How a cell's cost compares with the baseline's (method, rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// It is the baseline.
    Baseline,
    /// The interval lies within ± max(2%, noise floor).
    Tied,
    /// The interval contains 1 and is wider than that.
    NotToldApart,
    /// Surely cheaper.
    Cheaper,
    /// Surely dearer.
    Dearer,
}

/// The ranks by cost that a contender could hold, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// 1 + those surely better.
    pub best: u32,
    /// Contenders − those surely worse.
    pub worst: u32,
}

/// A contender under a load, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the workload.
    pub workload: String,
    /// The load.
    pub load: LoadShape,
    /// Name of the contender.
    pub contender: String,
    /// Rounds that entered the figures.
    pub rounds: u32,
    /// Right answers in all of those.
    pub requests: u64,
    /// Server CPU per request, nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Requests per second.
    pub rate_per_s: Option<Estimate>,
    /// Service time over all rounds, merged without loss.
    pub latency_ns: Latency,
    /// Memory with the connections open, bytes; median over rounds.
    pub memory_bytes: Option<u64>,
    /// Context switches per request, both kinds.
    pub switches_per_request: Option<f64>,
    /// Load CPU per request, nanoseconds.
    pub load_cpu_ns_per_request: Option<Estimate>,
    /// Rate of the null server over this one's: how much faster the load could have gone.
    pub headroom: Option<f64>,
    /// Fraction of its CPUs that the server used.
    pub server_busy: Option<f64>,
    /// Fraction of its CPUs that the load used.
    pub load_busy: Option<f64>,
    /// Cost over the baseline's cost of the same round.
    pub ratio_to_baseline: Option<Estimate>,
    /// What that ratio means.
    pub relation: Option<Relation>,
    /// Ranks that it could hold among the contenders of this load.
    pub band: Option<Band>,
    /// The judgement.
    pub verdict: Verdict,
}

/// A judged race: `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// What was asked, and on what.
    pub asked: Asked,
    /// Half-width of the twin's interval, pooled over cells, as a fraction; `None` without a twin.
    pub noise_floor: Option<f64>,
    /// Whether all rounds that were asked for are there.
    pub complete: bool,
    /// The cells: loads in the order asked, contenders by cost within each.
    pub cells: Vec<Cell>,
    /// What in this race might mislead, one sentence each, with advice.
    pub doubts: Vec<String>,
}
