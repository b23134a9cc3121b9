//! One finished round: a fresh start of one contender under one load. A line of `rounds.jsonl`.

use crate::{Errors, Exchange, LoadShape, Operation, ReplySeen, RoundOperation, Settling};
use serde::{Deserialize, Serialize};

/// A line of `rounds.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The pass over all cells that this start belongs to, counted from 0. Comparisons are made
    /// within one pass.
    pub round: u32,
    /// Name of the contender.
    pub contender: String,
    /// Name of the workload, such as `double`.
    pub workload: String,
    /// The load it was under.
    pub load: LoadShape,
    /// Seed of this round's requests.
    pub seed: u64,
    /// Seconds since the Unix epoch when the contender was started.
    pub started_unix_s: u64,
    /// How it went.
    pub outcome: Outcome,
    /// Right answers inside the measured window.
    pub requests: u64,
    /// Length of the measured window in nanoseconds.
    pub window_ns: u64,
    /// Right answers in each slice of the window, in order; all slices are equally long.
    pub slices: Vec<u64>,
    /// Errors by kind, over the whole round.
    pub errors: Errors,
    /// CPU of the load threads inside the window, in nanoseconds.
    pub load_cpu_ns: u64,
    /// Of that: spent on polling with nothing to do, by a load that does not sleep.
    #[serde(default)]
    pub load_spun_ns: u64,
    /// How many CPUs the load had.
    pub load_cpus: u32,
    /// What was read of the contender's processes, of all roles together; `None` where they could
    /// not be observed.
    pub server: Option<Server>,
    /// The same by role, the server first, where the contender has more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleUsage>,
    /// What the contender did that voids no figure, in a sentence with what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Who served the contender's port beside or instead of its processes, in a sentence: what is
    /// stored of these is not what the work took. Absent: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by_others: Option<String>,
    /// Which thread of it may run on other CPUs than it was given, in a sentence. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_its_cpus: Option<String>,
    /// Wall time of each instance of a burst, nanoseconds, connecting included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances_ns: Vec<u64>,
    /// Members that came and went over the whole round, warm-up included. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passed: u64,
    /// Operations of further kinds, in the order of the dialect. Absent: requests are all there is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<RoundOperation>,
    /// In open loop: what became of what was scheduled, and the parts of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// What came of the load beside, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// How it was warmed up before the window; `None` with a counted load, which has no warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpDone>,
    /// What was seen of the contender under this load before its first round, by which it was warmed up;
    /// `None` where it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// A reply, asked for after the load of a cell's first round. `None` in other rounds, and where
    /// nothing is known of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ReplySeen>,
    /// What the machine did meanwhile that was neither server nor load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// HDR histogram of latencies, V2 format, base64. In closed loop: from write to reply, of the
    /// replies that came inside the window. In open loop: from the intended send to the reply, of
    /// the requests that were due inside the window.
    pub histogram: String,
}

/// What an open loop did (method, rule 5). Every request that was due inside the window is exactly
/// one of: answered (in the histograms), timed out, lost to an error, unsent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests whose intended send lay inside the window.
    pub due: u64,
    /// Of those: not written, since no connection came free in time.
    pub unsent: u64,
    /// Of those: written more than [`OpenLoop::LATE_NS`] after their intended send.
    pub late: u64,
    /// Of those: written, and without a reply within the limit.
    pub timed_out: u64,
    /// Of those: written, and lost to another error or to an early end of the run.
    pub lost: u64,
    /// Intended send → a connection is free; the server's doing. HDR, V2, base64, nanoseconds.
    pub wait: String,
    /// A connection is free (or the intended send, whichever is later) → written; the generator's
    /// doing. HDR, V2, base64, nanoseconds.
    pub lag: String,
    /// Written → reply. HDR, V2, base64, nanoseconds.
    pub service: String,
    /// How well the arrivals kept to the shape that was asked for.
    pub arrivals: ArrivalCheck,
    /// Last stretch before a send that the load waits for by spinning, in nanoseconds; 0: none.
    pub spin_ns: u64,
}

