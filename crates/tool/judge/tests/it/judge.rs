//! Judging whole simulated races: figures, voids, doubts.

use crate::simulated::{
    LOAD, Machine, QUIET, asked,
    five::{NAMES, cell, doubt, field, judged, of, race},
    rounds,
};
use hdrhistogram::Histogram;
use regatta_judge::judge;
use regatta_record::{
    Band, Cell, Exchange, Figure, Kind, Latency, LoadShape, Outcome, Relation, decode_histogram,
    encode_histogram,
};

#[test]
fn a_clean_race() {
    let s = judged(&race());
    assert!(s.complete);
    assert_eq!(s.doubts, Vec::<String>::new());
    assert!((0.004..0.03).contains(&s.noise_floor.unwrap()), "{:?}", s.noise_floor);

    let node = cell(&s, "node");
    let ratio = node.ratio_to_baseline.unwrap();
    assert!(ratio.low < 1.72 && 1.72 < ratio.high && ratio.high - ratio.low < 0.08, "{ratio:?}");
    assert_eq!(node.relation, Some(Relation::Costlier));
    assert_eq!(node.band, Some(Band { best: 3, worst: 3 }));
    assert_eq!((node.rounds, node.verdict.kind()), (7, Kind::ServerBound));
    assert!((node.headroom.unwrap() / (8.6 / 4.0) - 1.0).abs() < 0.02);
    assert!((node.switches_per_request.unwrap() - 0.021).abs() < 1e-4);
    assert_eq!(node.memory_bytes, Some(3 * 1024 * 1024 + 3 * 40_960), "the median round");

    assert_eq!(cell(&s, "epoll").relation, Some(Relation::Baseline));
    assert_eq!(cell(&s, "epoll").ratio_to_baseline, None);
    assert_eq!(cell(&s, "percore").band, Some(Band { best: 1, worst: 2 }));
    // The null server and the twin are printed, not ranked.
    let null = cell(&s, "null");
    assert_eq!((null.band, null.relation, null.headroom), (None, None, None));
    assert!(null.ratio_to_baseline.unwrap().high < 0.85);
    assert_eq!(cell(&s, "epoll-twin").band, None);
    // In ascending order of cost.
    assert_eq!(s.cells[0].contender, "null");
    assert_eq!(s.cells[4].contender, "node");
}

#[test]
fn drift_of_the_machine_cancels_in_ratios() {
    let wild = Machine { drift: 0.5, ..QUIET };
    let s = judged(&rounds(&field(), &[LOAD], 7, wild, 7));
    let node = cell(&s, "node");
    let cost = node.cost_ns_per_request.unwrap();
    assert!(cost.high / cost.low > 1.3, "the cost itself is vague: {cost:?}");
    let ratio = node.ratio_to_baseline.unwrap();
    assert!(ratio.high / ratio.low < 1.05, "the ratio is not: {ratio:?}");
}

#[test]
fn one_wrong_exchange_disqualifies() {
    let mut rounds = race();
    of(&mut rounds, "percore").nth(3).unwrap().outcome = Outcome::Disqualified {
        because: "a reply was wrong.".into(),
        exchange: Some(Exchange {
            sent: r"21\n".into(),
            expected: r"42\n".into(),
            received: r"43\n".into(),
            reply_index: 8,
        }),
    };
    let s = judged(&rounds);
    let c = cell(&s, "percore");
    assert_eq!(c.verdict.kind(), Kind::Disqualified);
    assert_eq!(
        c.verdict.because(),
        r"in 1 of 7 starts, first in start 4: a reply was wrong; sent 21\n, expected 42\n, received 43\n (reply 9 on its connection)"
    );
    assert_eq!((c.cost_ns_per_request, c.rate_per_s, c.ratio_to_baseline), (None, None, None));
    assert_eq!((c.band, c.relation, c.memory_bytes), (None, None, None));
    assert_eq!(c.latency_ns, Latency::default());
    assert_eq!(cell(&s, "node").band, Some(Band { best: 2, worst: 2 }), "ranked without it");
    assert_eq!(s.cells.last().unwrap().contender, "percore", "last in the table");
}

