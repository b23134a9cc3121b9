//! The duration of the statistics of a large race: 1,000 rounds × 20 cells, five times, in closed
//! and in open loop. `cargo run --release -p regatta-judge --example judge_speed`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{LoadShape, Round};
use simulated::{LOAD, Machine, QUIET, asked, open, open_loop, rounds, truth};
use std::time::{Duration, Instant};

fn main() {
    let names: Vec<&str> = "a a-twin null d e f g h i j k l m n o p q r s t".split(' ').collect();
    let contenders: Vec<_> = names.iter().map(|name| truth(name, 5_000.0)).collect();
    let machine = Machine { samples: 2_000, ..QUIET };
    time("closed loop", &names, &rounds(&contenders, &[LOAD], 1_000, machine, 9));

    let at_rate = LoadShape { drive: open(1_000), ..LOAD };
    let mut rounds = rounds(&contenders, &[at_rate], 1_000, machine, 9);
    for (seed, round) in rounds.iter_mut().enumerate() {
        open_loop::set(round, &open_loop::quiet(2_000, seed as u64), 0);
    }
    time("open loop", &names, &rounds);
}

fn time(what: &str, names: &[&str], rounds: &[Round]) {
    let asked = asked(names, 1_000, &[rounds[0].load]);
    for _ in 0..5 {
        let (start, cpu) = (Instant::now(), cpu());
        let summary = judge(&asked, rounds);
        let (wall, cpu) = (start.elapsed(), self::cpu() - cpu);
        println!("{what}: {} cells judged in {wall:.2?}, {cpu:.2?} of CPU", summary.cells.len());
    }
}

/// CPU time of this process. On a busy machine it is more reliable than the wall clock.
fn cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
