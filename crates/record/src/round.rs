//! One finished round: a fresh start of one contender under one load. A line of `rounds.jsonl`.

use crate::{Errors, Exchange, LoadShape};
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
    /// How many CPUs the load had.
    pub load_cpus: u32,
    /// What was read of the contender's processes; `None` where they could not be observed.
    pub server: Option<Server>,
    /// Wall time of each instance of a burst, nanoseconds, connecting included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances_ns: Vec<u64>,
    /// HDR histogram of service times inside the window, V2 format, base64.
    pub histogram: String,
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
    /// How many CPUs the contender had.
    pub cpus: u32,
    /// Voluntary context switches inside the window of the threads alive at its end.
    pub voluntary_switches: u64,
    /// Involuntary context switches inside the window of the threads alive at its end.
    pub involuntary_switches: u64,
    /// Memory right after the window, connections still open: proportional set size, bytes.
    pub memory_bytes: u64,
    /// The same when it was ready, before the load, bytes.
    #[serde(default)]
    pub memory_at_ready_bytes: Option<u64>,
    /// Growth of its own pages (proportional set size without files) from ready until all
    /// connections were open and idle, bytes.
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

impl Server {
    /// CPUs that it could be busy on: those that it had, and no more than it had threads.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
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