#[test]
fn a_wrong_reply_disqualifies_even_if_the_round_finished() {
    let mut rounds = race();
    of(&mut rounds, "node").next().unwrap().errors.wrong_reply = 1;
    assert_eq!(cell(&judged(&rounds), "node").verdict.kind(), Kind::Disqualified);
}

#[test]
fn the_first_wrong_start_is_counted_among_those_of_its_contender() {
    let mut rounds = race();
    // As in a race of several heats, in which this contender has every third life.
    for r in of(&mut rounds, "percore") {
        r.round *= 3;
    }
    of(&mut rounds, "percore").nth(2).unwrap().outcome =
        Outcome::Failed { because: "no answer".into() };
    let s = judged(&rounds);
    let because = cell(&s, "percore").verdict.because();
    assert_eq!(because, "in 1 of 7 starts, first in start 3: no answer");
}

#[test]
fn a_failed_round_fails_the_cell_and_says_how_many() {
    let mut rounds = race();
    for r in of(&mut rounds, "node").skip(5) {
        r.outcome = Outcome::Failed { because: "died with signal 11: Segmentation fault".into() };
    }
    let s = judged(&rounds);
    let v = &cell(&s, "node").verdict;
    assert_eq!(v.kind(), Kind::Failed);
    assert_eq!(
        v.because(),
        "in 2 of 7 starts, first in start 6: died with signal 11: Segmentation fault"
    );
    // Disqualified takes precedence over failed.
    of(&mut rounds, "node").next().unwrap().outcome =
        Outcome::Disqualified { because: "no reply".into(), exchange: None };
    assert_eq!(cell(&judged(&rounds), "node").verdict.kind(), Kind::Disqualified);
    // A round without a correct reply has failed.
    let mut rounds = race();
    of(&mut rounds, "percore").next().unwrap().requests = 0;
    assert_eq!(cell(&judged(&rounds), "percore").verdict.kind(), Kind::Failed);
}

#[test]
fn cells_that_cannot_hold_or_were_skipped_do_not_make_a_race_incomplete() {
    let mut rounds = race();
    rounds.retain(|r| r.contender != "node" && (r.contender != "percore" || r.round == 0));
    of(&mut rounds, "percore").next().unwrap().outcome =
        Outcome::CannotHold { because: "select holds 1,024 descriptors".into() };
    let mut asked = asked(&NAMES, 7, &[LOAD]);
    asked.entries[4].skipped = Some("node is not installed: apt-get install nodejs".into());
    let s = judge(&asked, &rounds);
    assert_eq!(cell(&s, "percore").verdict.kind(), Kind::CannotHold);
    assert_eq!(cell(&s, "node").verdict.kind(), Kind::Skipped);
    assert!(cell(&s, "node").verdict.because().contains("apt-get"));
    assert!(s.complete);
}

#[test]
fn an_interrupted_race_is_judged_by_its_rounds_so_far() {
    let mut rounds = race();
    rounds.truncate(5 * 4 + 2);
    let s = judged(&rounds);
    assert!(!s.complete);
    assert!(doubt(&s, "22 of 35 starts").is_some(), "{:?}", s.doubts);
    assert_eq!((cell(&s, "epoll").rounds, cell(&s, "node").rounds), (5, 4));
    assert_eq!(cell(&s, "node").relation, Some(Relation::Costlier));

    let s = judged(&[]);
    assert!(!s.complete);
    assert!(s.cells.iter().all(|c| c.verdict.kind() == Kind::Skipped && c.rounds == 0));
}

#[test]
fn one_round_gives_no_interval_and_one_common_round_no_ratio() {
    let s = judged(&race()[..5]);
    let node = cell(&s, "node");
    assert_eq!((node.cost_ns_per_request, node.ratio_to_baseline), (None, None));
    assert_eq!((s.noise_floor, node.relation), (None, None));
    assert!(node.latency_ns.p50.is_some());

    let mut rounds = race();
    rounds.retain(|r| r.contender != "node" || r.round < 3);
    rounds.retain(|r| r.contender != "epoll" || r.round >= 2);
    let s = judged(&rounds);
    assert!(cell(&s, "node").cost_ns_per_request.is_some());
    assert_eq!(cell(&s, "node").ratio_to_baseline, None, "one common round");
}

