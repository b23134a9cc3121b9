//! Contenders that treat some starts, clients or successors differently, in simulated races.

use crate::simulated::{
    LOAD, QUIET, asked,
    five::{NAMES, doubt, field, of},
    rounds,
};
use regatta_judge::judge;
use regatta_record::{Machine, Round, SOURCE_PAIRS, Settling, Summary, WarmUpClass};

const PASSES: u32 = 12;

fn race() -> Vec<Round> {
    rounds(&field(), &[LOAD], PASSES, QUIET, 7)
}

fn judged(rounds: &[Round]) -> Summary {
    judge(&asked(&NAMES, PASSES, &[LOAD]), rounds)
}

#[test]
fn reports_starts_of_two_costs_with_their_number_and_factor() {
    let mut rounds = race();
    assert_eq!(doubt(&judged(&rounds), "differs between starts"), None);
    for round in of(&mut rounds, "node").filter(|round| round.round % 3 == 2) {
        let server = round.server.as_mut().unwrap();
        server.cpu_ns += server.cpu_ns / 5;
    }
    let summary = judged(&rounds);
    let text = doubt(&summary, "differs between starts").expect("node is named");
    assert!(text.contains("node") && text.contains("in 4 of 12"), "{text}");
    let others = NAMES.iter().filter(|name| **name != "node");
    let accused: Vec<_> =
        others.filter(|name| text.contains(&format!("cost of {name} "))).collect();
    assert!(accused.is_empty(), "{text}");
}

#[test]
fn a_machine_that_is_slower_in_some_passes_raises_no_doubt() {
    let mut rounds = race();
    for round in rounds.iter_mut().filter(|round| round.round % 3 == 2) {
        let server = round.server.as_mut().unwrap();
        server.cpu_ns += server.cpu_ns / 5;
    }
    assert_eq!(doubt(&judged(&rounds), "differs between starts"), None);
}

/// A contender that was steady from the start, with these ratios of its costs by source address.
fn tried(ratios: [f64; SOURCE_PAIRS]) -> Option<Settling> {
    Some(Settling {
        class: WarmUpClass::Flat,
        observed_ns: 10_000_000_000,
        after_ns: 0,
        after_requests: 0,
        cold_ns_per_request: 5_000.0,
        warm_ns_per_request: 5_000.0,
        cold_for_ns: 0,
        from_localhost: Some(ratios.map(f64::ln)),
    })
}

#[test]
fn names_a_contender_that_favours_a_source_address_but_not_chance() {
    let with = |ratios: [f64; SOURCE_PAIRS]| {
        let mut rounds = race();
        for round in &mut rounds {
            let favours = round.contender == "node";
            round.settling = tried(if favours { ratios } else { [1.01, 0.99, 1.02, 0.98] });
        }
        judged(&rounds)
    };
    let summary = with([0.52, 0.55, 0.53, 0.54]);
    let text = doubt(&summary, "treats source addresses differently").expect("node is named");
    assert!(text.contains("node") && text.contains("0.53× ["), "{text}");
    // Less than a tenth is not reported, and neither is one odd load of four.
    for ratios in [[0.95, 0.95, 0.96, 0.95], [0.52, 1.01, 0.99, 1.02]] {
        assert_eq!(doubt(&with(ratios), "treats source addresses differently"), None, "{ratios:?}");
    }
}

#[test]
fn names_a_contender_that_always_leaves_work_behind() {
    let with = |is_busy: &dyn Fn(&Round) -> bool| {
        let mut rounds = race();
        for round in &mut rounds {
            let busy_after_ns = Some(if is_busy(round) { 1_500_000_000 } else { 0 });
            round.machine = Some(Machine { busy_after_ns, ..Machine::default() });
        }
        judged(&rounds)
    };
    let summary = with(&|round| round.contender == "node");
    let text = doubt(&summary, "leaves work behind").expect("node is named");
    let wanted = ["node", "after 12 of 12 rounds", "another 1.5 s", "after 0 of 48"];
    assert!(wanted.iter().all(|part| text.contains(part)), "{text}");
    let all_alike = with(&|round| round.round.is_multiple_of(2));
    assert_eq!(doubt(&all_alike, "leaves work behind"), None);
    let seldom = with(&|round| round.contender == "node" && round.round < 2);
    assert_eq!(doubt(&seldom, "leaves work behind"), None, "twice may be chance");
}
