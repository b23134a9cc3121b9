//! Prints the summary of a simulated race in open loop: held, late, overloaded, disturbed.
//!
//! `cargo run -p regatta-judge --example simulated_open > crates/tool/report/tests/open.json`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{Arrivals, Drive, LoadShape, Machine, Round};
use simulated::{
    LOAD, QUIET, asked,
    open_loop::{self, Parts},
    rounds, truth,
};
use std::num::NonZeroU32;

const fn at(arrivals: Arrivals) -> LoadShape {
    let rate = NonZeroU32::new(10_000).unwrap();
    LoadShape { drive: Drive::Open { rate, arrivals }, ..LOAD }
}

const POISSON: LoadShape = at(Arrivals::Poisson);
const EVEN: LoadShape = at(Arrivals::Constant);

fn main() {
    let names = ["epoll", "epoll-twin", "null", "late", "node", "crowded"];
    let contenders = names.map(|name| truth(name, if name == "null" { 4_000.0 } else { 5_000.0 }));
    let mut rounds = rounds(&contenders, &[POISSON, EVEN], 7, QUIET, 11);
    rounds.iter_mut().enumerate().for_each(|(seed, round)| open(round, seed as u64));
    let summary = judge(&asked(&names, 7, &[POISSON, EVEN]), &rounds);
    println!("{}", serde_json::to_string_pretty(&summary).expect("a summary is plain data"));
}

fn open(round: &mut Round, seed: u64) {
    let unsent = if round.contender == "node" { 6_000 } else { 0 };
    let mut parts = open_loop::quiet(20_000 - unsent, seed);
    for (i, part) in parts.iter_mut().enumerate() {
        match round.contender.as_str() {
            "late" if i.is_multiple_of(40) => part.lag = 3_000_000,
            "node" => *part = Parts { wait: 400_000_000, service: 6_000_000, ..*part },
            _ => {}
        }
    }
    open_loop::set(round, &parts, unsent);
    let crowded = round.contender == "crowded";
    round.machine = Some(Machine {
        steal: Some(0.002),
        server_run_delay_ns: Some(if crowded { 900_000_000 } else { 2_000_000 }),
        load_run_delay_ns: Some(3_000_000),
        load_turns: Some(20_000),
        ..Machine::default()
    });
}
