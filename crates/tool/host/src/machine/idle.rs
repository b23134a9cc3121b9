//! Checks that the CPUs of a race are idle between rounds. A contender may leave work running in a
//! process that is not its own, and the next contender would pay for it.

use regatta_record::{CpuSets, LoadShape};
use rustix::{
    process::setpriority_process,
    thread::{CpuSet, sched_setaffinity},
    time::{ClockId, clock_gettime},
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Duration of a check.
const LOOK: Duration = Duration::from_millis(10);
/// A CPU counts as idle if a thread of the lowest priority gets at least this share of it. Any other
/// busy thread would take half or more.
const FREE: f64 = 0.7;
/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(40);

/// Checks the CPUs before a contender is started and after it has ended.
#[derive(Debug)]
pub struct IdleCheck {
    cpus: Vec<u32>,
    was_free: bool,
}

impl IdleCheck {
    /// Maximum time to wait for idle CPUs. Other programs on the machine may never end.
    pub const LONGEST: Duration = Duration::from_secs(3);

    /// Checks for 10 ms whether the CPUs of server and load are idle.
    pub fn before(cpus: &CpuSets, load: &LoadShape) -> IdleCheck {
        // Those of a server on another machine are not checked.
        let of_server = if cpus.apart { Vec::new() } else { cpus.of_server(load) };
        let mut all = [of_server, cpus.of_load(load)].concat();
        all.sort_unstable();
        all.dedup();
        let was_free = are_free(&all);
        IdleCheck { cpus: all, was_free }
    }

    /// Waits until the CPUs are idle again, for at most 3 s and while `go_on` returns true. Returns how
    /// long it waited, zero if they were idle at once; `None` if they were not idle before the start.
    pub fn after(&self, go_on: &dyn Fn() -> bool) -> Option<Duration> {
        if !self.was_free {
            return None;
        }
        let began = Instant::now();
        let mut waited = Duration::ZERO;
        while !are_free(&self.cpus) {
            thread::sleep(PAUSE);
            waited = began.elapsed();
            if waited >= Self::LONGEST || !go_on() {
                break;
            }
        }
        Some(waited)
    }
}

fn are_free(cpus: &[u32]) -> bool {
    thread::scope(|scope| {
        let looks: Vec<_> = cpus.iter().map(|&cpu| scope.spawn(move || share(cpu))).collect();
        let shares = looks.into_iter().map(|look| look.join().ok().flatten());
        // Collected first, so that every thread is joined.
        let shares: Vec<_> = shares.collect();
        shares.into_iter().all(|share| share.is_some_and(|share| share >= FREE))
    })
}

/// Returns the share of a CPU that this thread gets. Leaves the thread on that CPU, at the lowest
/// priority.
fn share(cpu: u32) -> Option<f64> {
    let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < CpuSet::MAX_CPU)?;
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).ok()?;
    // On Linux this affects only the calling thread (setpriority(2), C library/kernel differences).
    setpriority_process(None, 19).ok()?;
    let (began, used_before) = (Instant::now(), used());
    while began.elapsed() < LOOK {}
    let lasted = began.elapsed();
    Some((used() - used_before).as_secs_f64() / lasted.as_secs_f64())
}

/// Returns the CPU time that this thread has used.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowed_cpus;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn a_cpu_with_a_busy_thread_is_not_idle() {
        let cpu = allowed_cpus().unwrap()[0];
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let mut only = CpuSet::new();
                only.set(cpu as usize);
                sched_setaffinity(None, &only).unwrap();
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
            // The thread may need a moment to start.
            let shares: Vec<f64> = (0..5).map(|_| on_thread(cpu)).collect();
            is_over.store(true, Relaxed);
            worker.join().unwrap();
            let least = shares.iter().copied().fold(1.0, f64::min);
            assert!(least < FREE, "{shares:?}");
        });
    }

    fn on_thread(cpu: u32) -> f64 {
        thread::scope(|scope| scope.spawn(|| share(cpu)).join()).unwrap().unwrap()
    }

    #[test]
    fn does_not_wait_for_cpus_that_were_busy_before() {
        let check = IdleCheck { cpus: vec![u32::MAX], was_free: false };
        assert_eq!(check.after(&|| true), None);
        // A CPU that does not exist is never idle, so only `go_on` ends the wait.
        let check = IdleCheck { cpus: vec![u32::MAX], was_free: true };
        assert!(check.after(&|| false).is_some_and(|waited| waited < IdleCheck::LONGEST));
    }
}
