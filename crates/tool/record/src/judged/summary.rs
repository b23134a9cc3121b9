//! A judged race: its cells and their comparisons.

use crate::{
    Asked, Curve, Estimate, Finding, Gate, KernelMemorySource, Latency, LoadShape, Operation,
    ReplySeen, Settling, Unknown, Verdict,
};
use serde::{Deserialize, Serialize};

/// How a cell's cost compares with the baseline's (method, rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// This is the baseline.
    Baseline,
    /// The interval lies within ±2%.
    Tied,
    /// Neither tied nor significantly different: the interval is wider than ±2%, and the difference
    /// may be chance.
    #[serde(rename = "not-told-apart")]
    Inconclusive,
    /// Significantly cheaper, by more than a significant difference of the twin from its original.
    Cheaper,
    /// Significantly more expensive, in the same way.
    #[serde(rename = "dearer")]
    Costlier,
}

/// The ranks by cost that a contender could hold, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Band {
    /// 1 + the number of significantly cheaper contenders.
    pub best: u32,
    /// Number of contenders − the number of significantly more expensive ones.
    pub worst: u32,
}

/// The effect of more cores: ratios to the same contender at the same load with the fewest cores,
/// paired within passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The fewest cores.
    pub from_cores: u32,
    /// The cores of this cell.
    pub cores: u32,
    /// Cost over the cost with the fewest cores.
    pub cost: Option<Estimate>,
    /// Rate over the rate with the fewest cores; `None` if rates are not meaningful.
    pub rate: Option<Estimate>,
}

/// A ratio to the baseline in one state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioInState {
    /// The state: an index of [`DuelSeen::states`] of the load.
    pub state: u32,
    /// The ratio with its 95% interval.
    pub ratio: Estimate,
    /// Number of blocks.
    pub blocks: u32,
}

/// Latency percentiles of a cell over those of another cell: the geometric mean of their ratios and its
/// 95% interval. In a duel with the baseline they are paired by block and those of slices, otherwise
/// paired by round. The latency is that of [`Asked::latency_of`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyRatio {
    /// Ratio of the medians.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Estimate>,
    /// Ratio of the 95th percentiles. Slices have none.
    pub p95: Option<Estimate>,
    /// Ratio of the 99th percentiles.
    pub p99: Option<Estimate>,
    /// Why there is no ratio, or only one of them: a sentence. Absent: both exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl LatencyRatio {
    /// Whether at least one of the ratios exists.
    pub fn is_there(&self) -> bool {
        self.p95.is_some() || self.p99.is_some()
    }
}

