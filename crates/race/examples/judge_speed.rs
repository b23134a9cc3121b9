//! How long the statistics of a large race take: 1,000 rounds × 20 cells, five times over.
//! `cargo run --release -p regatta-race --example judge_speed`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_race::judge::judge;
use simulated::{LOAD, Machine, QUIET, asked, rounds, truth};
use std::time::Instant;

fn main() {
    let names: Vec<&str> = "a a-twin null d e f g h i j k l m n o p q r s t".split(' ').collect();
    let contenders: Vec<_> = names.iter().map(|name| truth(name, 5_000.0)).collect();
    let machine = Machine { samples: 2_000, ..QUIET };
    let rounds = rounds(&contenders, &[LOAD], 1_000, machine, 9);
    let asked = asked(&names, 1_000, &[LOAD]);
    for _ in 0..5 {
        let start = Instant::now();
        let summary = judge(&asked, &rounds);
        println!("{} cells judged in {:?}", summary.cells.len(), start.elapsed());
    }
}
