//! What the scheduler did with the threads of a process: a file is read for each.

use crate::process::{number_after, threads};
use std::{collections::BTreeMap, fs};

/// How often a thread gave up its CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
}

/// What the scheduler gave to a thread, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// CPU.
    pub ran_ns: u64,
    /// How long it was runnable and had no CPU.
    pub waited_ns: u64,
}

/// Of each thread of `pid`; none when it is gone.
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

/// Of these threads of `pid`, those that are there; none where the kernel does not tell. The first two
/// figures of `schedstat` (Documentation/scheduler/sched-stats.rst): time spent on a CPU, and time spent
/// waiting for one. What a CPU takes to wake from its sleep is in the latter.
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