/// A contender at a load, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the workload.
    pub workload: String,
    /// The load.
    pub load: LoadShape,
    /// Whether server and load had to share CPUs: then only the cost is reported.
    #[serde(default)]
    pub shared_cpus: bool,
    /// Name of the contender.
    pub contender: String,
    /// Rounds that entered the figures.
    pub rounds: u32,
    /// Correct replies in all of those rounds.
    pub requests: u64,
    /// Members that joined and left in all of those rounds, warm-ups included. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passed: u64,
    /// A reply, as seen outside the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ReplySeen>,
    /// Server CPU per request, or per [`Asked::cost_per`], nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Whether the cost is an upper bound: server and load were both busy (0.9 of their CPUs) without a
    /// requested rate, so a cheaper server would find fewer requests waiting, and handle each at a higher
    /// cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_upper_bound: bool,
    /// CPU of server and load together per request, or per [`Asked::cost_per`], nanoseconds. On loopback
    /// the sender is charged for waking a sleeping receiver, so a part of a server's work may be charged
    /// to the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both_sides_ns_per_request: Option<Estimate>,
    /// CPU of the whole machine of the contender. Absent: it is the load's machine, or this is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFigures>,
    /// CPU without load, milliseconds per second, from idle slices. Absent: it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing_ms_per_s: Option<f64>,
    /// Requests per second.
    pub rate_per_s: Option<Estimate>,
    /// For a counted load: its time over its requests, milliseconds, with all connections active at
    /// once (`ab` calls this the time per request across all concurrent requests).
    pub ms_per_request: Option<Estimate>,
    /// Requests per second of the load beside, if any.
    pub beside_per_s: Option<Estimate>,
    /// Wall time of an instance of a burst, seconds: the mean over the instances of a round, over
    /// the rounds.
    pub instance_s: Option<Estimate>,
    /// Wall time of the slowest instance of all rounds, seconds.
    pub slowest_instance_s: Option<f64>,
    /// Latency of [`Asked::latency_of`] over all rounds, merged without loss: in closed loop from the
    /// write of a request, in open loop from its intended send. Reports print [`Cell::percentile`].
    pub latency_ns: Latency,
    /// Percentiles over rounds, with their 95% intervals.
    #[serde(default)]
    pub latency_intervals: Percentiles,
    /// Operations of further kinds; first the requests, if the cell's latency is of another kind.
    /// Absent: there are only requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationFigures>,
    /// In open loop: the fates of the scheduled requests, and the parts of the latency.
    pub open_loop: Option<OpenLoopFigures>,
    /// Mean concurrency over rate × mean latency, minus 1 (Little's law): far from 0, some figure
    /// is wrong. `None` if the concurrency is not known.
    pub little_residual: Option<f64>,
    /// Share of the CPUs' time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Time that the server's threads were runnable without a CPU, over the window.
    pub server_run_delay: Option<f64>,
    /// The same for the load threads.
    pub load_run_delay: Option<f64>,
    /// The cost of each role, the server first, if the contender has more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleCost>,
    /// Memory with the connections open, bytes; median over rounds.
    pub memory_bytes: Option<u64>,
    /// User memory that each open connection added, bytes; median over rounds.
    pub user_bytes_per_connection: Option<f64>,
    /// Kernel memory that each open connection added, bytes; median over rounds.
    pub kernel_bytes_per_connection: Option<f64>,
    /// Where that was read, which also determines whether it covers both sides.
    pub kernel_memory_source: Option<KernelMemorySource>,
    /// Context switches per request, or per [`Asked::cost_per`], both kinds.
    pub switches_per_request: Option<f64>,
    /// Load CPU per request, or per [`Asked::cost_per`], nanoseconds.
    pub load_cpu_ns_per_request: Option<Estimate>,
    /// Rate of the null server over this one's: how much faster the load could have been. `None` for
    /// the null server or without one, at a requested rate, and on shared CPUs.
    pub headroom: Option<f64>,
    /// Fraction of its CPUs that the server used; with several roles, that of the busiest set of CPUs.
    pub server_busy: Option<f64>,
    /// Fraction of one CPU that the busiest thread of the server used. Absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<f64>,
    /// Fraction of its CPUs that the load used, without spinning.
    pub load_busy: Option<f64>,
    /// Cost over the baseline's cost: of the same blocks in a duel, otherwise of the same rounds. In a
    /// duel with several states of the machine, that in `ratio_is_of_state`, if there is one.
    pub ratio_to_baseline: Option<Estimate>,
    /// The same beside other programs, if it differs there significantly: `ratio_to_baseline` is then that of
    /// the other blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_beside_others: Option<Estimate>,
    /// That ratio in each state of the machine. Empty: the load was not raced in duels, or only one state
    /// was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_state: Vec<RatioInState>,
    /// Whether the ratio differs significantly between states that were seen in at least three lives.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub states_differ: bool,
    /// The state of the machine that `ratio_to_baseline` is of: the least expensive one that
    /// three lives saw and that has a quarter of the blocks. Absent: the ratio is of all blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_is_of_state: Option<u32>,
    /// Lives of a duel that entered the figures. Absent: 0, the load was not raced in duels.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub lives: u32,
    /// Its counted slices in these lives. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub blocks: u32,
    /// The relation that follows from `ratio_to_baseline`.
    pub relation: Option<Relation>,
    /// Further starts of all contenders (lives of a duel, or rounds) that decide with a probability of
    /// 90% whether the cost is tied with the baseline's or differs from it, if mean and variance are as
    /// observed. `None` for the null server and the twin, if it is decided, if no number decides, if the
    /// load was the limit, or if they take more than ten minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_to_decide: Option<u32>,
    /// The time that these take, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_to_decide: Option<f64>,
    /// Latency over the baseline's at the same load. Absent: this is the baseline, or one of the
    /// two was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_to_baseline: Option<LatencyRatio>,
    /// If some connections do not read: latency over that of the same contender at the same load
    /// with all connections reading. Absent: all read, or there is no such load, or one of the two
    /// was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_to_all_reading: Option<LatencyRatio>,
    /// Possible ranks among the contenders of this load.
    pub band: Option<Band>,
    /// Comparison with the same load with the fewest cores, if this one has more.
    pub scaling: Option<Scaling>,
    /// How the contender warmed up at this load, if observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// Figures that were measured but are `null` here, because their intervals are too wide; see
    /// [`Unknown`] for percentiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<Unknown>,
    /// A figure measured elsewhere in the past, as published.
    pub then: Option<String>,
    /// A statement made elsewhere in the past, if there is no figure.
    pub then_in_words: Option<String>,
    /// The judgement.
    pub verdict: Verdict,
}