#[test]
fn a_repeated_round_counts_once() {
    let mut rounds = race();
    let mut again = of(&mut rounds, "node").next().unwrap().clone();
    of(&mut rounds, "node").next().unwrap().outcome =
        Outcome::Failed { because: "interrupted".into() };
    again.requests += 1;
    rounds.push(again);
    let s = judged(&rounds);
    assert_eq!((cell(&s, "node").verdict.kind(), cell(&s, "node").rounds), (Kind::ServerBound, 7));
}

#[test]
fn latencies_are_merged_without_loss() {
    let rounds = race();
    let mut all = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    for r in rounds.iter().filter(|r| r.contender == "node") {
        all.add(decode_histogram(&r.histogram).unwrap()).unwrap();
    }
    let s = judged(&rounds);
    assert_eq!(all.len(), 1_400);
    let ours = &cell(&s, "node").latency_ns;
    assert_eq!(
        (ours.p50, ours.p99, ours.max),
        (Latency::of(&all).p50, Latency::of(&all).p99, Some(all.max()))
    );
    assert_eq!(ours.p99_9, None, "1 sample beyond it");

    let mut rounds = rounds;
    of(&mut rounds, "node").nth(1).unwrap().histogram = "AAAA".into();
    let s = judged(&rounds);
    assert_eq!(cell(&s, "node").latency_ns, Latency::default());
    assert!(doubt(&s, "round 2: the histogram").is_some(), "{:?}", s.doubts);
}

#[test]
fn finds_the_limiting_side() {
    // The load needs 5.1 µs per request: slightly more than epoll (5.0), less than node.
    let machine = |load_ns| Machine { load_ns, noise: 0.001, drift: 0.0, ..QUIET };
    let s = judged(&rounds(&field(), &[LOAD], 7, machine(5_100.0), 7));
    assert_eq!(cell(&s, "node").verdict.kind(), Kind::ServerBound);
    assert_eq!(
        cell(&s, "epoll").verdict.kind(),
        Kind::CoBound,
        "measured, though null is no faster"
    );

    // It needs 6 µs: epoll waits for it.
    let s = judged(&rounds(&field(), &[LOAD], 7, machine(6_000.0), 7));
    let epoll = cell(&s, "epoll");
    assert_eq!(epoll.verdict.kind(), Kind::GeneratorBound, "the load alone is busy");
    assert!(epoll.verdict.because().contains("no CPU left for the load"), "{:?}", epoll.verdict);
    assert!(epoll.verdict.voids(Figure::Rate) && !epoll.verdict.voids(Figure::Cost));
    assert!(epoll.band.is_some(), "its cost is still ranked");
    assert_eq!(cell(&s, "null").verdict.kind(), Kind::GeneratorBound, "the load is busy alone");

    // Without a null server only the CPUs are known: both busy.
    let mut rounds = rounds(&field(), &[LOAD], 7, machine(5_100.0), 7);
    rounds.retain(|r| r.contender != "null");
    let s = judged(&rounds);
    assert_eq!(cell(&s, "epoll").verdict.kind(), Kind::CoBound);
    assert!(doubt(&s, "null server finished no round").is_some());

    // Half the windows asleep: neither side is busy.
    rounds.iter_mut().for_each(|r| r.window_ns *= 2);
    let s = judged(&rounds);
    assert_eq!(cell(&s, "epoll").verdict.kind(), Kind::Idle);
    assert!(
        cell(&s, "epoll").verdict.because().contains("server busy 0.48"),
        "{:?}",
        cell(&s, "epoll").verdict
    );

    // No figures of the server could be read.
    of(&mut rounds, "epoll").for_each(|r| r.server = None);
    let s = judged(&rounds);
    assert_eq!(cell(&s, "epoll").verdict.kind(), Kind::ServerNotObserved);
    assert_eq!(cell(&s, "node").ratio_to_baseline, None);
    assert!(doubt(&s, "epoll has no cost").is_some(), "{:?}", s.doubts);
}

