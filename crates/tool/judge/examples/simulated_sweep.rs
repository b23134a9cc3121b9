//! Prints the summary of a simulated race over rates and over connections: lines of cost, knees and
//! laws of scalability, some of them missing.
//!
//! `cargo run -p regatta-judge --example simulated_sweep > crates/tool/report/tests/sweep.json`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::LoadShape;
use simulated::{
    Machine, QUIET, asked, rounds,
    sweep::{Queue, at, law, queue},
    truth,
};

const RATES: [u32; 9] = [5_000, 15_000, 25_000, 35_000, 45_000, 60_000, 75_000, 90_000, 120_000];
const COUNTS: [u32; 6] = [1, 4, 16, 64, 250, 1_000];

fn main() {
    let names = ["epoll", "epoll-twin", "null", "green", "threads", "<b>node</b>"];
    // Capacity, standing and marginal CPU; λ, σ and κ.
    let truths = [
        ([100_000.0, 3e6, 5_000.0], [9_000.0, 0.09, 0.0]),
        ([100_000.0, 3e6, 5_000.0], [9_000.0, 0.09, 0.0]),
        ([125_000.0, 1e6, 3_900.0], [9_500.0, 0.075, 0.0]),
        ([96_000.0, 4e6, 5_300.0], [8_800.0, 0.09, 2e-6]),
        ([80_000.0, 2.5e7, 6_800.0], [8_000.0, 0.11, 3e-5]),
        // It is overloaded at all rates except two.
        ([20_000.0, 9e6, 26_000.0], [3_000.0, 0.15, 1e-5]),
    ];
    let loads: Vec<LoadShape> = RATES
        .iter()
        .map(|rate| at(*rate))
        .chain(COUNTS.iter().map(|n| LoadShape::closed(*n, 1)))
        .collect();
    let field = names.map(|name| truth(name, 5_000.0));
    let machine = Machine { samples: 1_200, ..QUIET };
    let mut rounds = rounds(&field, &loads, 7, machine, 11);
    for (name, ([capacity, standing_ns, marginal_ns], truth)) in names.iter().zip(truths) {
        let samples = 2_000;
        let over_rates = Queue { standing_ns, marginal_ns, capacity, samples };
        let of = |rated: bool| {
            move |r: &&mut regatta_record::Round| {
                r.contender == *name && r.load.drive.rate().is_some() == rated
            }
        };
        queue(rounds.iter_mut().filter(of(true)), over_rates, 11);
        law(rounds.iter_mut().filter(of(false)), truth, 11);
    }
    for r in rounds.iter_mut().filter(|r| r.load == LoadShape::closed(250, 1)) {
        r.load_cpu_ns = r.window_ns * 97 / 100;
    }
    let summary = judge(&asked(&names, 7, &loads), &rounds);
    println!("{}", serde_json::to_string(&summary).expect("a summary is plain data"));
}