impl OpenLoop {
    /// Later than this a request counts as late, in nanoseconds.
    pub const LATE_NS: u64 = 1_000_000;
}

/// The sends of an open loop against the shape that was asked for. What requests waited for
/// connections (the server's doing) is taken off first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalCheck {
    /// Gaps that were looked at.
    pub gaps: u64,
    /// Mean rate of the arrivals, per second; what was never sent arrived all the same.
    pub rate_per_s: f64,
    /// Largest distance between the distribution of the gaps and the one asked for
    /// (Kolmogorov–Smirnov; 0 to 1).
    pub distance: f64,
    /// Correlation of a gap with the next one.
    pub lag1: f64,
    /// Largest deviation of the rate in a tenth of the window from the mean, as a fraction.
    pub unsteadiness: f64,
    /// Whether all of that lies within what is permitted.
    pub kept: bool,
}

/// A warm-up that took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpDone {
    /// Its length, nanoseconds.
    pub ns: u64,
    /// Right replies in it.
    pub requests: u64,
    /// What it should have been at least, by what was seen of the contender: length, nanoseconds.
    pub needed_ns: u64,
    /// Likewise: right replies.
    pub needed_requests: u64,
}

/// What came of a load beside another one, from when its first requests were answered until the
/// other was through; so it holds the other's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background {
    /// Right answers.
    pub requests: u64,
    /// How long, in nanoseconds.
    pub window_ns: u64,
    /// CPU of its load thread, nanoseconds.
    pub load_cpu_ns: u64,
}

/// What the machine did during a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Share of the time of the server's and the load's CPUs inside the window that the hypervisor
    /// gave to others.
    pub steal: Option<f64>,
    /// Time that threads of the server inside the window were runnable and had no CPU, nanoseconds.
    pub server_run_delay_ns: Option<u64>,
    /// The same of the load threads.
    pub load_run_delay_ns: Option<u64>,
    /// How often load threads inside the window were given a CPU.
    pub load_turns: Option<u64>,
    /// Number of processes that carried out the load, if it was more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_processes: Option<u32>,
    /// Time of a message to and fro between the first CPUs of server and load, before the contender
    /// was started and after it was gone, nanoseconds. `None` where they share one.
    pub probe_ns: Option<[u64; 2]>,
    /// How long the CPUs of server and load were at work after the contender had ended, nanoseconds;
    /// zero if they were at rest at once. The next contender was started only then, but after 3 s in any
    /// case. `None` where they were not at rest before it was started, either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_after_ns: Option<u64>,
}

impl Round {
    /// CPU that the load needed inside the window, without what it spun, in nanoseconds.
    pub fn load_work_ns(&self) -> u64 {
        self.load_cpu_ns.saturating_sub(self.load_spun_ns)
    }

    /// Operations of a kind inside the window; 0 where nothing of the kind was counted.
    pub fn count_of(&self, operation: &Operation) -> u64 {
        if operation.is_request() {
            return self.requests;
        }
        let counted = self.operations.iter().find(|one| one.operation.name == operation.name);
        counted.map_or(0, |one| one.count)
    }
}

/// How a round ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// Started, loaded, stopped.
    Finished,
    /// Gave a wrong answer, or none.
    Disqualified {
        /// One sentence.
        because: String,
        /// The first wrong exchange, where one was seen.
        exchange: Option<Exchange>,
    },
    /// Did not start, died, or did not stop.
    Failed {
        /// One sentence with what to do, and the contender's last words.
        because: String,
    },
    /// The cell exceeds a limit that the contender states; it was not started.
    CannotHold {
        /// One sentence naming the limit.
        because: String,
    },
}

