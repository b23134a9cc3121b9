//! Scheduler statistics of the threads of a process. Reads a file for each thread.

use crate::process::tree::{number_after, threads};
use std::{collections::BTreeMap, fs};

/// The number of times that a thread gave up its CPU, or was made to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
}

/// The scheduling times of a thread, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// CPU time.
    pub ran_ns: u64,
    /// Time that it was runnable but had no CPU.
    pub waited_ns: u64,
}

/// Returns the switches of each thread of `pid`; none if it is gone.
pub(crate) fn switches(pid: u32) -> BTreeMap<u32, Switches> {
    let of_thread = |tid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
        let field = |name| number_after(&status, name).unwrap_or_default();
        let voluntary = field("\nvoluntary_ctxt_switches:");
        let involuntary = field("\nnonvoluntary_ctxt_switches:");
        Some((tid, Switches { voluntary, involuntary }))
    };
    threads(pid).into_iter().filter_map(of_thread).collect()
}

/// Returns the scheduling times of these threads of `pid`, except ended ones; none if the kernel does
/// not report them. They are the first two figures of `schedstat`
/// (Documentation/scheduler/sched-stats.rst): time on a CPU, and time waiting for one. The latter
/// includes the time that a sleeping CPU takes to wake.
pub(crate) fn scheduled<'a>(
    pid: u32,
    threads: impl Iterator<Item = &'a u32>,
) -> BTreeMap<u32, Scheduled> {
    let of_thread = |&tid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        let mut figures = text.split_ascii_whitespace().map(str::parse);
        let (ran_ns, waited_ns) = (figures.next()?.ok()?, figures.next()?.ok()?);
        Some((tid, Scheduled { ran_ns, waited_ns }))
    };
    threads.filter_map(of_thread).collect()
}
