//! Whether the threads of a contender may run only where they were put. A process may give itself other
//! CPUs (sched_setaffinity(2)) wherever no cpuset forbids it, and then has more of them than those it
//! is compared with, and the load has less.

use crate::{
    process::{Process, named, threads},
    roles::Roles,
    usage::Observed,
};
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity},
};
use std::{fmt, fs};

/// The processes of a contender, and the CPUs that they were put on.
#[derive(Clone, Debug)]
pub struct Confined(Vec<(Observed, Vec<u32>)>);

/// A thread that may run on other CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loose {
    /// Its process.
    pub process: Process,
    /// Where it may run.
    pub allowed: Vec<u32>,
    /// Where it was put.
    pub given: Vec<u32>,
}

impl fmt::Display for Loose {
    /// `process 17 (server) may run on CPUs 0, 1 and was put on 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let Loose { process: Process { pid, name }, allowed, given } = self;
        let (allowed, given) = (list(allowed), list(given));
        write!(f, "process {pid} ({name}) may run on CPUs {allowed} and was put on {given}")
    }
}

impl Confined {
    /// Of all roles that were put on CPUs.
    pub fn of(roles: &Roles) -> Confined {
        let each = roles.all().iter().filter(|role| !role.cpus.is_empty()).flat_map(|role| {
            role.observed().into_iter().map(|process| (process, role.cpus.clone()))
        });
        Confined(each.collect())
    }

    /// A thread that may run elsewhere, if there is one. A system call for each thread, so not inside a
    /// measured window.
    pub fn loose(&self) -> Option<Loose> {
        self.0.iter().find_map(|(processes, given)| {
            processes.pids().into_iter().find_map(|pid| {
                let each = threads(pid).into_iter();
                let wider = |thread| beyond(thread, given).filter(|_| !is_ring_worker(pid, thread));
                let allowed = each.filter_map(wider).next()?;
                Some(Loose { process: named(pid), allowed, given: given.clone() })
            })
        })
    }
}

/// Where a thread may run, if that is elsewhere too. `None` where it is gone.
fn beyond(thread: u32, given: &[u32]) -> Option<Vec<u32>> {
    let allowed = sched_getaffinity(Some(Pid::from_raw(thread.try_into().ok()?)?)).ok()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32);
    let cpus: Vec<u32> = cpus.collect();
    cpus.iter().any(|cpu| !given.contains(cpu)).then_some(cpus)
}

/// Whether a thread is a worker that the kernel made for a ring, for work that would block. The kernel
/// gives these all CPUs of the cpuset, whatever their process was put on (`create_io_worker`,
/// io_uring/io-wq.c), so it is not the contender's doing.
fn is_ring_worker(pid: u32, thread: u32) -> bool {
    // Of include/linux/sched.h.
    const PF_IO_WORKER: u64 = 0x10;
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")) else {
        return false;
    };
    let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'))
    else {
        return false;
    };
    // The flags are the ninth field (proc_pid_stat(5)), and the state, the first here, is its third.
    let flags = rest.split_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    name.starts_with("iou-wrk") && flags.is_some_and(|flags| flags & PF_IO_WORKER != 0)
}
