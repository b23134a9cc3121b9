//! A judged race: its cells, and what they say of each other.

use crate::{
    Asked, Curve, Estimate, Gate, KernelMemorySource, Latency, LoadShape, Operation, ReplySeen,
    Settling, Unknown, Verdict,
};
use serde::{Deserialize, Serialize};

/// How a cell's cost compares with the baseline's (method, rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// It is the baseline.
    Baseline,
    /// The interval lies within ±2%.
    Tied,
    /// Neither, as far as the rounds show: the interval is wider than that and reaches within the noise
    /// floor, or the difference may be chance.
    NotToldApart,
    /// Surely cheaper, by more than the noise floor.
    Cheaper,
    /// Surely dearer, by more than the noise floor.
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

/// What more cores changed: ratios to the same contender under the same load with the fewest,
/// paired within passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The fewest cores.
    pub from_cores: u32,
    /// The cores of this cell.
    pub cores: u32,
    /// Cost over the cost with the fewest cores.
    pub cost: Option<Estimate>,
    /// Rate over the rate with the fewest cores; `None` where rates say nothing.
    pub rate: Option<Estimate>,
}

/// Latency percentiles of a cell over those of another cell, paired by round: the geometric mean of the
/// rounds' ratios and its 95% interval. The latency is that of a cell, of [`Asked::latency_of`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyRatio {
    /// Ratio of the 95th percentiles.
    pub p95: Option<Estimate>,
    /// Ratio of the 99th percentiles.
    pub p99: Option<Estimate>,
    /// Why there is no ratio, or only one of them: a sentence. Absent: both are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl LatencyRatio {
    /// Whether at least one of the ratios is there.
    pub fn is_there(&self) -> bool {
        self.p95.is_some() || self.p99.is_some()
    }
}

