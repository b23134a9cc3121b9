//! The CPUs that threads may run on.

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity},
};
use std::io;

/// Returns the CPUs that the calling thread may run on, in ascending order.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    Ok(list(sched_getaffinity(None)?))
}

/// Returns the same of a thread, by its id (that of a process is its first thread's); `None` if it is gone.
pub fn allowed_cpus_of(thread: u32) -> Option<Vec<u32>> {
    let thread = Pid::from_raw(thread.try_into().ok()?)?;
    sched_getaffinity(Some(thread)).ok().map(list)
}

fn list(allowed: CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32).collect()
}
