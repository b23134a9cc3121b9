//! Whether the load's CPUs are its own: a thread that spins takes its CPU from whoever shares it.

use anyhow::bail;
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity},
};
use std::collections::BTreeSet;

/// Whether `cpus`, those of the load, are given, one at least for each thread, and none of them is
/// known to be one that the process `pid` may run on.
pub fn are_own(cpus: &[u32], threads: usize, pid: Option<u32>) -> bool {
    !cpus.is_empty() && are_enough(cpus, threads) && shared(cpus, pid).is_none()
}

/// Refuses to poll where that is known to take a CPU from the server or from another load thread.
/// Without `cpus` the load runs wherever this program may.
pub fn check_busy_poll(cpus: &[u32], threads: usize, pid: Option<u32>) -> anyhow::Result<()> {
    let anywhere = || allowed(None).unwrap_or_default();
    let cpus = &if cpus.is_empty() { anywhere() } else { cpus.to_vec() };
    if !are_enough(cpus, threads) {
        bail!(
            "--busy-poll takes a CPU for each of the {threads} load threads, and they have \
             {cpus:?}: give them more --cpus, or fewer --threads"
        );
    }
    if let Some(cpu) = shared(cpus, pid) {
        bail!(
            "--busy-poll would take CPU {cpu} from the process of --pid, which may run there: give \
             the load other --cpus, and the server its own, as with taskset"
        );
    }
    Ok(())
}

fn are_enough(cpus: &[u32], threads: usize) -> bool {
    cpus.iter().collect::<BTreeSet<_>>().len() >= threads
}

/// One of `cpus` that the process may run on too.
fn shared(cpus: &[u32], pid: Option<u32>) -> Option<u32> {
    let server = allowed(Some(Pid::from_raw(pid?.try_into().ok()?)?))?;
    cpus.iter().copied().find(|cpu| server.contains(cpu))
}

/// CPUs that a process may run on, this one if `None`.
fn allowed(pid: Option<Pid>) -> Option<Vec<u32>> {
    let set = sched_getaffinity(pid).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}
