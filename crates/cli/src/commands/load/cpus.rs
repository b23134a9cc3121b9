//! Checks that the load has CPUs of its own: a spinning thread starves others on its CPU.

use anyhow::bail;
use regatta_host::{allowed_cpus, allowed_cpus_of};
use std::collections::BTreeSet;

/// Whether the load's `cpus` are given, are enough for one per thread, and none is known to be one on
/// which one of the processes `pids` may run.
pub fn are_own(cpus: &[u32], threads: usize, pids: &[u32]) -> bool {
    !cpus.is_empty() && are_enough(cpus, threads) && shared(cpus, pids).is_none()
}

/// Returns an error if this process may not run on one of these CPUs.
pub fn check_allowed(cpus: &[u32]) -> anyhow::Result<()> {
    let Ok(allowed) = allowed_cpus() else { return Ok(()) };
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => bail!("--cpus: CPU {cpu} is not available; this process may use {allowed:?}"),
        None => Ok(()),
    }
}

/// Returns an error if polling is known to take a CPU from the server or from another load thread.
/// Without `cpus`, the load may run on every CPU of this process.
pub fn check_busy_poll(cpus: &[u32], threads: usize, pids: &[u32]) -> anyhow::Result<()> {
    let anywhere = || allowed_cpus().unwrap_or_default();
    let cpus = &if cpus.is_empty() { anywhere() } else { cpus.to_vec() };
    if !are_enough(cpus, threads) {
        bail!(
            "--busy-poll needs one CPU for each of the {threads} load threads, but they have \
             {cpus:?}: use more --cpus or fewer --threads"
        );
    }
    if let Some((cpu, pid)) = shared(cpus, pids) {
        bail!(
            "--busy-poll would take CPU {cpu} from the process of --pid {pid}, which may run there: use \
             other --cpus for the load, and pin the server to its own CPUs, e.g. with taskset"
        );
    }
    Ok(())
}

fn are_enough(cpus: &[u32], threads: usize) -> bool {
    cpus.iter().collect::<BTreeSet<_>>().len() >= threads
}

/// The first of `cpus` on which one of the processes `pids` may run, too, and that process.
fn shared(cpus: &[u32], pids: &[u32]) -> Option<(u32, u32)> {
    pids.iter().find_map(|&pid| {
        let server = allowed_cpus_of(pid)?;
        cpus.iter().copied().find(|cpu| server.contains(cpu)).map(|cpu| (cpu, pid))
    })
}
