//! When races in duels end, simulated: by precision and by time, and how many blocks their lives have.

use crate::{
    duels::{NAMES, field},
    pilots::steady,
    simulated::{
        LOAD,
        five::{cell, of},
        lives::{DUEL, Duel, duels, in_duels, sum_up},
    },
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_judge::{blocks_of_next_life, due, judge};
use regatta_record::{Asked, Doubt, Finding, LoadShape, PilotRate, Round};

/// Runs a race with at most `lives` passes; returns its rounds.
pub fn run(asked: &Asked, all: &[Round]) -> Vec<Round> {
    let mut rounds: Vec<Round> = Vec::new();
    for pass in 0..=asked.rounds {
        let due = due(asked, &rounds, pass);
        if due.loads.is_empty() {
            break;
        }
        rounds.extend(all.iter().filter(|r| r.round == pass).cloned());
    }
    rounds
}

pub fn passes(rounds: &[Round]) -> u32 {
    rounds.iter().map(|r| r.round + 1).max().unwrap_or(0)
}

#[test]
fn a_duel_ends_after_the_life_in_which_all_ratios_are_narrow() {
    let all = duels(&field(), Duel { lives: 30, ..DUEL }, 2);
    let asked = |precision| Asked { precision, ..in_duels(&NAMES, 30, &[LOAD]) };
    let ran = run(&asked(Some(0.10)), &all);
    assert_eq!(passes(&ran), 4, "never before the fourth life");
    let ran = run(&asked(Some(0.01)), &all);
    assert!((4..15).contains(&passes(&ran)), "{}", passes(&ran));
    let s = judge(&asked(Some(0.01)), &ran);
    assert!(s.complete && s.precision.as_ref().unwrap().reached, "{:?}", s.precision);
    for name in ["percore", "node"] {
        let ratio = cell(&s, name).ratio_to_baseline.unwrap();
        assert!((ratio.high / ratio.low).sqrt() <= 1.01, "{name}: {ratio:?}");
    }
    let before: Vec<Round> = ran.iter().filter(|r| r.round + 1 < passes(&ran)).cloned().collect();
    assert!(!judge(&asked(Some(0.01)), &before).complete, "one life earlier");
    assert_eq!(passes(&run(&asked(None), &all)), 30, "without a precision all are run");
}

#[test]
fn intervals_are_narrower_at_the_end_than_if_the_race_is_interrupted() {
    let all = duels(&field(), Duel { lives: 9, ..DUEL }, 2);
    let half_of = |rounds: u32, lives: u32| {
        let asked = Asked { rounds, ..in_duels(&NAMES, rounds, &[LOAD]) };
        let ran: Vec<Round> = all.iter().filter(|r| r.round < lives).cloned().collect();
        let s = judge(&asked, &ran);
        assert_eq!(s.complete, rounds == lives);
        let ratio = cell(&s, "percore").ratio_to_baseline.unwrap();
        (ratio.high / ratio.low).ln() / 2.0
    };
    let (ended, interrupted) = (half_of(8, 8), half_of(9, 8));
    assert!((1.7..2.4).contains(&(interrupted / ended)), "±{ended}, ±{interrupted}");
}

#[test]
fn a_precision_that_only_the_end_would_reach_is_not_reached_before() {
    let all = duels(&field(), Duel { lives: 9, ..DUEL }, 2);
    let ran: Vec<Round> = all.iter().filter(|r| r.round < 8).cloned().collect();
    let ended = judge(&in_duels(&NAMES, 8, &[LOAD]), &ran);
    let half = |name| {
        let ratio = cell(&ended, name).ratio_to_baseline.unwrap();
        (ratio.high / ratio.low).sqrt() - 1.0
    };
    let widest = half("percore").max(half("node"));
    let asked = Asked { precision: Some(1.001 * widest), ..in_duels(&NAMES, 9, &[LOAD]) };
    let s = judge(&asked, &ran);
    // One life earlier it was wider, so the race goes on, and the table has the wide intervals.
    assert!(!s.complete && !s.precision.as_ref().unwrap().reached, "{:?}", s.precision);
    let missing = &s.precision.as_ref().unwrap().missing;
    assert!(missing.iter().all(|one| one.contains("takes about 1 more life")), "{missing:?}");
}

#[test]
fn time_ends_a_race_but_never_before_three_lives() {
    let all = duels(&field(), Duel { lives: 30, ..DUEL }, 2);
    // Five contenders, 0.4 s and twice (7 + 4) slices of 50 ms each: 7.5 s per life.
    let life_s = 5.0 * (0.4 + 2.0 * 11.0 * 0.05);
    let asked = |time_s| Asked {
        precision: Some(0.0001),
        time_s: Some(time_s),
        ..in_duels(&NAMES, 30, &[LOAD])
    };
    for (lives, time_s) in [(3, 1.0), (3, 3.9), (4, 4.1), (5, 5.5)] {
        let asked = asked(time_s * life_s);
        let ran = run(&asked, &all);
        assert_eq!(passes(&ran), lives, "{time_s} lives");
        let s = judge(&asked, &ran);
        assert!(s.complete && !s.precision.unwrap().reached);
    }
    let without = Asked { precision: None, ..asked(6.5 * life_s) };
    assert_eq!(passes(&run(&without, &all)), 6, "also without a precision");
}

#[test]
fn the_pilot_is_within_the_time_of_a_race() {
    let all = duels(&field(), Duel { lives: 30, ..DUEL }, 2);
    let life_s = 5.0 * (0.4 + 2.0 * 11.0 * 0.05);
    let pilot = |took_s| PilotRate { took_s, ..steady("node", LOAD, 1_000.0) };
    let asked = |lives: f64| Asked {
        time_s: Some(6.5 * life_s),
        pilot: vec![pilot(lives * life_s), pilot(0.0)],
        ..in_duels(&NAMES, 30, &[LOAD])
    };
    let lives = |of_pilot: f64| passes(&run(&asked(of_pilot), &all));
    assert_eq!([0.0, 1.0, 2.0, 6.0, 60.0].map(lives), [6, 5, 4, 3, 3]);
    assert!(judge(&asked(2.0), &run(&asked(2.0), &all)).complete);
    // Nor do lives get more blocks than there is time for.
    let noisy = duels(&field(), Duel { lives: 12, within: 0.05, between: 0.001, ..DUEL }, 2);
    let blocks = |took_s| {
        let asked = Asked { time_s: Some(60.0), pilot: vec![pilot(took_s)], ..asked(0.0) };
        blocks_of_next_life(&asked, &noisy, &LOAD, 1)
    };
    assert!(blocks(0.0) > 5 && blocks(50.0) == 4, "{} {}", blocks(0.0), blocks(50.0));
}

/// A race in whose second life the machine changes so often that no block of it counts.
fn one_life_does_not_count(lives: u32) -> Vec<Round> {
    let mut all = duels(&field(), Duel { lives, ..DUEL }, 2);
    let mut random = SmallRng::seed_from_u64(1);
    let in_life = |round: &&mut Round| round.round == 1;
    for slice in all.iter_mut().filter(in_life).flat_map(|r| &mut r.life.as_mut().unwrap().slices) {
        slice.cpu_ns = (slice.cpu_ns as f64 * random.random_range(0.3..3.0)) as u64;
    }
    all
}

#[test]
fn a_cost_without_a_ratio_has_a_reason() {
    let all = one_life_does_not_count(4);
    let lacking = |lives: u32| {
        let ran: Vec<Round> = all.iter().filter(|r| r.round < lives).cloned().collect();
        let s = judge(&in_duels(&NAMES, lives, &[LOAD]), &ran);
        let of = |f: &Finding| matches!(f.doubt, Doubt::TooFewLives { .. }).then(|| f.clone());
        s.findings.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(lacking(4), []);
    let found = lacking(3);
    let names: Vec<&str> = found.iter().filter_map(|f| f.contender.as_deref()).collect();
    assert_eq!(
        names,
        ["epoll-twin", "percore", "node"],
        "not the baseline, and not the null server"
    );
    assert!(found.iter().all(|f| f.doubt == Doubt::TooFewLives { lives: 2, of: 3 }), "{found:?}");
}

#[test]
fn a_life_that_does_not_count_is_replaced_after_the_time_is_over() {
    let all = one_life_does_not_count(30);
    let asked = |time_s| Asked { time_s: Some(time_s), ..in_duels(&NAMES, 30, &[LOAD]) };
    let three: Vec<Round> = all.iter().filter(|r| r.round < 3).cloned().collect();
    assert!(cell(&judge(&asked(1.0), &three), "percore").ratio_to_baseline.is_none());
    let ran = run(&asked(1.0), &all);
    assert_eq!(passes(&ran), 4);
    assert!(cell(&judge(&asked(1.0), &ran), "percore").ratio_to_baseline.is_some());
}

#[test]
fn the_time_of_a_pass_is_that_of_all_its_heats() {
    let mut rounds = duels(&field(), Duel { lives: 12, ..DUEL }, 2);
    // Three heats: only the anchors live in each.
    let heats = ["null", "percore", "node"];
    rounds.retain(|round| {
        let name = round.contender.as_str();
        heats
            .iter()
            .position(|other| *other == name)
            .is_none_or(|nth| round.round % 3 == nth as u32)
    });
    for round in of(&mut rounds, "node") {
        round.life.as_mut().unwrap().lasted_ns += 60_000_000_000;
    }
    let pass_s = 60.0 + 3.0 * 3.0 * (0.4 + 2.0 * 11.0 * 0.05);
    let is_due = |passes: f64, of_time: f64| {
        let time_s = Some(of_time * pass_s);
        let asked = Asked { precision: None, time_s, ..in_duels(&NAMES, 30, &[LOAD]) };
        let before: Vec<Round> =
            rounds.iter().filter(|r| f64::from(r.round) < 3.0 * passes).cloned().collect();
        !due(&asked, &before, passes as u32).loads.is_empty()
    };
    assert!(is_due(3.0, 4.1) && !is_due(4.0, 4.9) && !is_due(3.0, 3.9));
}

#[test]
fn a_hopeless_contender_does_not_keep_the_others_waiting() {
    let mut all = duels(&field(), Duel { lives: 40, ..DUEL }, 2);
    let slow_starts = |r: &mut Round| {
        let by = [0.6, 1.7, 1.0, 0.8, 1.4][r.round as usize % 5];
        let life = r.life.as_mut().unwrap();
        life.slices.iter_mut().for_each(|s| s.cpu_ns = (s.cpu_ns as f64 * by) as u64);
        sum_up(r);
    };
    of(&mut all, "node").for_each(slow_starts);
    let asked = |time_s| Asked { precision: Some(0.01), time_s, ..in_duels(&NAMES, 40, &[LOAD]) };
    let ran = run(&asked(None), &all);
    assert!((6..15).contains(&passes(&ran)), "{}", passes(&ran));
    // But a time that was granted is used.
    assert!(passes(&run(&asked(Some(7.5 * 18.0)), &all)) > 15);
    let s = judge(&asked(None), &ran);
    let missing = &s.precision.as_ref().unwrap().missing;
    assert!(s.complete && missing.len() == 1, "{missing:?}");
    assert!(missing[0].starts_with("node at 64 conn: ±"), "{missing:?}");
    assert!(missing[0].contains("takes longer than ten minutes"), "{missing:?}");
}

#[test]
fn blocks_follow_from_the_variances() {
    let asked = in_duels(&NAMES, 30, &[LOAD]);
    let blocks = |within, between, lives| {
        let rounds = duels(&field(), Duel { lives, within, between, ..DUEL }, 2);
        blocks_of_next_life(&asked, &rounds, &LOAD, 1)
    };
    assert_eq!(blocks(0.02, 0.001, 2), 8, "no variances yet");
    // √(5 · 0.95 s / 0.34 s) = 3.7 times σ/τ.
    assert_eq!(blocks(0.002, 0.02, 12), 4);
    assert_eq!(blocks(0.05, 0.001, 12), 32);
    // 6 lives must fit into the time, which limits the 32 blocks of this case.
    let noisy = duels(&field(), Duel { lives: 12, within: 0.05, between: 0.001, ..DUEL }, 2);
    let within = |time_s| Asked { time_s: Some(time_s), ..asked.clone() };
    let of = |time_s| blocks_of_next_life(&within(time_s), &noisy, &LOAD, 1);
    let [short, some, long] = [10.0, 60.0, 1e3].map(of);
    assert!(short == 4 && (5..32).contains(&some) && long == 32, "{short}, {some}, {long}");
    let some = blocks(0.02, 0.012, 12);
    assert!((5..12).contains(&some), "{some}");
    assert_eq!(blocks_of_next_life(&asked, &[], &LOAD, 1), 8);
}

#[test]
fn lives_that_take_long_have_more_blocks_also_before_variances_are_known() {
    let mut rounds = duels(&field(), Duel { lives: 2, ..DUEL }, 2);
    let asked = |time_s| Asked { time_s, ..in_duels(&NAMES, 30, &[LOAD]) };
    assert_eq!(blocks_of_next_life(&asked(None), &rounds, &LOAD, 1), 8);
    for round in of(&mut rounds, "node") {
        round.life.as_mut().unwrap().lasted_ns += 60_000_000_000;
    }
    // 2·√(65 s / 0.34 s) = 27.
    let slow = |time_s| blocks_of_next_life(&asked(time_s), &rounds, &LOAD, 1);
    assert!((24..=31).contains(&slow(None)), "{}", slow(None));
    assert_eq!(slow(Some(600.0)), slow(None), "there is time for 4 of them");
    // There is not, but 65 s / 8 / 0.34 s = 24 are cheap beside a life.
    assert!((22..=25).contains(&slow(Some(200.0))), "{}", slow(Some(200.0)));
    // The warm-up of a life is shared by its loads.
    let other = LoadShape { pipeline: 16, ..LOAD };
    let twice: Vec<Round> = rounds
        .iter()
        .cloned()
        .chain(rounds.iter().map(|round| {
            let mut round = Round { load: other, ..round.clone() };
            round.life.as_mut().unwrap().lasted_ns -=
                60_000_000_000 * u64::from(round.contender == "node");
            round
        }))
        .collect();
    let two = Asked { loads: vec![LOAD, other], ..asked(None) };
    let shared = [LOAD, other].map(|load| blocks_of_next_life(&two, &twice, &load, 1));
    assert!(shared[0] == shared[1] && (17..=22).contains(&shared[0]), "{shared:?}");
}