/// A contender under a load, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the workload.
    pub workload: String,
    /// The load.
    pub load: LoadShape,
    /// Server and load had to share CPUs: the cost is told and nothing else.
    #[serde(default)]
    pub shared_cpus: bool,
    /// Name of the contender.
    pub contender: String,
    /// Rounds that entered the figures.
    pub rounds: u32,
    /// Right answers in all of those.
    pub requests: u64,
    /// Members that came and went in all of those, warm-ups included. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passed: u64,
    /// A reply, as it was seen beside the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ReplySeen>,
    /// Server CPU per request, or per [`Asked::cost_per`], nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Requests per second.
    pub rate_per_s: Option<Estimate>,
    /// Of a counted load: its time over its requests, milliseconds, all connections at work at once
    /// (what `ab` calls the time per request across all concurrent requests).
    #[serde(default)]
    pub ms_per_request: Option<Estimate>,
    /// Requests per second of the load beside, where there was one.
    #[serde(default)]
    pub beside_per_s: Option<Estimate>,
    /// Wall time of an instance of a burst, seconds: the mean over the instances of a round, over
    /// the rounds.
    #[serde(default)]
    pub instance_s: Option<Estimate>,
    /// Wall time of the slowest instance of all rounds, seconds.
    #[serde(default)]
    pub slowest_instance_s: Option<f64>,
    /// Latency over all rounds, merged without loss: in closed loop from the write of a request, in
    /// open loop from its intended send. Reports show [`Cell::percentile`].
    pub latency_ns: Latency,
    /// Percentiles over rounds, with their 95% intervals.
    #[serde(default)]
    pub latency_intervals: Percentiles,
    /// Operations of further kinds. Absent: requests are all there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationFigures>,
    /// In open loop: what became of what was scheduled, and the parts of the latency.
    #[serde(default)]
    pub open_loop: Option<OpenLoopFigures>,
    /// Mean concurrency over rate × mean latency, less 1 (Little's law): away from 0, some figure
    /// is not what it seems. `None` where the concurrency is not known.
    #[serde(default)]
    pub little_residual: Option<f64>,
    /// Share of the CPUs' time that the hypervisor gave to others.
    #[serde(default)]
    pub steal: Option<f64>,
    /// Time that the server's threads were runnable and had no CPU, over the window.
    #[serde(default)]
    pub server_run_delay: Option<f64>,
    /// The same of the load threads.
    #[serde(default)]
    pub load_run_delay: Option<f64>,
    /// What each role took, the server first, where the contender has more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleCost>,
    /// Memory with the connections open, bytes; median over rounds.
    pub memory_bytes: Option<u64>,
    /// User memory that each open connection added, bytes; median over rounds.
    #[serde(default)]
    pub user_bytes_per_connection: Option<f64>,
    /// Kernel memory that each open connection added, bytes; median over rounds.
    #[serde(default)]
    pub kernel_bytes_per_connection: Option<f64>,
    /// Where that was read, and so whether it is of both ends.
    #[serde(default)]
    pub kernel_memory_source: Option<KernelMemorySource>,
    /// Context switches per request, or per [`Asked::cost_per`], both kinds.
    pub switches_per_request: Option<f64>,
    /// Load CPU per request, or per [`Asked::cost_per`], nanoseconds.
    pub load_cpu_ns_per_request: Option<Estimate>,
    /// Rate of the null server over this one's: how much faster the load could have gone.
    pub headroom: Option<f64>,
    /// Fraction of its CPUs that the server used.
    pub server_busy: Option<f64>,
    /// Fraction of one CPU that the busiest thread of the server used. Absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<f64>,
    /// Fraction of its CPUs that the load used.
    pub load_busy: Option<f64>,
    /// Cost over the baseline's cost of the same round.
    pub ratio_to_baseline: Option<Estimate>,
    /// The same ratio of the costs as they were read, where `ratio_to_baseline` is adjusted by the
    /// machine probe ([`Summary::machine_noise`]). Absent: it is not adjusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_unadjusted: Option<Estimate>,
    /// What that ratio would mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_unadjusted: Option<Relation>,
    /// What that ratio means.
    pub relation: Option<Relation>,
    /// Rounds that would make the ratio's interval as narrow as was asked for (±2% where nothing
    /// was), at the spread that was seen.
    #[serde(default)]
    pub rounds_needed: Option<u32>,
    /// The same at the largest spread that the rounds so far leave possible (80%).
    #[serde(default)]
    pub rounds_needed_at_most: Option<u32>,
    /// Rounds that would tell with a probability of 90% whether the cost is tied with the baseline's or
    /// another one, if mean and scatter are what they seem. `None` where it is told, where no number of
    /// rounds would tell (the difference lies within a lasting offset of the twin), where the load was
    /// the limit, or where more than 1,000 would be needed.
    #[serde(default)]
    pub rounds_to_tell: Option<u32>,
    /// Latency over the baseline's under the same load. Absent: it is the baseline, or one of the two
    /// was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_to_baseline: Option<LatencyRatio>,
    /// Where some connections do not read: latency over that of the same contender under the load that
    /// differs in this alone, that all of them read. Absent: all read, or there is no such load, or one
    /// of the two was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_to_all_reading: Option<LatencyRatio>,
    /// Ranks that it could hold among the contenders of this load.
    pub band: Option<Band>,
    /// Against the same load with the fewest cores, where this one has more.
    #[serde(default)]
    pub scaling: Option<Scaling>,
    /// How the contender warmed up under this load, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// Figures that were measured and are `null` here, because their intervals say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<Unknown>,
    /// What somebody once measured elsewhere, as printed there.
    #[serde(default)]
    pub then: Option<String>,
    /// What somebody once said of it elsewhere, where there is no figure.
    #[serde(default)]
    pub then_in_words: Option<String>,
    /// The judgement.
    pub verdict: Verdict,
}

