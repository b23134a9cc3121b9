//! The self-test: for two seconds, each CPU (at most 64) repeats a fixed piece of work and then short
//! sleeps. `noise` judges the measurements.

use rustix::{
    thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack},
    time::{ClockId, clock_gettime},
};
use std::{
    fs,
    hint::black_box,
    num::NonZeroU64,
    thread,
    time::{Duration, Instant},
};

/// How long work is repeated.
const WORK: Duration = Duration::from_millis(1_500);
/// How long sleeps are repeated after that.
const SLEEPS: Duration = Duration::from_millis(500);
/// Approximate CPU time of a piece of work.
const PIECE_NS: u64 = 1_000_000;
/// Intended length of a sleep.
const SLEEP: Duration = Duration::from_millis(1);
/// Maximum number of CPUs that are tested.
const MOST_CPUS: usize = 64;

/// The measurements of one CPU.
#[derive(Clone, Debug, Default)]
pub struct OfCpu {
    /// Its number.
    pub cpu: usize,
    /// All pieces of work, in order. They have the same size on all CPUs.
    pub pieces: Vec<Piece>,
    /// How much longer than intended each sleep took, in nanoseconds.
    pub late_ns: Vec<u64>,
    /// Clock ticks that the hypervisor gave to other guests, and all ticks of the test. `None` if the
    /// kernel does not report them.
    pub stolen: Option<(u64, u64)>,
}

/// The duration of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// CPU time of the thread, in nanoseconds.
    pub cpu_ns: u64,
    /// Wall-clock time, in nanoseconds.
    pub wall_ns: u64,
}

/// Tests the CPUs that this process may use, at most the first 64, in parallel. A CPU to which a thread
/// cannot be pinned is skipped.
pub fn run() -> Vec<OfCpu> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(MOST_CPUS);
    let rounds = calibrate();
    let before = fs::read_to_string("/proc/stat").unwrap_or_default();
    let began = Instant::now();
    let mut all: Vec<OfCpu> = thread::scope(|scope| {
        let threads: Vec<_> =
            cpus.map(|cpu| scope.spawn(move || test(cpu, rounds, began))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()?).collect()
    });
    let after = fs::read_to_string("/proc/stat").unwrap_or_default();
    for one in &mut all {
        one.stolen = stolen(&before, &after, one.cpu);
    }
    all
}

fn test(cpu: usize, rounds: u64, began: Instant) -> Option<OfCpu> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).ok()?;
    // The load does the same at a rate. If the kernel refuses, sleeps here are as late as the load's.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut of_cpu = OfCpu { cpu, ..OfCpu::default() };
    // At least one piece and one sleep, even if this thread was scheduled late.
    loop {
        of_cpu.pieces.push(piece(rounds));
        if began.elapsed() >= WORK {
            break;
        }
    }
    loop {
        let from = Instant::now();
        thread::sleep(SLEEP);
        of_cpu.late_ns.push(from.elapsed().saturating_sub(SLEEP).as_nanos() as u64);
        if began.elapsed() >= WORK + SLEEPS {
            return Some(of_cpu);
        }
    }
}

fn piece(rounds: u64) -> Piece {
    let (wall, cpu) = (Instant::now(), thread_cpu_ns());
    work(rounds);
    Piece { cpu_ns: thread_cpu_ns() - cpu, wall_ns: wall.elapsed().as_nanos() as u64 }
}

/// A chain of dependent multiplications, without memory access.
fn work(rounds: u64) {
    let mut x = black_box(1_u64);
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Returns the number of rounds that take about [`PIECE_NS`].
fn calibrate() -> u64 {
    const ENOUGH_NS: u64 = PIECE_NS / 4;
    let mut rounds = 1_000;
    loop {
        let took = piece(rounds).cpu_ns;
        if took >= ENOUGH_NS {
            return (rounds as f64 * PIECE_NS as f64 / took as f64) as u64;
        }
        rounds *= 2;
    }
}

fn thread_cpu_ns() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Returns the stolen ticks and all ticks between two readings of /proc/stat. Steal is the eighth
/// number after the CPU's name (proc_stat(5)); the later numbers, guest time, are already part of user
/// time.
fn stolen(before: &str, after: &str, cpu: usize) -> Option<(u64, u64)> {
    let read = |stat: &str| -> Option<(u64, u64)> {
        let line = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
        let numbers: Vec<u64> =
            line.split_whitespace().take(8).map_while(|number| number.parse().ok()).collect();
        Some((*numbers.get(7)?, numbers.iter().sum()))
    };
    let ((stolen_before, before), (stolen_after, after)) = (read(before)?, read(after)?);
    let all = after.saturating_sub(before);
    (all > 0).then(|| (stolen_after.saturating_sub(stolen_before), all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_steal_from_the_eighth_number_of_a_cpu_line() {
        let before =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 0 1 1 0 0 0 5 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n";
        let after = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 51 0 31 11 0 0 0 15 50 0\ncpu1 0 0 0 0 0\n";
        assert_eq!(stolen(before, after, 0), Some((10, 100)));
        assert_eq!(stolen(before, after, 1), None, "a kernel that does not report steal");
        assert_eq!(stolen(before, after, 7), None);
    }

    #[test]
    fn every_cpu_works_and_sleeps() {
        let all = run();
        assert!(!all.is_empty());
        for of_cpu in &all {
            assert!(!of_cpu.pieces.is_empty() && !of_cpu.late_ns.is_empty(), "{}", of_cpu.cpu);
            assert!(of_cpu.pieces.iter().all(|p| p.cpu_ns > 0 && p.wall_ns > 0));
        }
    }
}