/// CPU that the whole machine of a contender used in its slices: its processes, others, and the kernel with its
/// interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineFigures {
    /// CPU beyond what the machine uses while no contender runs, per request, or per [`Asked::cost_per`], nanoseconds.
    /// The interval is at least as wide as the steps. `null`: it has fewer than two lives, or not even its order of
    /// magnitude is known.
    pub cost_ns_per_request: Option<Estimate>,
    /// CPU in interrupts beyond that while no contender runs, nanoseconds. Most kernels sample it at timer ticks, and count
    /// an interrupt that hits a process in the time of that process, too: it overlaps with that, and may be more than the
    /// cost.
    pub interrupts_ns_per_request: f64,
    /// How many CPUs the machine uses while no contender runs, without lives before which it used far more or less.
    pub cpus_alone: f64,
    /// Error that the steps of the kernel's figures (10 ms) cause: in 95% of races it is smaller, nanoseconds per request.
    pub steps_ns_per_request: f64,
}

/// The cost of one role of a contender: the server itself, or a kind of process behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleCost {
    /// `server`, or the name of the backend in the manifest.
    pub name: String,
    /// Number of its processes.
    pub count: u32,
    /// The CPUs that these may run on; empty: all.
    pub cpus: Vec<u32>,
    /// Their CPU time per request that the contender answered, or per [`Asked::cost_per`],
    /// nanoseconds.
    pub cost_ns_per_request: Option<Estimate>,
    /// Whether the cost was measured but is not known (see [`Unknown`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_not_known: bool,
    /// Their share of the contender's cost, as a fraction.
    pub share: Option<f64>,
    /// Fraction of their CPUs that they used.
    pub busy: Option<f64>,
    /// Their memory with the connections open, bytes; median over rounds.
    pub memory_bytes: Option<u64>,
}

/// The figures of a cell for a kind of operation in addition to requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationFigures {
    /// The kind.
    pub operation: Operation,
    /// Number of operations inside the windows of all rounds.
    pub count: u64,
    /// Operations per second.
    pub rate_per_s: Option<Estimate>,
    /// Latency over all rounds, merged without loss: from the send that caused an operation, in open
    /// loop from the intended send.
    pub latency_ns: Latency,
    /// Percentiles over rounds, with their 95% intervals.
    #[serde(default)]
    pub latency_intervals: Percentiles,
    /// The rate and percentiles that were measured but are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<Unknown>,
}