#[test]
fn a_rate_that_drifts_is_unstable_and_not_ranked() {
    let mut rounds = race();
    for r in of(&mut rounds, "node") {
        r.slices.iter_mut().enumerate().for_each(|(i, s)| *s = *s * (100 - i as u64) / 100);
    }
    let s = judged(&rounds);
    let node = cell(&s, "node");
    assert_eq!(node.verdict.kind(), Kind::Unstable);
    assert!(node.verdict.because().contains("-14%"), "{}", node.verdict.because());
    assert!(node.verdict.because().contains("server-bound: server busy 0.98"));
    assert!(node.cost_ns_per_request.is_some(), "shown, but void");
    assert_eq!((node.band, node.relation), (None, None));
}

#[test]
fn two_modes_of_the_rate_are_no_verdict() {
    let mut rounds = race();
    for r in of(&mut rounds, "node") {
        let slow = r.round % 3 == 0;
        r.slices.iter_mut().for_each(|s| *s = if slow { *s / 2 } else { *s });
    }
    let s = judged(&rounds);
    let node = cell(&s, "node");
    assert!(node.verdict.findings.iter().map(|one| one.kind).eq([Kind::ServerBound]));
    assert!(node.band.is_some() && !node.verdict.voids(Figure::Latency));
}

#[test]
fn doubts_have_advice() {
    let mut rounds = rounds(&field(), &[LOAD], 3, Machine { noise: 0.2, ..QUIET }, 7);
    let first = of(&mut rounds, "node").next().unwrap();
    first.errors.timeout = 3;
    first.server.as_mut().unwrap().source = regatta_record::UsageSource::ProcessTree;
    for r in of(&mut rounds, "epoll") {
        r.server.as_mut().unwrap().user_ns *= 3;
    }
    let mut asked = asked(&NAMES, 3, &[LOAD]);
    asked.cpus.load = vec![0, 1];
    let s = judge(&asked, &rounds);
    for word in [
        "only 3 rounds",
        "share CPU 0",
        "process tree (10 ms steps)",
        "CPU time of epoll at 64 conn (+40%)",
        "3 timeout",
    ] {
        assert!(doubt(&s, word).is_some(), "{word}: {:#?}", s.doubts);
    }
}

#[test]
fn a_twin_that_differs_is_a_doubt() {
    let mut contenders = field();
    contenders[1].cost_ns *= 1.2;
    let s = judged(&rounds(&contenders, &[LOAD], 7, QUIET, 7));
    assert!(doubt(&s, "epoll and its twin differ").is_some(), "{:?}", s.doubts);
    assert!(s.noise_floor.unwrap() > 0.1, "the difference is in the noise floor");
}

#[test]
fn a_twin_is_cheaper_or_costlier_only_with_a_doubt() {
    let loads = [LOAD, LoadShape { pipeline: 16, ..LOAD }];
    // All others differ, so Holm's correction over them would leave the twin its whole error.
    let mut contenders = field();
    contenders[3].cost_ns *= 1.5;
    for seed in 0..60 {
        let machine = Machine { noise: 0.03, ..QUIET };
        let s = judge(&asked(&NAMES, 5, &loads), &rounds(&contenders, &loads, 5, machine, seed));
        let twins = s.cells.iter().filter(|cell| cell.contender == "epoll-twin");
        let differs = |relation| matches!(relation, Some(Relation::Cheaper | Relation::Costlier));
        let is_said = twins.map(|twin| twin.relation).any(differs);
        assert!(!is_said || doubt(&s, "epoll and its twin differ").is_some(), "seed {seed}");
    }
}

