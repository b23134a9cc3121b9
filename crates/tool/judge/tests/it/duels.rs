//! Races in duels, simulated: ratios from slices, states of the machine, heats, and lies that must be named.

use crate::simulated::{
    LOAD, Truth,
    five::{cell, of},
    lives::{DUEL, Duel, duels, in_duels, sum_up},
    truth,
};
use regatta_judge::{Side, diff, judge};
use regatta_record::{
    Asked, Band, ContentSeen, Decision, Doubt, Drive, Finding, IdleSlice, Kind, LoadShape,
    Relation, ReplySeen, Round, Slice, Summary, decode_histogram, encode_histogram, sentences,
};

pub const NAMES: [&str; 5] = ["epoll", "epoll-twin", "null", "percore", "node"];

pub fn field() -> Vec<Truth> {
    let costs = [5_000.0, 5_000.0, 4_000.0, 5_000.0, 8_600.0];
    NAMES.iter().zip(costs).map(|(name, cost)| truth(name, cost)).collect()
}

fn judged(rounds: &[Round]) -> Summary {
    judge(&in_duels(&NAMES, DUEL.lives, &[LOAD]), rounds)
}

pub fn race(seed: u64) -> Vec<Round> {
    duels(&field(), DUEL, seed)
}

#[test]
fn a_clean_duel() {
    let s = judged(&race(1));
    assert!(s.complete);
    assert_eq!((&s.doubts, &s.findings), (&vec![], &vec![]));
    assert!(s.noise_floor.unwrap() < 0.02, "{:?}", s.noise_floor);
    let node = cell(&s, "node");
    let ratio = node.ratio_to_baseline.unwrap();
    assert!(ratio.low < 1.72 && 1.72 < ratio.high && ratio.high - ratio.low < 0.05, "{ratio:?}");
    assert_eq!(
        (node.relation, node.band),
        (Some(Relation::Costlier), Some(Band { best: 3, worst: 3 }))
    );
    assert_eq!((node.rounds, node.lives, node.blocks), (8, 8, 64));
    assert_eq!((&node.by_state[..], node.states_differ), (&[][..], false));
    assert_eq!(cell(&s, "percore").relation, Some(Relation::Tied));
    assert!(cell(&s, "null").ratio_to_baseline.unwrap().high < 0.82);
    let names: Vec<&str> = s.cells.iter().map(|cell| cell.contender.as_str()).collect();
    assert_eq!((names[0], names[4]), ("null", "node"), "{names:?}");
    let [seen] = &s.duels[..] else { panic!("{:?}", s.duels) };
    assert_eq!((seen.lives, seen.left_out, seen.states.len()), (8, 0, 1));
    assert_eq!(seen.heats, [NAMES.map(str::to_owned).to_vec()]);
    // Server and load: 8.6 and 3.6 µs.
    let both = node.both_sides_ns_per_request.unwrap().mean;
    assert!((both / 12_200.0 - 1.0).abs() < 0.02, "{both}");
    assert!(!node.cost_is_upper_bound, "the load is not busy");
}

