//! Contenders that treat some starts, some clients or their successors differently, in races of fixed
//! rounds.

// Each test file uses a part of the simulation.
#[allow(dead_code)]
mod simulated;

use regatta_judge::judge;
use regatta_record::{Machine, Round, SOURCE_PAIRS, Settling, Summary, WarmUpClass};
use simulated::{
    LOAD, QUIET, asked,
    five::{NAMES, doubt, field, of},
    rounds,
};

const PASSES: u32 = 12;

fn race() -> Vec<Round> {
    rounds(&field(), &[LOAD], PASSES, QUIET, 7)
}

fn judged(rounds: &[Round]) -> Summary {
    judge(&asked(&NAMES, PASSES, &[LOAD]), rounds)
}

#[test]
fn starts_of_two_costs_are_named_with_how_many_and_by_which_factor() {
    let mut rounds = race();
    assert_eq!(doubt(&judged(&rounds), "differs between starts"), None);
    for round in of(&mut rounds, "node").filter(|round| round.round % 3 == 2) {
        let server = round.server.as_mut().unwrap();
        server.cpu_ns += server.cpu_ns / 5;
    }
    let summary = judged(&rounds);
    let said = doubt(&summary, "differs between starts").expect("node is named");
    assert!(said.contains("node") && said.contains("in 4 of 12"), "{said}");
    let others = NAMES.iter().filter(|name| **name != "node");
    let accused: Vec<_> =
        others.filter(|name| said.contains(&format!("cost of {name} "))).collect();
    assert!(accused.is_empty(), "{said}");
}

#[test]
fn a_machine_that_is_slower_in_some_passes_accuses_nobody() {
    let mut rounds = race();
    for round in rounds.iter_mut().filter(|round| round.round % 3 == 2) {
        let server = round.server.as_mut().unwrap();
        server.cpu_ns += server.cpu_ns / 5;
    }
    assert_eq!(doubt(&judged(&rounds), "differs between starts"), None);
}

/// A contender that was steady from the start, and these ratios of its costs by source address.
fn tried(ratios: [f64; SOURCE_PAIRS]) -> Option<Settling> {
    Some(Settling {
        class: WarmUpClass::Flat,
        observed_ns: 10_000_000_000,
        after_ns: 0,
        after_requests: 0,
        cold_ns_per_request: 5_000.0,
        warm_ns_per_request: 5_000.0,
        from_localhost: Some(ratios.map(f64::ln)),
    })
}

#[test]
fn who_favours_one_source_address_is_named_and_chance_is_not() {
    let with = |ratios: [f64; SOURCE_PAIRS]| {
        let mut rounds = race();
        for round in &mut rounds {
            let favours = round.contender == "node";
            round.settling = tried(if favours { ratios } else { [1.01, 0.99, 1.02, 0.98] });
        }
        judged(&rounds)
    };
    let summary = with([0.52, 0.55, 0.53, 0.54]);
    let said = doubt(&summary, "tells source addresses apart").expect("node is named");
    assert!(said.contains("node") && said.contains("0.53× ["), "{said}");
    // Less than a tenth is no favour, and one odd load of four shows none.
    for ratios in [[0.95, 0.95, 0.96, 0.95], [0.52, 1.01, 0.99, 1.02]] {
        assert_eq!(doubt(&with(ratios), "tells source addresses apart"), None, "{ratios:?}");
    }
}

#[test]
fn who_leaves_work_behind_is_named_if_it_is_always_the_same_one() {
    let with = |is_busy: &dyn Fn(&Round) -> bool| {
        let mut rounds = race();
        for round in &mut rounds {
            let busy_after_ns = Some(if is_busy(round) { 1_500_000_000 } else { 0 });
            round.machine = Some(Machine { busy_after_ns, ..Machine::default() });
        }
        judged(&rounds)
    };
    let summary = with(&|round| round.contender == "node");
    let said = doubt(&summary, "leaves work behind it").expect("node is named");
    let wanted = ["node", "after 12 of 12 rounds", "another 1.5 s", "after 0 of 48"];
    assert!(wanted.iter().all(|part| said.contains(part)), "{said}");
    let all_alike = with(&|round| round.round.is_multiple_of(2));
    assert_eq!(doubt(&all_alike, "leaves work behind it"), None);
    let seldom = with(&|round| round.contender == "node" && round.round < 2);
    assert_eq!(doubt(&seldom, "leaves work behind it"), None, "twice may be anything");
}