/// What a role of a contender took: the server itself, or a kind of process behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleCost {
    /// `server`, or the name of the backend in the manifest.
    pub name: String,
    /// Processes of it.
    pub count: u32,
    /// The CPUs that these might run on; empty: all.
    pub cpus: Vec<u32>,
    /// Their CPU for each request that the contender answered, or for each [`Asked::cost_per`],
    /// nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Whether that was measured and is not known (see [`Unknown`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_not_known: bool,
    /// Their share of the contender's cost, as a fraction.
    pub share: Option<f64>,
    /// Fraction of their CPUs that they used.
    pub busy: Option<f64>,
    /// Their memory with the connections open, bytes; median over rounds.
    pub memory_bytes: Option<u64>,
}

/// What a cell shows of a kind of operation beside requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationFigures {
    /// The kind.
    pub operation: Operation,
    /// Those inside the windows of all rounds.
    pub count: u64,
    /// Those per second.
    pub rate_per_s: Option<Estimate>,
    /// Latency over all rounds, merged without loss: from the send that caused an operation, in open
    /// loop from the intended send.
    pub latency_ns: Latency,
    /// Percentiles over rounds, with their 95% intervals.
    #[serde(default)]
    pub latency_intervals: Percentiles,
    /// Of the rate and the percentiles: those that were measured and are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<Unknown>,
}

/// 95% intervals of latency percentiles in nanoseconds, over rounds. `None` where a round has fewer
/// than ten samples beyond, there are fewer than two rounds, or the percentile is not known
/// ([`Unknown`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<Estimate>,
    /// 90th percentile.
    pub p90: Option<Estimate>,
    /// 95th percentile.
    pub p95: Option<Estimate>,
    /// 99th percentile.
    pub p99: Option<Estimate>,
    /// 99.9th percentile.
    pub p99_9: Option<Estimate>,
}

/// What an open loop did, over all rounds (see [`crate::OpenLoop`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopFigures {
    /// Requests whose intended send lay inside a window.
    pub due: u64,
    /// Not written.
    pub unsent: u64,
    /// Written too late.
    pub late: u64,
    /// Without a reply within the limit.
    pub timed_out: u64,
    /// Lost to another error.
    pub lost: u64,
    /// Intended send → a connection is free: the server's doing.
    pub wait_ns: Latency,
    /// Free → written: the generator's doing.
    pub send_lag_ns: Latency,
    /// Written → reply.
    pub service_ns: Latency,
    /// Rounds in which the arrivals did not keep to the shape that was asked for.
    pub misshapen: u32,
}

/// What became of `--precision`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half-width that the intervals of all ratios were to have, as a fraction.
    pub asked: f64,
    /// Whether they have.
    pub reached: bool,
    /// Passes that were run.
    pub rounds: u32,
    /// Of each ratio that is wider: what it would take, a sentence each.
    pub missing: Vec<String>,
}

/// A judged race: `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// What was asked, and on what.
    pub asked: Asked,
    /// How far from 1 the ratio of a contender to itself may seem to lie, as a fraction; `None` without a
    /// twin, or where it exceeds a factor of ten and so is not known.
    pub noise_floor: Option<f64>,
    /// Share of the scatter (variance) of costs within a pass that was the machine's, as a probe saw
    /// it, and that ratios are free of: the mean over the loads where the probe said enough; `None`
    /// where it nowhere did.
    #[serde(default)]
    pub machine_noise: Option<f64>,
    /// Whether all rounds that were asked for are there.
    pub complete: bool,
    /// The cells: loads in the order asked, contenders by cost within each,
    /// as it is compared.
    pub cells: Vec<Cell>,
    /// What the cells say together, where loads differ in rate or in connections alone.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// What became of `--precision`.
    #[serde(default)]
    pub precision: Option<Precision>,
    /// What became of `--fail-over`.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// Median time that a round of all cells took, seconds; `None` with fewer than 2.
    #[serde(default)]
    pub pass_s: Option<f64>,
    /// What in this race might mislead, one sentence each, with advice.
    pub doubts: Vec<String>,
}
