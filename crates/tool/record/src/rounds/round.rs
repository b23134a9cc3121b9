//! One finished round: a fresh start of one contender at one load. A line of `rounds.jsonl`.

use crate::{Errors, Exchange, Life, LoadShape, Operation, ReplySeen, RoundOperation, Settling};
use serde::{Deserialize, Serialize};

/// A line of `rounds.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The pass over all cells that this start belongs to, counted from 0. Comparisons are paired
    /// within one pass.
    pub round: u32,
    /// Name of the contender.
    pub contender: String,
    /// Name of the workload, e.g. `double`.
    pub workload: String,
    /// The load.
    pub load: LoadShape,
    /// Seed of this round's requests.
    pub seed: u64,
    /// Seconds since the Unix epoch when the contender was started.
    pub started_unix_s: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// Correct replies inside the measured window.
    pub requests: u64,
    /// Bytes of these replies, if all requests are the same and nothing checks the contents of their replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_bytes: Option<u64>,
    /// Length of the measured window in nanoseconds.
    pub window_ns: u64,
    /// Correct replies in each slice of the window, in order; all slices have the same length.
    pub slices: Vec<u64>,
    /// Errors by kind, over the whole round.
    pub errors: Errors,
    /// CPU of the load threads inside the window, in nanoseconds.
    pub load_cpu_ns: u64,
    /// Part of `load_cpu_ns` that was spent polling with nothing to do, by a load that does not
    /// sleep.
    #[serde(default)]
    pub load_spun_ns: u64,
    /// Number of CPUs of the load.
    pub load_cpus: u32,
    /// CPU, memory and switches of the contender's processes, of all roles together; `None` if they
    /// could not be observed.
    pub server: Option<Server>,
    /// The same by role, the server first, if the contender has more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleUsage>,
    /// Behaviour of the contender that voids no figure: a sentence with advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Settings of the machine that changed while it ran: names, old and new values. If others were alive as
    /// well, it may have been one of them. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_changed: Option<String>,
    /// Other processes that served the contender's port, as a sentence: the figures stored here are
    /// not the cost of the work. Also why it could not be determined who served it. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by_others: Option<String>,
    /// A thread of the contender that could run on other CPUs than assigned, as a sentence. Absent:
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_its_cpus: Option<String>,
    /// Wall time of each instance of a burst, nanoseconds, connecting included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances_ns: Vec<u64>,
    /// Members that joined and left over the whole round, warm-up included. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub passed: u64,
    /// Deliveries that nobody was owed, because the connection of a member was lost and it had not joined again, over the
    /// whole round: each broadcast once for each such member. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub absent: u64,
    /// Operations of further kinds, in the order of the dialect. Absent: there are only requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<RoundOperation>,
    /// In open loop: the fates of the scheduled requests, and the parts of the latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// The result of the load beside, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// The warm-up before the window; `None` with a counted load, which has no warm-up, and in a round
    /// without counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpDone>,
    /// The observation of the contender (of a twin: its original) at this load before its first round,
    /// which determined the warm-up; `None` if it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// A reply, requested after the load of a cell's first round. `None` in other rounds, if no reply
    /// arrived, and in workloads that do not describe their replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ReplySeen>,
    /// In a duel: the slices of this life. The figures above are sums over its counted slices, and of the
    /// CPUs' usage beyond that (switches, delays, steal) over the time from the first to the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
    /// State of the machine during the round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// HDR histogram of latencies, V2 format, base64. In closed loop: from the write (with a connection
    /// per request: from before the connect) to the reply, of the requests written inside the window.
    /// In open loop: from the intended send to the reply, of the requests due inside the window. The
    /// reply may arrive after the window.
    pub histogram: String,
}

/// Figures of an open loop (method, rule 5). Every request that was due inside the window is
/// exactly one of: answered (in the histograms), refused, timed out, lost to an error, unsent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests whose intended send was inside the window.
    pub due: u64,
    /// Of those: not written, because no connection became free in time.
    pub unsent: u64,
    /// Of those: written more than [`OpenLoop::LATE_NS`] after their intended send.
    pub late: u64,
    /// Of those: written, without a reply before the timeout.
    pub timed_out: u64,
    /// Of those: written, and lost to another error or because the run ended early.
    pub lost: u64,
    /// Of those: written, and refused by a reply that is right, as the load permits. Absent: 0.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: u64,
    /// Intended send → a connection is free; the server's part. HDR, V2, base64, nanoseconds.
    pub wait: String,
    /// A connection is free (or the intended send, whichever is later) → written; the generator's
    /// part. HDR, V2, base64, nanoseconds.
    pub lag: String,
    /// Written → reply. HDR, V2, base64, nanoseconds.
    pub service: String,
    /// How well the arrivals matched the requested distribution.
    pub arrivals: ArrivalCheck,
    /// Time before each send during which the load spins, in nanoseconds; 0: none.
    pub spin_ns: u64,
}