/// 95% intervals of latency percentiles in nanoseconds, over rounds. `None` if a round has fewer
/// than ten samples beyond it, there are fewer than two rounds, or the percentile is not known
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

/// Figures of an open loop over all rounds (see [`crate::OpenLoop`]). Requests that were due and are neither
/// unsent, timed out, lost nor refused were answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopFigures {
    /// Requests whose intended send was inside a window.
    pub due: u64,
    /// Not written.
    pub unsent: u64,
    /// Written late.
    pub late: u64,
    /// Without a reply before the timeout.
    pub timed_out: u64,
    /// Lost to another error, or because a run ended early.
    pub lost: u64,
    /// Refused by a reply that is right, as the load permits. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: u64,
    /// Intended send → a connection is free: the server's part.
    pub wait_ns: Latency,
    /// Free → written: the generator's part.
    pub send_lag_ns: Latency,
    /// Written → reply.
    pub service_ns: Latency,
    /// Rounds in which the arrivals did not have the requested distribution.
    pub misshapen: u32,
}

/// The result of `--precision`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Requested half-width of the intervals of all ratios, as a fraction.
    pub asked: f64,
    /// Whether all ratios reached it.
    pub reached: bool,
    /// Passes that were run.
    pub rounds: u32,
    /// For each wider ratio: what it needs. For a load without ratios: why. One sentence each.
    pub missing: Vec<String>,
}

/// A load that was raced in duels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DuelSeen {
    /// The load.
    pub load: LoadShape,
    /// The contenders that were alive together, by heat.
    pub heats: Vec<Vec<String>>,
    /// Number of lives, over all heats.
    pub lives: u32,
    /// The states of the machine, the least expensive first.
    pub states: Vec<StateSeen>,
    /// The blocks beside which other programs ran; absent: none, or the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<ContendedBlocks>,
    /// Blocks that were left out, because the machine changed in or next to them.
    pub left_out: u32,
    /// Slices that were left out, because another contender's slice right before or after showed that
    /// the machine was disturbed. Slices of the blocks left out do not count.
    #[serde(default, alias = "beside")]
    pub left_out_slices: u32,
}

/// Blocks of a duel beside which other programs ran: in the middle over the contenders, they used more than a
/// tenth of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContendedBlocks {
    /// Number of these blocks.
    pub blocks: u32,
    /// Number of all blocks.
    pub of: u32,
    /// Whether a ratio that differs beside other programs is that of the other blocks. Otherwise too few of
    /// these remain, and all blocks count.
    pub apart: bool,
}

/// A state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateSeen {
    /// The cost of a request over that in the least expensive state: the median over the blocks of a
    /// middle value over contenders.
    pub factor: f64,
    /// Number of blocks.
    pub blocks: u32,
    /// Share of all blocks that were not left out.
    pub share: f64,
}

/// A judged race: `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The settings, and the machine.
    pub asked: Asked,
    /// How far from 1 the ratio of a contender to itself may appear, as a fraction: the farther end of
    /// the interval of the twin's ratio, over several loads the root mean square of their logarithms.
    /// It is information and decides nothing. `None` without a twin, or if it exceeds a factor of ten
    /// and so is not known.
    pub noise_floor: Option<f64>,
    /// Whether all planned rounds were run.
    pub complete: bool,
    /// The cells: loads in the planned order, contenders within each by compared cost.
    pub cells: Vec<Cell>,
    /// The loads that were raced in duels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub duels: Vec<DuelSeen>,
    /// Curves over cells whose loads differ only in one number.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// The result of `--precision`.
    pub precision: Option<Precision>,
    /// The result of `--fail-over`.
    pub gate: Option<Gate>,
    /// Median time of one round of all cells, seconds; `None` with fewer than 2.
    pub pass_s: Option<f64>,
    /// Doubts that are stored with their figures. The sentences of all of them are in `doubts`, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Doubts about this race, one sentence each, with advice.
    pub doubts: Vec<String>,
}
