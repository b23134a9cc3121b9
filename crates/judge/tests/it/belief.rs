//! Which readings are trusted: whether the work is a contender's own, and the machine probe.

use crate::simulated::{
    LOAD, QUIET, asked,
    five::{NAMES, cell, doubt, field, judged, of, race},
    rounds,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_judge::judge;
use regatta_record::{Core, Figure, Kind, Relation, Round, Summary, Unseen, UsageSource};

#[test]
fn a_contender_whose_port_another_process_serves_has_no_cost_and_no_rank() {
    let mut rounds = race();
    for r in of(&mut rounds, "node") {
        let report = "127.0.0.1:4001 is served by process 17 (helper)";
        r.served_by_others = Some(report.to_owned());
        r.server.as_mut().unwrap().cpu_ns /= 100;
    }
    let s = judged(&rounds);
    let node = cell(&s, "node");
    assert_eq!(node.verdict.kind, Kind::ServerNotObserved);
    let because = &node.verdict.because;
    assert!(because.starts_with("in 7 of 7 rounds 127.0.0.1:4001 is served by"), "{because}");
    assert!(node.verdict.voids(Figure::Cost) && node.verdict.voids(Figure::Memory));
    assert!(!node.verdict.voids(Figure::Rate));
    assert_eq!((node.relation, node.band), (None, None));
    assert_eq!(s.cells.last().unwrap().contender, "node", "after all ranked contenders");
}

#[test]
fn a_cost_far_below_the_null_servers_is_not_trusted() {
    let mut rounds = race();
    for r in of(&mut rounds, "node") {
        r.server.as_mut().unwrap().source = UsageSource::ProcessClocks;
        r.server.as_mut().unwrap().cpu_ns /= 200;
    }
    let s = judged(&rounds);
    let node = cell(&s, "node");
    assert_eq!(node.verdict.kind, Kind::ServerNotObserved);
    let because = &node.verdict.because;
    assert!(
        because.contains("of the CPU time that the null server takes for the same"),
        "{because}"
    );
    assert_eq!((node.relation, node.band), (None, None));
    let others = s.cells.iter().filter(|cell| cell.contender != "node");
    assert!(others.into_iter().all(|cell| !cell.verdict.voids(Figure::Cost)), "{:?}", s.cells);
}

/// Returns so many thousandths of the measured CPU time.
fn at_most(round: &Round, per_mille: u64) -> Option<Unseen> {
    Some(Unseen::AtMostNs(round.server.as_ref().unwrap().cpu_ns * per_mille / 1_000))
}

#[test]
fn doubts_a_cost_that_may_miss_a_relevant_part_of_exited_processes() {
    let with = |unseen: fn(&Round) -> Option<Unseen>| {
        let mut rounds = race();
        for r in of(&mut rounds, "node") {
            let unseen = unseen(r);
            r.server.as_mut().unwrap().unseen = unseen;
        }
        judged(&rounds).doubts
    };
    let says = |doubts: &[String], words: &[&str]| {
        doubts.iter().any(|doubt| words.iter().all(|word| doubt.contains(word)))
    };
    for doubts in [with(|_| None), with(|r| at_most(r, 0)), with(|r| at_most(r, 9))] {
        assert!(!says(&doubts, &["node at", "may have been missed"]), "{doubts:?}");
        assert!(!says(&doubts, &["node at", "more CPU than was measured"]), "{doubts:?}");
    }
    let doubts = with(|r| at_most(r, 20));
    assert!(
        says(&doubts, &["node at", "may have used 2.0% more CPU than was measured"]),
        "{doubts:?}"
    );
    let doubts = with(|r| (r.round < 2).then_some(Unseen::Unbounded));
    let lower = ["node at", "in 2 of 7 rounds", "its cost is a lower bound"];
    assert!(says(&doubts, &lower), "{doubts:?}");
}

#[test]
fn clocks_checked_against_a_control_group_agree_with_it() {
    let with = |unseen, source| {
        let mut rounds = race();
        for r in of(&mut rounds, "node") {
            r.server.as_mut().unwrap().source = source;
        }
        rounds.iter_mut().for_each(|r| r.server.as_mut().unwrap().unseen = unseen);
        doubt(&judged(&rounds), "different sources").is_some()
    };
    let (bounded, clocks) = (Some(Unseen::AtMostNs(5)), UsageSource::ProcessClocks);
    assert!(with(None, clocks), "an earlier regatta tolerated 20 ms");
    assert!(!with(bounded, clocks));
    assert!(with(Some(Unseen::Unbounded), UsageSource::ProcessTree));
}

#[test]
fn a_contender_that_moved_to_other_cpus_is_not_ranked() {
    let mut rounds = race();
    let one = of(&mut rounds, "node").next().unwrap();
    let said = "process 17 (node) may run on CPUs 0, 1 and was put on 0";
    one.left_its_cpus = Some(said.to_owned());
    let s = judged(&rounds);
    let node = cell(&s, "node");
    assert_eq!(node.verdict.kind, Kind::OtherCpus);
    assert_eq!(node.verdict.because.split('.').next(), Some(&*format!("in 1 of 7 rounds {said}")));
    assert!([Figure::Cost, Figure::Rate].iter().all(|figure| node.verdict.voids(*figure)));
    assert_eq!((node.relation, node.band), (None, None));
}

#[test]
fn ratios_are_adjusted_for_the_machine_probe() {
    let mut all = rounds(&field(), &[LOAD], 10, QUIET, 3);
    let mut random = SmallRng::seed_from_u64(3);
    for round in &mut all {
        let state: f64 = if random.random_bool(0.3) { 1.4 } else { 1.0 };
        let server = round.server.as_mut().unwrap();
        server.cpu_ns = (server.cpu_ns as f64 * state.powf(0.8)) as u64;
        let probe_ns = Some([(6_000.0 * state) as u64; 2]);
        round.machine = Some(regatta_record::Machine { probe_ns, ..Default::default() });
    }
    let judged = |rounds: &[Round]| judge(&asked(&NAMES, 10, &[LOAD]), rounds);
    let with = judged(&all);
    all.iter_mut().for_each(|round| round.machine = None);
    let without = judged(&all);

    assert!(with.machine_noise.is_some_and(|share| share > 0.9), "{:?}", with.machine_noise);
    assert_eq!(without.machine_noise, None);
    let ratio = |summary: &Summary, name| cell(summary, name).ratio_to_baseline.unwrap();
    for (name, truth) in [("percore", 1.0), ("node", 1.72), ("null", 0.8)] {
        let (narrow, wide) = (ratio(&with, name), ratio(&without, name));
        assert!((narrow.low..narrow.high).contains(&truth), "{name}: {narrow:?}");
        assert!(narrow.high / narrow.low - 1.0 < 0.3 * (wide.high / wide.low - 1.0), "{name}");
    }
    assert!(with.noise_floor < without.noise_floor);
    let absolute = |summary: &Summary| cell(summary, "node").cost_ns_per_request.unwrap().mean;
    assert_eq!(absolute(&with), absolute(&without), "absolute costs are not adjusted");
    for name in ["percore", "node", "null"] {
        let (with, without) = (cell(&with, name), cell(&without, name));
        assert_eq!(with.ratio_unadjusted, without.ratio_to_baseline, "{name}");
        assert_eq!(with.relation_unadjusted, without.relation, "{name}");
        assert_eq!((without.ratio_unadjusted, without.relation_unadjusted), (None, None));
    }
}

/// Rounds with the probe readings of `read` before and after a contender, given the state of the
/// machine.
fn probed(read: impl Fn(&str, f64) -> [f64; 2]) -> Vec<Round> {
    let mut all = rounds(&field(), &[LOAD], 12, QUIET, 3);
    let mut random = SmallRng::seed_from_u64(3);
    for round in &mut all {
        let state: f64 = if random.random_bool(0.3) { 1.4 } else { 1.0 };
        let server = round.server.as_mut().unwrap();
        server.cpu_ns = (server.cpu_ns as f64 * state.powf(0.8)) as u64;
        let noise = random.random_range(0.99..1.01);
        let probe_ns = Some(read(&round.contender, state).map(|ns| (ns * noise) as u64));
        round.machine = Some(regatta_record::Machine { probe_ns, ..Default::default() });
    }
    all
}

#[test]
fn probe_readings_after_a_contender_adjust_nothing() {
    let after = probed(|_, state| [6_000.0, 6_000.0 * state]);
    let s = judge(&asked(&NAMES, 12, &[LOAD]), &after);
    assert_eq!(s.machine_noise, None);
    let before = probed(|_, state| [6_000.0 * state, 6_000.0]);
    let s = judge(&asked(&NAMES, 12, &[LOAD]), &before);
    assert!(s.machine_noise.is_some_and(|share| share > 0.9), "{:?}", s.machine_noise);
}

#[test]
fn a_contender_that_leaves_the_machine_slower_is_a_doubt() {
    let left = |by: f64| {
        probed(move |name, _| [6_000.0, if name == "node" { 6_000.0 * by } else { 6_000.0 }])
    };
    let s = judge(&asked(&NAMES, 12, &[LOAD]), &left(1.15));
    let text = doubt(&s, "leaves the machine slower than").expect("a doubt");
    assert!(text.contains("node leaves"), "{text}");
    assert!(doubt(&s, "leaves the machine faster").is_none(), "{:?}", s.doubts);
    let s = judge(&asked(&NAMES, 12, &[LOAD]), &left(1.0));
    assert!(doubt(&s, "leaves the machine").is_none(), "{:?}", s.doubts);
}

#[test]
fn a_relation_that_only_the_adjustment_shows_is_a_doubt() {
    let mut all = probed(|_, state| [6_000.0 * state, 6_000.0]);
    for round in of(&mut all, "percore") {
        let server = round.server.as_mut().unwrap();
        server.cpu_ns = (server.cpu_ns as f64 * 1.08) as u64;
    }
    let s = judge(&asked(&NAMES, 12, &[LOAD]), &all);
    let percore = cell(&s, "percore");
    assert_eq!(percore.relation, Some(Relation::Costlier));
    assert_eq!(percore.relation_unadjusted, Some(Relation::Inconclusive));
    let text = doubt(&s, "percore at 64 conn against epoll: significantly more expensive, 1.");
    let text = text.expect("a doubt");
    assert!(text.contains("only because ratios are adjusted"), "{text}");
    assert!(text.contains("about ") && text.ends_with(" rounds would decide)"), "{text}");
}

#[test]
fn relations_that_only_the_adjustment_shows_share_one_doubt_that_advises_rounds() {
    let mut all = probed(|_, state| [6_000.0 * state, 6_000.0]);
    // Both cost 12% more than epoll's 5 µs.
    for (name, factor) in [("percore", 1.12), ("node", 1.12 * 5.0 / 8.6)] {
        for round in of(&mut all, name) {
            let server = round.server.as_mut().unwrap();
            server.cpu_ns = (server.cpu_ns as f64 * factor) as u64;
        }
    }
    let remarks = |rounds: &[Round]| -> Vec<String> {
        let doubts = judge(&asked(&NAMES, 12, &[LOAD]), rounds).doubts;
        let only =
            |doubt: &String| doubt.contains("more expensive") && doubt.contains("only because");
        doubts.into_iter().filter(only).collect()
    };
    let together = remarks(&all);
    assert_eq!(together.len(), 1, "{together:#?}");
    for name in ["percore at 64 conn", "node at 64 conn"] {
        assert!(together[0].contains(name), "{together:?}");
    }
    assert_eq!(together[0].matches("would decide").count(), 1, "{together:?}");
    // If the load was the limit, it would be so again.
    for round in of(&mut all, "node") {
        round.window_ns *= 10;
        round.load_cpu_ns = round.window_ns;
    }
    let apart = remarks(&all);
    assert_eq!(apart.len(), 2, "{apart:#?}");
    let of_node = apart.iter().find(|doubt| doubt.starts_with("node at 64 conn against")).unwrap();
    assert!(!of_node.contains("rounds"), "{of_node}");
}

#[test]
fn server_and_load_on_one_core_are_a_doubt() {
    let with = |cores: &[&[u32]]| {
        let mut asked = asked(&NAMES, 7, &[LOAD]);
        let core = |cpus: &&[u32]| Core { cpus: cpus.to_vec(), ..Core::default() };
        asked.setup.cores = cores.iter().map(core).collect();
        judge(&asked, &race())
    };
    let text = "server and load share a physical core (CPUs 0 and 1)";
    assert!(doubt(&with(&[&[0, 1]]), text).is_some());
    assert!(doubt(&with(&[&[0, 2], &[1, 3]]), "physical core").is_none());
}
