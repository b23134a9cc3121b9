//! A single load to be judged: its settings and its results.

use crate::one_load::fault::LoadFaults;
use hdrhistogram::Histogram;
use regatta_record::{Drive, FailedShare, Latency, OpenLoopFigures};

/// A single load: its settings and its results. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct SingleLoad<'a> {
    /// When requests are sent.
    pub drive: Drive,
    /// Number of load threads, over all processes.
    pub threads: u32,
    /// Number of CPUs that these threads may run on.
    pub cpus: u32,
    /// Whether agents on other machines carry it out.
    pub by_agents: bool,
    /// Correct replies inside the window.
    pub requests: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// What went wrong.
    pub replies: LoadFaults<'a>,
    /// Correct replies over the whole run.
    pub answered: u64,
    /// The fraction that failed, and the one that may; `None`: none may.
    pub tolerates: Option<(FailedShare, f64)>,
    /// Latencies of the answered requests.
    pub latencies: &'a Histogram<u64>,
    /// The operations that a latency limit applies to: the requests, or operations that follow from
    /// them.
    pub limited: Limited<'a>,
    /// CPU of the load threads inside the window.
    pub load_cpu_ns: u64,
    /// Part of `load_cpu_ns` that was spent polling with nothing to do.
    pub spun_ns: u64,
    /// Time that the load threads were runnable without a CPU, if the kernel reports it.
    pub run_delay_ns: Option<u64>,
    /// How many times load threads received a CPU, if the kernel reports it.
    pub turns: Option<u64>,
    /// At a rate: the fates of the requests that were due.
    pub open_loop: Option<OpenLoopFigures>,
}

/// Operations of one kind, whose latency is limited. Each request causes one.
#[derive(Clone, Copy, Debug)]
pub struct Limited<'a> {
    /// Latencies, in nanoseconds.
    pub latencies: &'a Histogram<u64>,
    /// Number of operations completed inside the window; `None` if they are the requests.
    pub further: Option<u64>,
}

/// Observations of the server during a load. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct ObservedServer {
    /// CPU time used inside the window.
    pub cpu_ns: u64,
    /// Threads alive at the end of the window.
    pub threads: u32,
    /// Voluntary context switches inside the window.
    pub voluntary_switches: u64,
    /// Time that its threads were runnable without a CPU, if the kernel reports it.
    pub run_delay_ns: Option<u64>,
    /// CPU time of its busiest thread inside the window, if the kernel reports it.
    pub busiest_thread_ns: Option<u64>,
    /// Number of its CPUs.
    pub cpus: u32,
    /// Whether the load may have run on some of them.
    pub shares: bool,
}

impl SingleLoad<'_> {
    /// Number of CPUs that the load could keep busy.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
    }

    /// In open loop: number of requests that were due and have no latency. They count as longer than all
    /// others. In closed loop: 0.
    pub fn unanswered(&self) -> u64 {
        self.open_loop.as_ref().map_or(0, |open| open.unsent + open.timed_out + open.lost)
    }

    /// Correct replies per second.
    pub fn rate_per_s(&self) -> f64 {
        self.requests as f64 * 1e9 / self.window_ns.max(1) as f64
    }

    /// The latencies; unanswered requests count as longer than all others.
    pub fn latency(&self) -> Latency {
        Latency::of_censored(self.latencies, self.unanswered())
    }
}

impl ObservedServer {
    /// Number of CPUs that it could keep busy: its CPUs, but at most one per thread.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
    }
}
