//! Starts processes on chosen CPUs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the first two CPUs that this process may use, one for servers and one for their load.
/// Returns `None` if there is only one.
pub fn two_cpus() -> Option<(u32, u32)> {
    let allowed = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32);
    Some((cpus.next()?, cpus.next()?))
}

/// Runs `start` on one CPU. The processes that it starts inherit the CPU.
pub fn on_cpu<T>(cpu: u32, start: impl FnOnce() -> T) -> T {
    let before = sched_getaffinity(None).unwrap();
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    sched_setaffinity(None, &only).unwrap();
    let started = start();
    sched_setaffinity(None, &before).unwrap();
    started
}