impl OpenLoop {
    /// Delay above which a request counts as late, in nanoseconds.
    pub const LATE_NS: u64 = 1_000_000;
}

/// The sends of an open loop compared with the requested distribution. The waits for connections
/// (the server's part) are subtracted first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalCheck {
    /// Number of gaps checked.
    pub gaps: u64,
    /// Mean rate of the arrivals, per second; unsent requests count as arrived.
    pub rate_per_s: f64,
    /// Largest distance between the distribution of the gaps and the requested one
    /// (Kolmogorov–Smirnov; 0 to 1).
    pub distance: f64,
    /// Correlation of a gap with the next one.
    pub lag1: f64,
    /// Largest deviation of the rate in a tenth of the window from the mean, as a fraction.
    pub unsteadiness: f64,
    /// Whether all of these are within their limits.
    pub kept: bool,
}

/// A warm-up that took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUpDone {
    /// Its length, nanoseconds.
    pub ns: u64,
    /// Number of correct replies in it.
    pub requests: u64,
    /// Its required minimum length by the observation of the contender, nanoseconds.
    pub needed_ns: u64,
    /// Its required minimum number of correct replies.
    pub needed_requests: u64,
}

/// The result of a load beside another one, from the replies to its first requests until the end of
/// the other; so it includes the other's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background {
    /// Correct replies.
    pub requests: u64,
    /// Its length, in nanoseconds.
    pub window_ns: u64,
    /// CPU of its load thread, nanoseconds.
    pub load_cpu_ns: u64,
}

/// State of the machine during a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Share of the time of the server's and the load's CPUs that the hypervisor gave to others, from
    /// shortly before the window until the load was over.
    pub steal: Option<f64>,
    /// Time that threads of the server were runnable without a CPU inside the window, nanoseconds.
    pub server_run_delay_ns: Option<u64>,
    /// The same for the load threads.
    pub load_run_delay_ns: Option<u64>,
    /// How many times load threads received a CPU inside the window.
    pub load_turns: Option<u64>,
    /// Number of processes that carried out the load, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_processes: Option<u32>,
    /// How long the CPUs of server and load were still busy after the contender exited,
    /// nanoseconds; zero if they were idle at once. The next contender starts only when they are
    /// idle, or after 3 s. `None` if they were not idle before the contender started, or if they never
    /// become idle on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_after_ns: Option<u64>,
}

impl Round {
    /// The latency histogram of an operation, as [`crate::decode_histogram`] reads it; `None` if the round
    /// has no such operation.
    pub fn histogram_of(&self, operation: &Operation) -> Option<&str> {
        if operation.is_request() {
            return Some(&self.histogram);
        }
        let counted = self.operations.iter().find(|one| one.operation.name == operation.name);
        counted.map(|counted| counted.histogram.as_str())
    }

    /// CPU time that the load needed inside the window, without spinning, in nanoseconds.
    pub fn load_work_ns(&self) -> u64 {
        self.load_cpu_ns.saturating_sub(self.load_spun_ns)
    }

    /// Number of requests that took longer than all in the histogram: those that were never sent or never
    /// answered.
    pub fn unanswered(&self) -> u64 {
        match &self.open_loop {
            Some(open) => open.unsent + open.timed_out + open.lost,
            None => self.errors.timeout,
        }
    }

    /// Number of operations of a kind inside the window; 0 if none were counted.
    pub fn count_of(&self, operation: &Operation) -> u64 {
        if operation.is_request() {
            return self.requests;
        }
        let counted = self.operations.iter().find(|one| one.operation.name == operation.name);
        counted.map_or(0, |one| one.count)
    }

    /// The share of the deliveries of the whole round that nobody was owed, because members were away; `None` if they
    /// are few ([`crate::are_many_lost`]).
    pub fn share_of_absent(&self) -> Option<f64> {
        let of = |one: &&RoundOperation| one.operation.name == Operation::DELIVERIES.name;
        let delivered = self.operations.iter().find(of).map_or(0, |one| one.whole_run);
        let share = || self.absent as f64 / (self.absent as f64 + delivered as f64);
        crate::are_many_lost(self.absent, delivered).then(share)
    }
}

