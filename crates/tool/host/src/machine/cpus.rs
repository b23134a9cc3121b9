//! The CPUs that this process may use.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::io;

/// Returns the CPUs that the calling thread may run on, in ascending order.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}
