//! More rounds are advised only where they could decide a comparison, with their number.

use crate::simulated::{LOAD, Machine, QUIET, asked, rounds, truth};
use regatta_judge::judge;
use regatta_record::{Cell, Kind, Relation, Round, Summary};

const NAMES: [&str; 4] = ["epoll", "epoll-twin", "null", "node"];

fn race(twin_ns: f64, node_ns: f64, noise: f64) -> Vec<Round> {
    let costs = [5_000.0, twin_ns, 4_000.0, node_ns];
    let field: Vec<_> = NAMES.iter().zip(costs).map(|(n, c)| truth(n, c)).collect();
    rounds(&field, &[LOAD], 7, Machine { noise, ..QUIET }, 11)
}

fn judged(rounds: &[Round]) -> Summary {
    judge(&asked(&NAMES, 7, &[LOAD]), rounds)
}

fn node(summary: &Summary) -> &Cell {
    let node = summary.cells.iter().find(|c| c.contender == "node").unwrap();
    assert_eq!(node.relation, Some(Relation::Inconclusive), "{:?}", node.ratio_to_baseline);
    node
}

#[test]
fn advises_as_many_rounds_as_would_decide() {
    let summary = judged(&race(5_000.0, 5_400.0, 0.06));
    let needed = node(&summary).rounds_to_decide.expect("more rounds decide on 8%");
    assert!((8..200).contains(&needed), "{needed}");
    let more = rounds_of(needed * 2, 5_400.0);
    let later = judge(&asked(&NAMES, needed * 2, &[LOAD]), &more);
    let later = later.cells.iter().find(|c| c.contender == "node").unwrap();
    assert_eq!((later.relation, later.rounds_to_decide), (Some(Relation::Costlier), None));
}

fn rounds_of(passes: u32, node_ns: f64) -> Vec<Round> {
    let costs = [5_000.0, 5_000.0, 4_000.0, node_ns];
    let field: Vec<_> = NAMES.iter().zip(costs).map(|(n, c)| truth(n, c)).collect();
    rounds(&field, &[LOAD], passes, Machine { noise: 0.06, ..QUIET }, 11)
}

#[test]
fn none_are_advised_within_a_lasting_offset_of_the_twin() {
    let summary = judged(&race(5_500.0, 5_300.0, 0.005));
    assert_eq!(node(&summary).rounds_to_decide, None, "6% within an offset of 10%");
    let floor = summary.doubts.iter().find(|d| d.starts_with("the noise floor is ±")).unwrap();
    assert!(floor.contains("more rounds do not lower it"), "{floor}");
    assert!(!floor.contains("run more rounds"), "{floor}");
}

#[test]
fn none_are_advised_if_the_load_was_the_limit() {
    let mut rounds = race(5_000.0, 5_400.0, 0.06);
    for round in rounds.iter_mut().filter(|round| round.contender == "node") {
        // The server used a tenth of its CPU, the load all of its CPU.
        round.load_cpu_ns = round.window_ns * u64::from(round.load_cpus);
        round.load_spun_ns = 0;
        round.window_ns *= 10;
        round.load_cpu_ns *= 10;
    }
    let summary = judged(&rounds);
    assert!(node(&summary).verdict.is(Kind::GeneratorBound), "{:?}", node(&summary).verdict);
    assert_eq!(node(&summary).rounds_to_decide, None);
}

#[test]
fn none_are_advised_if_the_twin_is_void() {
    let mut rounds = race(5_000.0, 5_400.0, 0.06);
    for round in rounds.iter_mut().filter(|round| round.contender == "epoll-twin") {
        round.server = None;
    }
    let summary = judged(&rounds);
    let doubt = summary.doubts.iter().find(|d| d.contains("the noise floor is not known")).unwrap();
    assert!(doubt.contains("epoll-twin") && !doubt.contains("run more rounds"), "{doubt}");
}
