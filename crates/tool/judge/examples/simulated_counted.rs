//! Prints the summary of a simulated race of the workload `hash`: a counted load that an article
//! described only in words, small requests beside large ones, and silent connections.
//!
//! `cargo run -p regatta-judge --example simulated_counted > crates/tool/report/tests/counted.json`

#[path = "../tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{HistoricResult, LoadShape, Round};
use simulated::{
    QUIET, asked,
    counted::{COUNTED, FAIR, beside, count},
    rounds, truth,
};

const fn idle(idle: u32) -> LoadShape {
    LoadShape { idle, ..LoadShape::closed(10, 1) }
}

const LOADS: [LoadShape; 6] = [COUNTED, FAIR, idle(10), idle(90), idle(990), idle(9_990)];

fn main() {
    let costs = [("epoll", 4e7), ("epoll-twin", 4e7), ("go", 4.2e7), ("node", 5e7), ("php", 2e8)];
    let names = costs.map(|(name, _)| name);
    let field = costs.map(|(name, cost)| truth(name, cost));
    let mut rounds = rounds(&field, &LOADS, 7, QUIET, 11);
    rounds.iter_mut().for_each(shape);
    let mut asked = asked(&names, 7, &LOADS);
    asked.workload = "hash".to_owned();
    asked.then_source = Some("“An article” (2017)".to_owned());
    let then = |contender: &str, words: &str| HistoricResult {
        contender: contender.to_owned(),
        figure: None,
        note: Some(words.to_owned()),
        loads: vec![COUNTED],
    };
    asked.then = vec![then("node", "far back"), then("php", "ahead of Java")];
    let php = asked.entries.iter_mut().find(|entry| entry.name == "php").expect("it takes part");
    php.stand_in_for = Some("PHP 7.0".to_owned());
    let summary = judge(&asked, &rounds);
    println!("{}", serde_json::to_string_pretty(&summary).expect("a summary is plain data"));
}

fn shape(round: &mut Round) {
    if round.load.requests.is_some() {
        return count(round);
    }
    if round.load.beside.is_some() {
        return match round.contender.as_str() {
            "go" => beside(round, 48, 2_000_000),
            _ => beside(round, 50, 300_000_000),
        };
    }
    let silent = if round.contender == "php" { 4_000.0 } else { 0.0 };
    let factor = 1.0 + silent * f64::from(round.load.idle) / 4e7;
    // Such requests cost a ten thousandth of those with n=1000.
    round.requests = (round.requests as f64 * 1e4 / factor) as u64;
}
