//! Prints the summary of a simulated race in duels under two loads: at an equal rate, and at saturation.
//! The machine is noisy and has two states, and `node` reacts less to them than the others.
//!
//! `cargo run -p regatta-judge --example simulated_regimes > crates/tool/report/tests/regimes.json`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{Asked, LoadShape, Machine, Round};
use simulated::{
    LOAD,
    lives::{DUEL, Duel, duels, in_duels},
    open, open_loop, truth,
};

const RATE: u32 = 61_000;
const EQUAL_RATE: LoadShape = LoadShape { drive: open(RATE), ..LOAD };

fn main() {
    let names = ["epoll", "epoll-twin", "null", "uring", "green", "async", "threads", "node"];
    let costs = [5_000.0, 5_000.0, 4_000.0, 4_990.0, 5_080.0, 5_430.0, 8_100.0, 8_600.0];
    let field: Vec<_> = names.iter().zip(costs).map(|(name, cost)| truth(name, cost)).collect();
    let duel = Duel { lives: 14, blocks: 12, state_lasts: 9, ..DUEL };
    let mut rounds = duels(&field, duel, 3);
    let mut at_rate = duels(&field, duel, 4);
    for (seed, round) in at_rate.iter_mut().enumerate() {
        at_equal_rate(round, seed as u64);
    }
    rounds.iter_mut().for_each(at_saturation);
    rounds.extend(at_rate);
    rounds.iter_mut().for_each(disturb);
    let asked = Asked {
        precision: Some(0.01),
        time_s: Some(60.0),
        ..in_duels(&names, 40, &[EQUAL_RATE, LOAD])
    };
    let summary = judge(&asked, &rounds);
    println!("{}", serde_json::to_string_pretty(&summary).expect("a summary is plain data"));
}

/// Each slice lasts as long as its requests take to arrive.
fn at_equal_rate(round: &mut Round, seed: u64) {
    round.load = EQUAL_RATE;
    let sums = (round.requests, round.load_cpu_ns, round.server.clone());
    let cost_ns = sums.2.as_ref().map_or(0, |server| server.cpu_ns) / round.requests;
    let mut parts = open_loop::quiet(20_000, seed);
    parts.iter_mut().for_each(|part| part.service = part.service * cost_ns / 5_000);
    open_loop::set(round, &parts, 0);
    (round.requests, round.load_cpu_ns, round.server) = sums;
    let ns = |requests: u64| requests * 1_000_000_000 / u64::from(RATE);
    for slice in &mut round.life.as_mut().expect("a duel has lives").slices {
        (slice.ns, slice.load_cpu_ns) = (ns(slice.count), slice.load_cpu_ns * 5 / 4);
    }
    (round.window_ns, round.load_cpu_ns) = (ns(round.requests), round.load_cpu_ns * 5 / 4);
}

/// The load is as busy as the cheaper servers.
fn at_saturation(round: &mut Round) {
    let is_fast = !["threads", "node"].contains(&round.contender.as_str());
    round.load_cpu_ns = round.window_ns / 100 * if is_fast { 97 } else { 74 };
}

/// Another program takes a tenth of the CPUs.
fn disturb(round: &mut Round) {
    let tenth = Some(round.window_ns / 10);
    round.machine = Some(Machine {
        steal: Some(0.03),
        server_run_delay_ns: tenth,
        load_run_delay_ns: tenth,
        load_turns: Some(0),
        ..Machine::default()
    });
}
