//! Checks that the CPUs of a race are idle between rounds. A contender may leave work running in a
//! process that is not its own, and the next contender would pay for it.

use regatta_record::{CpuSets, LoadShape};
use rustix::param::clock_ticks_per_second;
use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// Duration of a look. The kernel counts the time without work in ticks of 10 ms.
const LOOK: Duration = Duration::from_millis(60);
/// A CPU counts as idle if it had no work for this share of a look: five sixths of it always suffice, and
/// two thirds never do. The share that a thread of the lowest priority gets would be no measure: where the kernel
/// has a group of threads for each session (`sched_autogroup_enabled`), a priority counts only within its group.
const FREE: f64 = 0.7;

/// Checks the CPUs before a contender is started and after it has ended.
#[derive(Debug)]
pub struct IdleCheck {
    cpus: Vec<u32>,
    was_free: bool,
}

impl IdleCheck {
    /// Maximum time to wait for idle CPUs. Other programs on the machine may never end.
    pub const LONGEST: Duration = Duration::from_secs(3);

    /// Looks for 60 ms whether the CPUs of server and load are idle.
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
            waited = began.elapsed();
            if waited >= Self::LONGEST || !go_on() {
                break;
            }
        }
        Some(waited)
    }
}

fn are_free(cpus: &[u32]) -> bool {
    let (began, before) = (Instant::now(), idle_ticks(cpus));
    thread::sleep(LOOK);
    let wanted = began.elapsed().as_secs_f64() * FREE * clock_ticks_per_second() as f64;
    let now = idle_ticks(cpus);
    let had_no_work = |(now, before): (&u64, &u64)| now.saturating_sub(*before) as f64 >= wanted;
    cpus.len() == before.len()
        && now.len() == before.len()
        && now.iter().zip(&before).all(had_no_work)
}

/// Returns how long each of these CPUs has had no work since the start of the system.
fn idle_ticks(cpus: &[u32]) -> Vec<u64> {
    fs::read_to_string("/proc/stat").map(|stat| parse(&stat, cpus)).unwrap_or_default()
}

/// Returns the sums of the fourth and the fifth figure of the CPUs' lines: without work, also while a disk is
/// waited for (proc_stat(5)).
fn parse(stat: &str, cpus: &[u32]) -> Vec<u64> {
    let of_line = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu: u32 = fields.next()?.parse().ok()?;
        let mut next = || fields.next()?.parse::<u64>().ok();
        let [_user, _nice, _system, idle, disk] = [next()?, next()?, next()?, next()?, next()?];
        cpus.contains(&cpu).then_some(idle + disk)
    };
    stat.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowed_cpus;
    use rustix::thread::{CpuSet, sched_setaffinity};
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
            let looks: Vec<bool> = (0..5).map(|_| are_free(&[cpu])).collect();
            is_over.store(true, Relaxed);
            worker.join().unwrap();
            // The thread may need a moment to start.
            assert_eq!(looks[1..], [false; 4]);
        });
    }

    #[test]
    fn idle_time_is_that_without_work_and_that_in_which_a_disk_is_waited_for() {
        let stat = "cpu  9 9 9 900 90 9 9 9 0 0\ncpu0 1 2 3 400 50 6 7 8 0 0\n\
                    cpu1 8 7 6 500 40 3 2 1 0 0\nintr 7 0 0 0 0 0 0 0 99\n";
        assert_eq!(parse(stat, &[0, 1]), [450, 540]);
        assert_eq!(parse(stat, &[1]), [540]);
        assert_eq!(parse(stat, &[7]), [0; 0]);
        assert_eq!(parse("cpu0 1 2 3 400", &[0]), [0; 0]);
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
