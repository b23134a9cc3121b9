//! Figures with too wide intervals are not known: this is decided in one place.

use crate::simulated::{LOAD, QUIET, asked, rounds, truth};
use hdrhistogram::Histogram;
use regatta_judge::judge;
use regatta_record::{Cell, Percentile, Relation, Round, Summary, Unknown, encode_histogram};

const NAMES: [&str; 4] = ["epoll", "epoll-twin", "null", "node"];

fn race() -> Vec<Round> {
    let costs = [5_000.0, 5_000.0, 4_000.0, 8_600.0];
    let field: Vec<_> = NAMES.iter().zip(costs).map(|(n, c)| truth(n, c)).collect();
    rounds(&field, &[LOAD], 3, QUIET, 7)
}

/// The costs of `name` in the three rounds differ by orders of magnitude.
fn race_with_wild_costs_of(name: &str) -> Vec<Round> {
    let mut rounds = race();
    for round in rounds.iter_mut().filter(|round| round.contender == name) {
        let server = round.server.as_mut().unwrap();
        server.cpu_ns = server.cpu_ns * [1, 30, 900][round.round as usize] / 900;
    }
    rounds
}

fn judged(rounds: &[Round]) -> Summary {
    judge(&asked(&NAMES, 3, &[LOAD]), rounds)
}

fn cell<'a>(summary: &'a Summary, name: &str) -> &'a Cell {
    summary.cells.iter().find(|c| c.contender == name).unwrap()
}

#[test]
fn percentiles_that_differ_by_orders_of_magnitude_are_not_known() {
    let mut rounds = race();
    for round in rounds.iter_mut().filter(|round| round.contender == "node") {
        let mut latencies = Histogram::<u64>::new(3).unwrap();
        // 200 µs in the first round, 9 ms in the others.
        let ns = if round.round == 0 { 200_000 } else { 9_000_000 };
        latencies.record_n(ns, 10_000).unwrap();
        round.histogram = encode_histogram(&latencies);
    }
    let summary = judged(&rounds);
    let node = cell(&summary, "node");
    assert_eq!(node.latency_intervals.p50, None);
    assert!(node.is_unknown(Unknown::Latency(Percentile::P50)), "{:?}", node.not_known);
    assert_eq!(
        node.percentile(Percentile::P50),
        None,
        "the one of all rounds is not shown instead"
    );
    assert!(node.latency_ns.p50.is_some(), "it stays in the record");
    assert!(node.cost_ns_per_request.is_some() && !node.is_unknown(Unknown::Cost));
    let epoll = cell(&summary, "epoll");
    assert_eq!(epoll.not_known, []);
    let p50 = epoll.percentile(Percentile::P50).unwrap();
    assert_eq!(Some(p50.ns), epoll.latency_intervals.p50.map(|e| e.mean));
}

#[test]
fn a_cost_and_a_ratio_that_differ_by_orders_of_magnitude_are_not_known() {
    let summary = judged(&race_with_wild_costs_of("node"));
    let node = cell(&summary, "node");
    assert_eq!((node.cost_ns_per_request, node.ratio_to_baseline), (None, None));
    assert!(node.is_unknown(Unknown::Cost) && node.is_unknown(Unknown::Ratio));
    assert_eq!(node.relation, Some(Relation::Inconclusive));
    assert!(cell(&summary, "epoll").cost_ns_per_request.is_some());
}

#[test]
fn a_noise_floor_beyond_a_factor_of_ten_is_not_known() {
    let summary = judged(&race_with_wild_costs_of("epoll-twin"));
    assert_eq!(summary.noise_floor, None);
    let text = "the noise floor is not known: epoll and its twin";
    assert!(summary.doubts.iter().any(|d| d.starts_with(text)), "{:?}", summary.doubts);
    assert!(summary.doubts.iter().all(|d| !d.contains("00%")), "{:?}", summary.doubts);
    // 1.72 times as expensive in every round. The twin differs from its original by nothing that is
    // significant, so it hides nothing.
    assert_eq!(cell(&summary, "node").relation, Some(Relation::Costlier));
}