#[test]
fn each_load_is_judged_by_itself() {
    let piped = LoadShape { pipeline: 16, ..LOAD };
    let s =
        judge(&asked(&NAMES, 7, &[piped, LOAD]), &rounds(&field(), &[piped, LOAD], 7, QUIET, 3));
    assert_eq!(s.cells.len(), 10);
    assert!(s.cells[..5].iter().all(|c| c.load == piped), "in the planned order");
    let cost = |i: usize| s.cells[i].cost_ns_per_request.unwrap().mean;
    assert!((cost(5) / cost(0) - 4.0).abs() < 0.2);
}

#[test]
fn rounds_without_a_latency_have_none() {
    let mut rounds = race();
    let empty = Histogram::<u64>::new_with_bounds(1, 240_000_000_000, 3).unwrap();
    of(&mut rounds, "node").for_each(|r| r.histogram = encode_histogram(&empty));
    let s = judged(&rounds);
    assert_eq!(cell(&s, "node").latency_ns, Latency::default());
    assert!(cell(&s, "node").cost_ns_per_request.is_some());
    assert!(cell(&s, "epoll").latency_ns.p50.is_some());
}

#[test]
fn cells_are_ordered_by_compared_cost() {
    let mut rounds = rounds(&field(), &[LOAD], 20, QUIET, 7);
    // percore is a twentieth more expensive, and has no round in the passes in which the machine is
    // slow by a third.
    rounds.retain(|r| r.contender != "percore" || r.round % 2 == 1);
    for r in &mut rounds {
        let factor = if r.contender == "percore" { 1.05 } else { 1.0 };
        let state = if r.round % 2 == 0 { 4.0 / 3.0 } else { 1.0 };
        let server = r.server.as_mut().unwrap();
        server.cpu_ns = (server.cpu_ns as f64 * state * factor) as u64;
    }
    let s = judge(&asked(&NAMES, 20, &[LOAD]), &rounds);
    let (epoll, percore) = (cell(&s, "epoll"), cell(&s, "percore"));
    let cost = |c: &Cell| c.cost_ns_per_request.unwrap().mean;
    assert!(cost(epoll) > cost(percore), "on its own");
    assert_eq!(percore.relation, Some(Relation::Costlier));
    let at = |name: &str| s.cells.iter().position(|c| c.contender == name);
    assert!(at("epoll") < at("percore"), "by compared cost");
    assert!(epoll.band.unwrap().best < percore.band.unwrap().best);
}

#[test]
fn a_doubt_about_several_cells_is_one_sentence_with_their_names() {
    let mut rounds = rounds(&field(), &[LOAD], 7, QUIET, 7);
    for (name, timeouts) in [("epoll", 3), ("node", 5)] {
        of(&mut rounds, name).next().unwrap().errors.timeout = timeouts;
    }
    let summary = judge(&asked(&NAMES, 7, &[LOAD]), &rounds);
    let doubts: Vec<_> =
        summary.doubts.iter().filter(|doubt| doubt.contains("had errors")).collect();
    let [doubt] = doubts[..] else { panic!("{:?}", summary.doubts) };
    let text = "epoll and node at 64 conn had errors (3–5 timeout) beside ";
    assert!(doubt.starts_with(text), "{doubt}");
}

#[test]
fn doubts_a_load_whose_members_hardly_joined_and_left() {
    let load = LoadShape { passing: 10, ..LOAD };
    let mut rounds = rounds(&field(), &[load], 7, QUIET, 7);
    // Ten members, each for a second, in seven windows of 2 s.
    for round in &mut rounds {
        round.passed = if round.contender == "node" { 4 } else { 5 };
    }
    let summary = judge(&asked(&NAMES, 7, &[load]), &rounds);
    let doubts: Vec<_> =
        summary.doubts.iter().filter(|doubt| doubt.contains("joined and left")).collect();
    let [doubt] = doubts[..] else { panic!("{:?}", summary.doubts) };
    let text = "node at 64 conn + 10 passing had 28 members that joined and left, where about 140 \
                were expected:";
    assert!(doubt.starts_with(text), "{doubt}");
    assert_eq!((cell(&summary, "node").passed, cell(&summary, "epoll").passed), (28, 35));
}
