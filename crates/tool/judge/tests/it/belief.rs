//! Which readings are trusted: whether the work is a contender's own.

use crate::simulated::{
    LOAD, asked,
    five::{NAMES, cell, doubt, judged, of, race},
};
use regatta_judge::judge;
use regatta_record::{Core, Figure, Kind, Round, Unseen, UsageSource};

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
    assert_eq!(node.verdict.kind(), Kind::ServerNotObserved);
    let because = &node.verdict.because();
    assert!(because.starts_with("in 7 of 7 starts 127.0.0.1:4001 is served by"), "{because}");
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
    assert_eq!(node.verdict.kind(), Kind::ServerNotObserved);
    let because = &node.verdict.because();
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
    let lower = ["node at", "in 2 of 7 starts", "its cost is a lower bound"];
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
    assert_eq!(node.verdict.kind(), Kind::OtherCpus);
    assert_eq!(
        node.verdict.because().split('.').next(),
        Some(&*format!("in 1 of 7 starts {said}"))
    );
    assert!([Figure::Cost, Figure::Rate].iter().all(|figure| node.verdict.voids(*figure)));
    assert_eq!((node.relation, node.band), (None, None));
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
