//! Checks that the threads of a contender may run only on their CPUs. A process may give itself other
//! CPUs (sched_setaffinity(2)) unless a cpuset forbids it. It then has more CPUs than the contenders it
//! is compared with, and the load has less.

use crate::{
    contender::roles::Roles,
    machine::cpus::allowed_cpus_of,
    process::tree::{Process, named, threads},
    usage::tree::ObservedProcesses,
};
use regatta_record::joined;
use std::{fmt, fs};

/// The processes of a contender, and the CPUs that they were put on.
#[derive(Clone, Debug)]
pub struct Confined(Vec<(ObservedProcesses, Vec<u32>)>);

/// A thread that may run on other CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayThread {
    /// Its process.
    pub process: Process,
    /// The CPUs that it may run on.
    pub allowed: Vec<u32>,
    /// The CPUs that it was put on.
    pub given: Vec<u32>,
}

impl fmt::Display for StrayThread {
    /// Writes e.g. `process 17 (server) may run on CPUs 0, 1 and was put on 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StrayThread { process: Process { pid, name }, allowed, given } = self;
        let (allowed, given) = (joined(allowed, ", "), joined(given, ", "));
        write!(f, "process {pid} ({name}) may run on CPUs {allowed} and was put on {given}")
    }
}

impl Confined {
    /// Takes all roles that were put on CPUs.
    pub fn of(roles: &Roles) -> Confined {
        let each = roles.all().iter().filter(|role| !role.cpus.is_empty()).flat_map(|role| {
            role.observed().into_iter().map(|process| (process, role.cpus.clone()))
        });
        Confined(each.collect())
    }

    /// Returns a thread that may run on other CPUs, if there is one other than the kernel's workers for
    /// rings. Takes a system call for each thread: do not call it inside a measured window.
    pub fn stray(&self) -> Option<StrayThread> {
        self.0.iter().find_map(|(processes, given)| {
            processes.pids().into_iter().find_map(|pid| {
                let each = threads(pid).into_iter();
                let wider = |thread| beyond(thread, given).filter(|_| !is_ring_worker(pid, thread));
                let allowed = each.filter_map(wider).next()?;
                Some(StrayThread { process: named(pid), allowed, given: given.clone() })
            })
        })
    }
}

/// Returns the CPUs that a thread may run on, if some are not `given`; `None` if it is gone.
fn beyond(thread: u32, given: &[u32]) -> Option<Vec<u32>> {
    let cpus = allowed_cpus_of(thread)?;
    cpus.iter().any(|cpu| !given.contains(cpu)).then_some(cpus)
}

/// Whether a thread is a worker that the kernel created for a ring, for work that would block. The
/// kernel lets these run on all CPUs of the cpuset, whatever the CPUs of their process
/// (`create_io_worker`, io_uring/io-wq.c), so the contender is not at fault.
fn is_ring_worker(pid: u32, thread: u32) -> bool {
    // From include/linux/sched.h.
    const PF_IO_WORKER: u64 = 0x10;
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")) else {
        return false;
    };
    let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'))
    else {
        return false;
    };
    // The flags are field 9 of proc_pid_stat(5). The first field here is the state, which is field 3.
    let flags = rest.split_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    name.starts_with("iou-wrk") && flags.is_some_and(|flags| flags & PF_IO_WORKER != 0)
}
