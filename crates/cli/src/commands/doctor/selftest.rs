//! The self-test: for two seconds, each CPU (at most 64) repeats a fixed piece of work and then short
//! sleeps. `noise` judges the measurements.

use regatta_host::{Steal, allowed_cpus};
use rustix::{
    thread::{CpuSet, sched_setaffinity, set_current_timer_slack},
    time::{ClockId, clock_gettime},
};
use std::{
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
    pub cpu: u32,
    /// All pieces of work, in order. They have the same size on all CPUs.
    pub pieces: Vec<Piece>,
    /// How much longer than intended each sleep took, in nanoseconds.
    pub late_ns: Vec<u64>,
    /// The share of the test's time that the hypervisor gave to other guests; `None` if the kernel does not report it.
    pub stolen: Option<f64>,
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
    let cpus = allowed_cpus().unwrap_or_default().into_iter().take(MOST_CPUS);
    let (rounds, began) = (calibrate(), Instant::now());
    thread::scope(|scope| {
        let threads: Vec<_> =
            cpus.map(|cpu| scope.spawn(move || test(cpu, rounds, began))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()?).collect()
    })
}

fn test(cpu: u32, rounds: u64, began: Instant) -> Option<OfCpu> {
    let mut only = CpuSet::new();
    only.set(cpu as usize);
    sched_setaffinity(None, &only).ok()?;
    // The load does the same at a rate. If the kernel refuses, sleeps here are as late as the load's.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let mut of_cpu = OfCpu { cpu, ..OfCpu::default() };
    let before = Steal::of(&[cpu]);
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
            break;
        }
    }
    of_cpu.stolen = Steal::of(&[cpu]).zip(before).and_then(|(now, before)| now.since(&before));
    Some(of_cpu)
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

#[cfg(test)]
mod tests {
    use super::*;

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