/// CPU, memory and switches of all processes of a contender, those that exited included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// CPU inside the window, user and system, nanoseconds.
    pub cpu_ns: u64,
    /// The user part as far as the kernel tells (sampled by tick), nanoseconds.
    pub user_ns: u64,
    /// The system part as far as the kernel tells (sampled by tick), nanoseconds.
    pub system_ns: u64,
    /// Where `cpu_ns` was read.
    pub source: UsageSource,
    /// What processes that ended inside the window may have used beyond `cpu_ns`. Absent: an earlier
    /// regatta did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Unseen>,
    /// How many CPUs the contender had.
    pub cpus: u32,
    /// Voluntary context switches inside the window of the threads alive at its end.
    pub voluntary_switches: u64,
    /// Involuntary context switches inside the window of the threads alive at its end.
    pub involuntary_switches: u64,
    /// CPU inside the window of the thread that used the most, of those alive at its end (of more than
    /// 256 the first ones), nanoseconds. Absent: the kernel does not tell, or an earlier regatta did
    /// not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_ns: Option<u64>,
    /// Memory right after the window, connections still open: proportional set size, bytes.
    pub memory_bytes: u64,
    /// The same when it was ready, before the load, bytes.
    #[serde(default)]
    pub memory_at_ready_bytes: Option<u64>,
    /// Growth of its own pages (proportional set size without files) from ready until all
    /// connections were open and idle, before the load began, bytes. Of a counted load, whose connections
    /// open inside its window, until after it.
    #[serde(default)]
    pub user_growth_bytes: Option<i64>,
    /// Growth of the kernel's memory between the same moments.
    #[serde(default)]
    pub kernel_growth: Option<KernelGrowth>,
    /// Processes alive at the end of the window.
    pub processes: u32,
    /// Threads alive at the end of the window.
    pub threads: u32,
}

/// What one role of a contender used: the server that clients talk to, or a kind of process behind
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// [`RoleUsage::SERVER`], or the name of the backend in the manifest.
    pub name: String,
    /// Processes that were started for it.
    pub count: u32,
    /// The CPUs that these might run on; empty: all.
    pub cpus: Vec<u32>,
    /// What they used; `None` where they could not be observed. The kernel's memory is told of all
    /// roles together only.
    pub used: Option<Server>,
}

impl RoleUsage {
    /// Name of the role that clients talk to.
    pub const SERVER: &str = "server";
}

impl Server {
    /// CPUs that it could be busy on: those that it had, and no more than it had threads.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
    }
}

/// CPU of processes that ended inside a window, so far as it is not known to be in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// No more than that, nanoseconds.
    AtMostNs(u64),
    /// It cannot be bounded: there was no control group, and processes may have come and gone that nobody
    /// waited for. The figure is a lower bound.
    Unbounded,
}

impl Unseen {
    /// Of both together.
    pub fn plus(self, other: Unseen) -> Unseen {
        match (self, other) {
            (Unseen::AtMostNs(a), Unseen::AtMostNs(b)) => Unseen::AtMostNs(a.saturating_add(b)),
            (Unseen::Unbounded, _) | (_, Unseen::Unbounded) => Unseen::Unbounded,
        }
    }
}

/// Where a CPU figure was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageSource {
    /// The CPU clock of every process (nanoseconds), the set of processes being the same at both
    /// edges.
    ProcessClocks,
    /// A version 2 cgroup's `cpu.stat`.
    CgroupV2,
    /// A version 1 cgroup's `cpuacct.usage`.
    CgroupV1,
    /// The clocks of the living and the waited-for times of the dead (10 ms steps).
    ProcessTree,
}

/// Kernel memory that came with the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelGrowth {
    /// Bytes.
    pub bytes: i64,
    /// Where it was read.
    pub source: KernelMemorySource,
}

/// Where kernel memory was read, and so whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelMemorySource {
    /// `memory.stat` of the contender's version 2 control group: the server's end alone.
    CgroupV2,
    /// The kernel's tables of its own objects, of the whole system: both ends of each connection,
    /// and what other programs did meanwhile.
    BothEnds,
}