#[test]
fn a_ratio_that_differs_between_states_is_given_for_each() {
    let s = judged(&duels(&field(), Duel { blocks: 12, state_lasts: 9, ..DUEL }, 3));
    let [seen] = &s.duels[..] else { panic!("{:?}", s.duels) };
    assert_eq!(seen.states.len(), 2, "{seen:?}");
    assert!((seen.states[1].factor / 1.28 - 1.0).abs() < 0.03 && seen.left_out > 0, "{seen:?}");
    let shares: f64 = seen.states.iter().map(|state| state.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let node = cell(&s, "node");
    assert!(node.states_differ, "{node:?}");
    let by_state: Vec<_> = node.by_state.iter().map(|of| (of.state, of.ratio)).collect();
    let [(0, fast), (1, slow)] = by_state[..] else { panic!("{by_state:?}") };
    let slower = 1.72 * 1.20 / 1.28;
    assert!(fast.low < 1.72 && 1.72 < fast.high, "{fast:?}");
    assert!(slow.low < slower && slower < slow.high && slow.high < fast.low, "{slow:?}");
    assert_eq!((node.ratio_to_baseline, node.ratio_is_of_state), (Some(fast), Some(0)));
    assert!(!cell(&s, "percore").states_differ);
    assert_eq!(cell(&s, "percore").relation, Some(Relation::Tied));
}

#[test]
fn contenders_of_two_heats_are_compared_with_the_baseline_and_through_it() {
    let mut all = race(5);
    // Lives 0, 2, 4, … are of the first heat.
    all.retain(|r| match r.contender.as_str() {
        "percore" | "null" => r.round % 2 == 0,
        "node" => r.round % 2 == 1,
        _ => true,
    });
    let asked = in_duels(&NAMES, 4, &[LOAD]);
    let s = judge(&asked, &all);
    assert!(s.complete, "{:?}", s.doubts);
    let heats: Vec<usize> = s.duels[0].heats.iter().map(Vec::len).collect();
    assert_eq!((heats, s.duels[0].lives), (vec![4, 3], 8), "{:?}", s.duels);
    assert_eq!((cell(&s, "node").lives, cell(&s, "epoll").lives), (4, 8));
    assert_eq!(cell(&s, "node").relation, Some(Relation::Costlier));
    assert_eq!(cell(&s, "node").band, Some(Band { best: 3, worst: 3 }), "also above percore");
    let cut: Vec<Round> = all.iter().filter(|r| r.round < 7).cloned().collect();
    assert!(!judge(&asked, &cut).complete, "the second heat has not run");
}

#[test]
fn before_three_lives_there_is_no_interval() {
    let two: Vec<Round> = race(1).into_iter().filter(|r| r.round < 2).collect();
    let node = cell(&judged(&two), "node").clone();
    assert_eq!((node.ratio_to_baseline, node.relation), (None, None));
    assert!(node.cost_ns_per_request.is_some());
}

#[test]
fn a_cost_where_both_sides_are_busy_is_an_upper_bound() {
    let with = |drive| {
        let load = LoadShape { drive, ..LOAD };
        let mut all = race(1);
        for round in &mut all {
            round.load = load;
            round.load_cpu_ns = round.window_ns * 97 / 100;
        }
        let s = judge(&in_duels(&NAMES, DUEL.lives, &[load]), &all);
        cell(&s, "epoll").cost_is_upper_bound
    };
    assert!(with(Drive::Closed));
    assert!(!with(crate::simulated::open(1_000)));
}

#[test]
fn gates_decide_by_slices() {
    let names = ["old", "old-twin", "new"];
    let gate = |new: f64, seed| {
        let field: Vec<Truth> =
            names.iter().zip([1.0, 1.0, new]).map(|(n, by)| truth(n, 5_000.0 * by)).collect();
        let asked = Asked { fail_over: Some(0.05), ..in_duels(&names, DUEL.lives, &[LOAD]) };
        judge(&asked, &duels(&field, DUEL, seed)).gate.unwrap().decision()
    };
    for seed in 0..10 {
        assert_eq!(gate(1.0, seed), Decision::Passed, "{seed}");
        assert_eq!(gate(1.10, seed), Decision::Failed, "{seed}");
    }
    assert!((0..10).filter(|seed| gate(1.05, *seed) == Decision::NotDecided).count() >= 8);
}

#[test]
fn two_results_are_compared_through_the_null_server() {
    let names = ["null", "mine"];
    let run =
        |by: f64, seed| duels(&[truth("null", 4_000.0), truth("mine", 5_000.0 * by)], DUEL, seed);
    let asked = in_duels(&names, DUEL.lives, &[LOAD]);
    let decision = |by, seed| {
        let (old, new) = (run(1.0, seed), run(by, seed + 1_000));
        let side = |name, rounds| Side { name, asked: &asked, rounds };
        diff(side("before", &old), side("after", &new), Some(0.05)).unwrap().decision()
    };
    let count = |by, of| (0..10).filter(|seed| decision(by, *seed) == of).count();
    assert!(count(1.0, Decision::Passed) >= 9);
    assert!(count(1.15, Decision::Failed) >= 9);
}

// Latency.

#[test]
fn latencies_are_compared_by_block() {
    let load = LoadShape { drive: crate::simulated::open(1_000), ..LOAD };
    let mut all = race(4);
    all.iter_mut().for_each(|round| round.load = load);
    let s = judge(&in_duels(&NAMES, DUEL.lives, &[load]), &all);
    let ratio = cell(&s, "node").latency_to_baseline.clone().unwrap();
    assert_eq!((ratio.p95, &ratio.missing), (None, &None));
    for of in [ratio.p50, ratio.p99] {
        let of = of.unwrap();
        assert!(of.low < 1.72 && 1.72 < of.high && of.high / of.low < 1.05, "{of:?}");
    }
}

// Lies.

/// Findings of races in which `lie` changes the rounds of `node`.
fn found(lie: impl Fn(&mut Round)) -> Vec<Finding> {
    let mut all = race(6);
    for round in of(&mut all, "node") {
        lie(round);
    }
    let s = judged(&all);
    for finding in &s.findings {
        assert_eq!(finding.contender.as_deref(), Some("node"), "{finding:?}");
    }
    assert!(sentences(&s.findings).iter().all(|text| s.doubts.contains(text)), "{:?}", s.doubts);
    s.findings
}

fn slices(round: &mut Round, change: impl Fn(&mut Slice)) {
    round.life.as_mut().unwrap().slices.iter_mut().for_each(change);
    sum_up(round);
}

fn only(findings: &[Finding]) -> Doubt {
    let [finding] = findings else { panic!("{findings:?}") };
    finding.doubt.clone()
}

#[test]
fn honest_contenders_are_not_accused() {
    let accused = (0..40).filter(|seed| !judged(&race(100 + seed)).findings.is_empty()).count();
    assert!(accused <= 3, "{accused} of 40");
    assert_eq!(found(|_| {}), []);
}

#[test]
fn names_work_that_is_handed_to_another_process() {
    let helped = |round: &mut Round| {
        slices(round, |s| {
            let work = s.cpu_ns / 3;
            (s.cpu_ns, s.rest_ns) = (s.cpu_ns - work, Some(s.rest_ns.unwrap() + work));
        });
    };
    let Doubt::WorkElsewhere { ns_per_operation, share, .. } = only(&found(helped)) else {
        panic!()
    };
    assert!((ns_per_operation / 2_866.0 - 1.0).abs() < 0.05, "{ns_per_operation}");
    assert!((share - 0.5).abs() < 0.03, "{share}");
    // Twice as slow, with the same share of the machine's time for the rest.
    let slow = |round: &mut Round| slices(round, |s| s.count /= 2);
    assert_eq!(found(slow), []);
}

#[test]
fn names_work_that_is_postponed_to_the_end() {
    let later = |round: &mut Round| {
        let whole = round.life.as_mut().unwrap().whole.as_mut().unwrap();
        whole.cpu_ns += whole.driven_ns / 10;
    };
    let Doubt::OutsideSlices { share, .. } = only(&found(later)) else { panic!() };
    assert!((share - 0.128).abs() < 0.01, "{share}");
    let long_start = |round: &mut Round| {
        let whole = round.life.as_mut().unwrap().whole.as_mut().unwrap();
        (whole.start_ns, whole.cpu_ns) = (2_020_000_000, whole.cpu_ns + 2_000_000_000);
    };
    assert_eq!(found(long_start), [], "a start is not postponed");
}

#[test]
fn names_work_that_is_postponed_until_the_next_load_connects() {
    let connects = |share: u64| {
        move |round: &mut Round| {
            let life = round.life.as_mut().unwrap();
            let whole = life.whole.as_mut().unwrap();
            life.connecting_ns = whole.driven_ns * share / 100;
            whole.cpu_ns += life.connecting_ns;
        }
    };
    let Doubt::OutsideSlices { share, .. } = only(&found(connects(10))) else { panic!() };
    assert!((share - 0.128).abs() < 0.01, "{share}");
    // A load that stores keys first: all use CPU, and one whose operations cost 1.72 times as much uses more.
    let stores = |of_node: u64| {
        let mut all = race(8);
        for round in &mut all {
            connects(if round.contender == "node" { of_node } else { 50 })(round);
        }
        judged(&all).findings
    };
    assert_eq!((stores(50), stores(80)), (vec![], vec![]));
    let found = stores(100);
    let Doubt::OutsideSlices { share, .. } = only(&found) else { panic!("{found:?}") };
    assert!((share - 0.168).abs() < 0.02, "{share}");
}

#[test]
fn names_work_without_load() {
    let idle = |cpu_ns| {
        move |round: &mut Round| {
            let idle = Some(IdleSlice { ns: 50_000_000, cpu_ns });
            round.life.as_mut().unwrap().idle = idle.filter(|_| round.round.is_multiple_of(3));
        }
    };
    assert_eq!(found(idle(400_000)), [], "0.8%");
    let Doubt::Standing { ms_per_s, of_a_slice } = only(&found(idle(1_000_000))) else { panic!() };
    assert!(
        (ms_per_s - 20.0).abs() < 1e-9 && (of_a_slice - 1.0 / 49.0).abs() < 1e-3,
        "{of_a_slice}"
    );
    let Doubt::Polls { busy } = only(&found(idle(45_000_000))) else { panic!() };
    assert!((busy - 0.9).abs() < 1e-9);
    let mut all = race(6);
    of(&mut all, "node").for_each(idle(1_000_000));
    assert_eq!(cell(&judged(&all), "node").standing_ms_per_s, Some(20.0));
    assert_eq!(cell(&judged(&all), "epoll").standing_ms_per_s, None);
}

#[test]
fn names_a_contender_that_runs_longer_than_it_is_loaded() {
    let longer = |thousandths: u64| {
        move |round: &mut Round| {
            let life = round.life.as_mut().unwrap();
            let driven: u64 = life.slices.iter().map(|slice| slice.ns).sum();
            life.thawed_ns = Some(driven + driven * thousandths / 1_000);
        }
    };
    let Doubt::ThawedLonger { share } = only(&found(longer(50))) else { panic!() };
    assert!((share - 0.05).abs() < 1e-3, "{share}");
    assert_eq!(found(longer(15)), [], "1.5%");
}

#[test]
fn names_a_contender_that_runs_in_the_slices_of_others() {
    let aside = |share: u64| {
        move |round: &mut Round| {
            let cpu_ns = round.server.as_ref().unwrap().cpu_ns;
            let life = round.life.as_mut().unwrap();
            life.aside_ns = cpu_ns * share / 1_000;
            life.not_frozen = (round.round < 3).then(|| "no freezer".to_owned());
        }
    };
    let Doubt::NotFrozen { share, lives, of } = only(&found(aside(30))) else { panic!() };
    assert!((share - 0.03).abs() < 1e-3 && (lives, of) == (3, 8), "{share}");
    assert_eq!(found(aside(5)), [], "0.5%, frozen or not");
}

#[test]
fn names_a_contender_that_is_faster_right_after_it_was_frozen() {
    let rests = |round: &mut Round| {
        slices(round, |s| s.cpu_ns = if s.stretch > 1 { s.cpu_ns * 106 / 100 } else { s.cpu_ns });
    };
    let Doubt::LongSlices { factor, .. } = only(&found(rests)) else { panic!() };
    assert!((factor - 1.06).abs() < 0.01, "{factor}");
}

#[test]
fn names_a_contender_that_is_faster_at_the_start_of_its_life() {
    let tires = |round: &mut Round| {
        slices(round, |s| s.count = s.count * 100 / (100 + 2 * u64::from(s.block)));
    };
    let Doubt::ChangesInLife { factor, .. } = only(&found(tires)) else { panic!() };
    // From blocks 1 and 2 to blocks 7 and 8.
    assert!((factor / (115.0 / 103.0) - 1.0).abs() < 0.01, "{factor}");
}

#[test]
fn names_a_contender_with_a_few_very_late_replies() {
    let late = |round: &mut Round| {
        let mut histogram = decode_histogram(&round.histogram).unwrap();
        histogram.record_n(100_000, 38_000).unwrap();
        histogram.record_n(20_000_000, 4).unwrap();
        round.histogram = encode_histogram(&histogram);
    };
    let Doubt::RareDelays { share, max_ns, .. } = only(&found(late)) else { panic!() };
    assert!((share / 1e-4 - 1.0).abs() < 0.05, "{share}");
    assert!((20_000_000..20_100_000).contains(&max_ns), "{max_ns}");
    // On a machine that stalls, all contenders show the same.
    let mut all = race(6);
    all.iter_mut().for_each(late);
    let s = judged(&all);
    let is_delay = |one: &Finding| matches!(one.doubt, Doubt::RareDelays { .. });
    assert!(!s.findings.iter().any(is_delay), "{:?}", s.findings);
    let p99_99 = cell(&s, "node").latency_ns.p99_99.unwrap();
    assert!(p99_99 < 20_100_000, "{p99_99}");
}

#[test]
fn names_a_contender_that_uses_more_than_its_cpus() {
    let wide = |round: &mut Round| {
        slices(round, |s| (s.cpu_ns, s.count) = (s.cpu_ns * 2, s.count * 2));
    };
    let findings = found(wide);
    let doubts: Vec<Doubt> = findings.iter().map(|finding| finding.doubt.clone()).collect();
    let [Doubt::MoreThanItsCpus { busy }] = doubts[..] else { panic!("{findings:?}") };
    assert!((busy - 1.96).abs() < 0.01, "{busy}");
}

#[test]
fn says_that_a_state_was_seen_rarely() {
    let mut all = duels(&field(), Duel { blocks: 12, ..DUEL }, 3);
    for round in all.iter_mut().filter(|round| round.round == 5) {
        slices(round, |s| s.cpu_ns = if s.block < 7 { s.cpu_ns * 13 / 10 } else { s.cpu_ns });
    }
    let s = judged(&all);
    let [Finding { contender: None, doubt: Doubt::RareState { factor, blocks, .. }, .. }] =
        s.findings[..]
    else {
        panic!("{:?}", s.findings)
    };
    assert!((factor - 1.3).abs() < 0.03 && blocks == 5, "{factor}, {blocks}");
    assert!(s.cells.iter().all(|cell| cell.verdict.kind() != Kind::Unstable), "{:?}", s.cells);
}

#[test]
fn a_drift_that_all_share_voids_nothing_and_one_of_its_own_does() {
    let slower = |round: &mut Round| {
        let slow = |(nth, count): (usize, &mut u64)| *count = *count * (100 - nth as u64) / 100;
        round.slices.iter_mut().enumerate().for_each(slow);
    };
    let mut all = race(6);
    for round in &mut all {
        round.slices = vec![1_000; 20];
        slower(round);
    }
    let unstable = |rounds: &[Round]| -> Vec<String> {
        let cells = judged(rounds).cells.into_iter();
        cells.filter(|c| c.verdict.kind() == Kind::Unstable).map(|cell| cell.contender).collect()
    };
    assert_eq!(unstable(&all), [""; 0]);
    let of_node = all.iter_mut().filter(|round| round.contender == "node");
    of_node.for_each(slower);
    assert_eq!(unstable(&all), ["node"]);
}

#[test]
fn names_replies_that_differ_under_load_and_settings_that_changed() {
    let content = Some(ContentSeen { bytes: 400, digest: Some(7) });
    let seen = ReplySeen { bytes: 500, has_date: true, content };
    let with = |bytes: fn(u64) -> u64, seen: ReplySeen| {
        move |round: &mut Round| {
            round.reply = Some(seen);
            round.reply_bytes = Some(bytes(round.requests));
        }
    };
    assert_eq!(found(with(|n| n * 500, seen)), []);
    // One reply in twenty is an empty one.
    let shed = found(with(|n| n * 19 / 20 * 500 + n / 20 * 100, seen));
    let Doubt::OtherReplies { bytes, alone } = only(&shed) else { panic!("{shed:?}") };
    assert!((bytes - 480.0).abs() < 0.1 && alone == 500, "{bytes} {alone}");
    assert!(found(with(|n| n * 506, seen)).len() == 1, "longer ones are named too");
    let varies = Some(ContentSeen { bytes: 400, digest: None });
    assert_eq!(found(with(|n| n * 460, ReplySeen { content: varies, ..seen })), []);
    assert_eq!(found(with(|n| n * 440, ReplySeen { content: varies, ..seen })).len(), 1);
    assert_eq!(found(with(|n| n * 9, ReplySeen { content: None, ..seen })), [], "it is checked");

    let mut all = race(6);
    all[0].settings_changed = Some("/a from 1 to 2".into());
    let what = "/a from 1 to 2".into();
    assert_eq!(only(&judged(&all).findings), Doubt::SettingsChanged { what });
}