/// The outcome of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// It started, ran the load and stopped.
    #[default]
    Finished,
    /// It gave a wrong reply, or none.
    Disqualified {
        /// One sentence.
        because: String,
        /// The first wrong exchange, if recorded.
        exchange: Option<Exchange>,
    },
    /// It did not start, did not open all connections, did not finish in time, died, or did not stop.
    Failed {
        /// One sentence, where possible with advice and the contender's last output.
        because: String,
    },
    /// The cell exceeds a limit that the contender declares (it was not started), or the load's limit of
    /// open files.
    CannotHold {
        /// One sentence naming the limit.
        because: String,
    },
}

/// CPU, memory and switches of all processes of a contender. The CPU time includes processes that
/// exited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// CPU inside the window, user and system, nanoseconds.
    pub cpu_ns: u64,
    /// The user part, if the kernel reports it (sampled by tick), nanoseconds.
    pub user_ns: u64,
    /// The system part, if the kernel reports it (sampled by tick), nanoseconds.
    pub system_ns: u64,
    /// Where `cpu_ns` was read.
    pub source: UsageSource,
    /// CPU time that processes may have used in addition to `cpu_ns`, because they exited inside
    /// the window. Absent: an earlier regatta did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Unseen>,
    /// Number of CPUs of the contender.
    pub cpus: u32,
    /// Voluntary context switches inside the window of the threads alive at its end.
    pub voluntary_switches: u64,
    /// Involuntary context switches inside the window of the threads alive at its end.
    pub involuntary_switches: u64,
    /// CPU time inside the window of the busiest thread of those alive at its end (of the first
    /// 256), nanoseconds. Absent: the kernel does not report it, or an earlier regatta did not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_ns: Option<u64>,
    /// Memory after the load: proportional set size, bytes. The connections are still open, except with
    /// a burst or a connection per request.
    pub memory_bytes: u64,
    /// The same when it was ready, before the load, bytes.
    pub memory_at_ready_bytes: Option<u64>,
    /// Growth of its own pages (proportional set size without files) from ready until all
    /// connections were open and idle, before the load started, bytes. Where connections open inside
    /// the window, or for each request: until after the load.
    pub user_growth_bytes: Option<i64>,
    /// Growth of the kernel's memory between the same moments.
    pub kernel_growth: Option<KernelGrowth>,
    /// Processes alive at the end of the window.
    pub processes: u32,
    /// Threads alive at the end of the window.
    pub threads: u32,
}

/// Usage of one role of a contender: the server that clients talk to, or a kind of process behind
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// [`RoleUsage::SERVER`], or the name of the backend in the manifest.
    pub name: String,
    /// Number of its processes.
    pub count: u32,
    /// The CPUs that these may run on; empty: all.
    pub cpus: Vec<u32>,
    /// Their usage; `None` if they could not be observed. Kernel memory is reported only for all
    /// roles together.
    pub used: Option<Server>,
}

impl RoleUsage {
    /// Name of the role that clients talk to.
    pub const SERVER: &str = "server";
}

impl Server {
    /// Number of CPUs that it could keep busy: its CPUs, but at most one per thread.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
    }
}

/// CPU time of processes that exited inside a window, unless it is known to be included in a
/// figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// At most this many nanoseconds.
    AtMostNs(u64),
    /// No upper bound: there was no control group, and processes may have exited that no observed
    /// process waited for. The figure is a lower bound.
    Unbounded,
}

impl Unseen {
    /// The sum of both.
    pub fn plus(self, other: Unseen) -> Unseen {
        match (self, other) {
            (Unseen::AtMostNs(a), Unseen::AtMostNs(b)) => Unseen::AtMostNs(a.saturating_add(b)),
            (Unseen::Unbounded, _) | (_, Unseen::Unbounded) => Unseen::Unbounded,
        }
    }
}

/// Where a CPU figure was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageSource {
    /// The CPU clock of every process (nanoseconds); the set of processes was the same at both
    /// edges.
    #[default]
    ProcessClocks,
    /// A version 2 cgroup's `cpu.stat`.
    CgroupV2,
    /// A version 1 cgroup's `cpuacct.usage`.
    CgroupV1,
    /// The clocks of living processes and the waited-for times of dead ones (10 ms steps).
    ProcessTree,
}

/// Growth of kernel memory due to the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelGrowth {
    /// Bytes.
    pub bytes: i64,
    /// Where it was read.
    pub source: KernelMemorySource,
}

/// Where kernel memory was read, which also determines its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelMemorySource {
    /// `memory.stat` of the contender's version 2 control group: only the server's side.
    CgroupV2,
    /// The kernel's tables of its own objects, of the whole system: both sides of each connection,
    /// and the activity of other programs.
    BothEnds,
}
