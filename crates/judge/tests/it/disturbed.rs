//! What a busy machine does to contenders that take turns: it disturbs all alike, and accuses none.

use crate::{
    duels::{NAMES, race},
    simulated::{
        LOAD,
        five::of,
        lives::{DUEL, in_duels},
    },
};
use regatta_judge::judge;
use regatta_record::{Doubt, Finding, Kind, Machine, Round, Settling, Summary, WarmUpClass};

fn judged(rounds: &[Round]) -> Summary {
    judge(&in_duels(&NAMES, DUEL.lives, &[LOAD]), rounds)
}

fn machine(round: &mut Round, steal: f64, load_waited: f64) {
    round.machine = Some(Machine {
        steal: Some(steal),
        server_run_delay_ns: Some(0),
        load_run_delay_ns: Some((round.window_ns as f64 * load_waited) as u64),
        load_turns: Some(0),
        ..Machine::default()
    });
}

#[test]
fn a_busy_machine_disturbs_all_alike() {
    let mut all = race(7);
    all.iter_mut().for_each(|round| machine(round, 0.03, 0.1));
    let s = judged(&all);
    let [Finding { contender: None, doubt: Doubt::Disturbed { steal, load_waited, .. }, .. }] =
        s.findings[..]
    else {
        panic!("{:?}", s.findings)
    };
    assert!((steal.unwrap() - 0.03).abs() < 1e-9 && (load_waited.unwrap() - 0.1).abs() < 1e-3);
    for cell in &s.cells {
        assert!(!cell.verdict.is(Kind::Noisy) && cell.verdict.void.is_empty(), "{cell:?}");
    }
}

#[test]
fn a_disturbance_of_one_contender_is_its_own() {
    let mut all = race(7);
    all.iter_mut().for_each(|round| machine(round, 0.001, 0.01));
    of(&mut all, "node").for_each(|round| machine(round, 0.001, 0.1));
    let s = judged(&all);
    assert_eq!(s.findings, []);
    let noisy = s.cells.iter().filter(|cell| cell.verdict.is(Kind::Noisy));
    let noisy: Vec<&str> = noisy.map(|cell| cell.contender.as_str()).collect();
    assert_eq!(noisy, ["node"]);
}

#[test]
fn a_contender_that_takes_turns_is_not_accused_of_never_settling() {
    let never = Settling {
        class: WarmUpClass::NeverSettles,
        after_ns: 5_000_000_000,
        after_requests: 900,
        cold_ns_per_request: 9_000.0,
        warm_ns_per_request: 8_600.0,
        observed_ns: 5_000_000_000,
        from_localhost: None,
    };
    let accused = |mut rounds: Vec<Round>| {
        of(&mut rounds, "node").for_each(|round| round.settling = Some(never));
        judged(&rounds).doubts.iter().any(|doubt| doubt.contains("never settled"))
    };
    let in_rounds = |mut round: Round| {
        round.life = None;
        round
    };
    assert!(!accused(race(8)));
    assert!(accused(race(8).into_iter().map(in_rounds).collect()));
}
