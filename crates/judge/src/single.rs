//! A single load as it is judged: what was asked of it, and what came.

use crate::fault::Replies;
use hdrhistogram::Histogram;
use regatta_record::{Drive, Latency, OpenLoopFigures};

/// A single load: what was asked of it, and what came of it. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct SingleLoad<'a> {
    /// When its requests were sent.
    pub drive: Drive,
    /// Number of load threads, over all processes.
    pub threads: u32,
    /// Number of CPUs that these may run on.
    pub cpus: u32,
    /// Right replies inside the window.
    pub requests: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// What came of the replies that were owed.
    pub replies: Replies<'a>,
    /// Right replies over the whole run.
    pub answered: u64,
    /// The share of all requests that may fail, wrong replies among them; `None`: none.
    pub tolerates: Option<f64>,
    /// Latencies of the requests that were answered.
    pub latencies: &'a Histogram<u64>,
    /// What a limit of latency is about: the requests, or what follows from them.
    pub limited: Limited<'a>,
    /// CPU of the load threads inside the window.
    pub load_cpu_ns: u64,
    /// Of that: spent on polling with nothing to do.
    pub spun_ns: u64,
    /// Time that the load threads were runnable and had no CPU, where the kernel tells.
    pub run_delay_ns: Option<u64>,
    /// How often load threads were given a CPU, where the kernel tells.
    pub turns: Option<u64>,
    /// At a rate: what became of the requests that were due.
    pub open_loop: Option<OpenLoopFigures>,
}

/// Operations of one kind, whose latency is limited. Each request has one of them.
#[derive(Clone, Copy, Debug)]
pub struct Limited<'a> {
    /// Latencies, as of requests.
    pub latencies: &'a Histogram<u64>,
    /// Those that came inside the window; `None` where they are the requests.
    pub further: Option<u64>,
}

/// The server as it was observed during a load. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct OfServer {
    /// CPU that it used inside the window.
    pub cpu_ns: u64,
    /// Threads alive at the end of the window.
    pub threads: u32,
    /// Voluntary context switches inside the window.
    pub voluntary_switches: u64,
    /// How long its threads were runnable and had no CPU, where the kernel tells.
    pub run_delay_ns: Option<u64>,
    /// CPU inside the window of its busiest thread, where the kernel tells.
    pub busiest_thread_ns: Option<u64>,
    /// How many CPUs it had.
    pub cpus: u32,
    /// Whether the load may have run on some of them.
    pub shares: bool,
}

impl SingleLoad<'_> {
    /// Number of CPUs that the load could keep busy.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
    }

    /// Requests that were due and have no latency: longer than any that has one.
    pub fn unanswered(&self) -> u64 {
        self.open_loop.as_ref().map_or(0, |open| open.unsent + open.timed_out + open.lost)
    }

    /// The share of the requests of the whole run that failed.
    pub fn failed(&self) -> f64 {
        let failed = self.replies.errors.failed();
        failed as f64 / (failed + self.answered).max(1) as f64
    }

    /// Right replies per second.
    pub fn rate_per_s(&self) -> f64 {
        self.requests as f64 * 1e9 / self.window_ns.max(1) as f64
    }

    /// The latencies, those of unanswered requests being longer than all others.
    pub fn latency(&self) -> Latency {
        Latency::of_censored(self.latencies, self.unanswered())
    }
}

impl OfServer {
    /// CPUs that it could be busy on: those that it had, and no more than it had threads.
    pub fn usable_cpus(&self) -> u32 {
        self.cpus.min(self.threads).max(1)
    }
}
