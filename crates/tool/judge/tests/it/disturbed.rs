//! What a busy machine does to contenders that take turns: it disturbs all alike, and accuses none.

use crate::{
    duel_ends::{passes, run},
    duels::{NAMES, field, race},
    simulated::{
        LOAD,
        five::{cell, of},
        lives::{DUEL, Duel, HALF_MORE, duels, in_duels},
    },
};
use regatta_judge::judge;
use regatta_record::{
    Asked, ContendedBlocks, Doubt, Finding, Kind, Machine, Round, Settling, Slice, Summary,
    WarmUpClass,
};

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

/// Another program runs beside these lives: a switch to `node` then costs less, relative to the others.
fn beside_another_program(all: &mut [Round], lives: impl Fn(u32) -> bool) {
    for round in all.iter_mut().filter(|round| lives(round.round)) {
        let factor = if round.contender == "node" { 0.88 } else { 1.0 };
        for slice in &mut round.life.as_mut().unwrap().slices {
            slice.cpu_ns = (slice.cpu_ns as f64 * factor) as u64;
            slice.rest_ns = Some(slice.ns * 6 / 10);
        }
    }
}

#[test]
fn blocks_beside_other_programs_do_not_move_a_ratio() {
    let mut all = race(7);
    beside_another_program(&mut all, |life| life % 2 == 1);
    let s = judged(&all);
    assert_eq!(s.duels[0].busy, Some(ContendedBlocks { blocks: 32, of: 64, apart: true }));
    assert_eq!((s.duels[0].states.len(), &s.findings[..]), (1, &[][..]));
    let node = cell(&s, "node");
    let [alone, beside] = [node.ratio_to_baseline, node.ratio_beside_others].map(Option::unwrap);
    assert!((alone.mean / 1.72 - 1.0).abs() < 0.01, "{alone:?}");
    assert!((beside.mean / (0.88 * 1.72) - 1.0).abs() < 0.01, "{beside:?}");
    assert_eq!(cell(&s, "percore").ratio_beside_others, None, "it does not differ");
    // The same beside all lives.
    beside_another_program(&mut all, |life| life % 2 == 0);
    let s = judged(&all);
    assert_eq!(s.duels[0].busy, Some(ContendedBlocks { blocks: 64, of: 64, apart: false }));
    let [Finding { contender: None, load: Some(LOAD), ref doubt, .. }] = s.findings[..] else {
        panic!("{:?}", s.findings)
    };
    assert_eq!(*doubt, Doubt::BesideOthers { blocks: 64, of: 64 });
    let node = cell(&s, "node").ratio_to_baseline.unwrap();
    assert!((node.mean / (0.88 * 1.72) - 1.0).abs() < 0.01, "{node:?}");
}

#[test]
fn a_life_that_differs_as_a_whole_still_counts_where_lives_are_few() {
    let three = ["epoll", "epoll-twin", "node"];
    // The slices vary so much that the first life is no state of its own.
    let truths: Vec<_> = field().into_iter().filter(|one| three.contains(&one.name)).collect();
    for seed in 0..20 {
        let mut all = duels(&truths, Duel { lives: 3, blocks: 32, within: 0.09, ..DUEL }, seed);
        for round in all.iter_mut().filter(|round| round.round == 0) {
            let slices = &mut round.life.as_mut().unwrap().slices;
            slices.retain(|slice| slice.block <= 8);
            let cheaper = |slice: &mut Slice| slice.cpu_ns = (slice.cpu_ns as f64 * 0.70) as u64;
            slices.iter_mut().for_each(cheaper);
        }
        let s = judge(&in_duels(&three, 3, &[LOAD]), &all);
        let ratio = cell(&s, "node").ratio_to_baseline.map(|ratio| ratio.mean);
        assert!(ratio.is_some_and(|mean| (mean / 1.72 - 1.0).abs() < 0.05), "{seed}: {ratio:?}");
    }
}

#[test]
fn a_contender_cannot_be_rid_of_slices_by_a_process_outside() {
    let mut all = race(7);
    of(&mut all, "node").filter(|round| round.round % 2 == 1).for_each(|round| {
        let slices = &mut round.life.as_mut().unwrap().slices;
        slices.iter_mut().for_each(|slice| slice.rest_ns = Some(slice.ns * 6 / 10));
    });
    assert_eq!(judged(&all).duels[0].busy, None);
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
        cold_for_ns: 0,
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

/// How often, of `RACES` races, the interval of a contender had the true ratio, and the median half-width.
fn covered(duel: Duel, who: &str, truth: f64) -> (u32, f64) {
    let mut widths = Vec::new();
    let mut covered = 0;
    for seed in 0..RACES {
        let rounds = duels(&field(), duel, 1_000 + u64::from(seed));
        let asked = in_duels(&NAMES, duel.lives, &[LOAD]);
        let ratio = cell(&judge(&asked, &rounds), who).ratio_to_baseline.unwrap();
        covered += u32::from(ratio.low <= truth && truth <= ratio.high);
        widths.push((ratio.high / ratio.low).ln() / 2.0);
    }
    widths.sort_by(f64::total_cmp);
    (covered, widths[widths.len() / 2])
}

const RACES: u32 = 30;
/// 95% of 30, less two standard deviations of chance.
const AT_LEAST: u32 = 26;

/// A cost that is higher by a half in a tenth of the slices.
fn with_own_mode() -> f64 {
    1.72 * HALF_MORE.powf(0.1)
}

#[test]
fn short_disturbances_do_not_widen_intervals() {
    let duel = Duel { blocks: 12, disturbed: 0.02, ..DUEL };
    let (calm, disturbed) =
        (covered(Duel { disturbed: 0.0, ..duel }, "percore", 1.0), covered(duel, "percore", 1.0));
    assert!(disturbed.0 >= AT_LEAST && calm.0 >= AT_LEAST, "{calm:?}, {disturbed:?}");
    assert!(disturbed.1 < 1.3 * calm.1, "{calm:?}, {disturbed:?}");
}

#[test]
fn the_ratio_is_that_of_the_fastest_state_if_it_was_seen_in_three_lives() {
    for state_lasts in [5, 11, 40] {
        let duel = Duel { blocks: 12, disturbed: 0.01, state_lasts, ..DUEL };
        let (covered, half) = covered(duel, "node", 1.72);
        assert!(covered >= AT_LEAST && half < 0.02, "{state_lasts}: {covered}, ±{half}");
    }
}

#[test]
fn what_one_contender_shows_alone_is_never_left_out() {
    for disturbed in [0.0, 0.02] {
        let duel = Duel { blocks: 20, disturbed, own: Some("node"), ..DUEL };
        let (covered, half) = covered(duel, "node", with_own_mode());
        assert!(covered >= AT_LEAST, "{disturbed}: {covered}, ±{half}");
    }
}

/// How often, of `RACES` races of a few contenders, the interval of `percore` had this ratio. With two, each slice of
/// one is beside slices of the other.
fn covered_of(names: &[&str], duel: Duel, truth: f64) -> u32 {
    let truths: Vec<_> = field().into_iter().filter(|one| names.contains(&one.name)).collect();
    let asked = in_duels(names, duel.lives, &[LOAD]);
    let twin_of = asked.twin_of.clone().filter(|_| names.contains(&"epoll-twin"));
    let asked = Asked { twin_of, ..asked };
    let ratio = |seed: u32| {
        let rounds = duels(&truths, duel, 1_000 + u64::from(seed));
        cell(&judge(&asked, &rounds), "percore").ratio_to_baseline.unwrap()
    };
    (0..RACES).map(ratio).filter(|one| one.low <= truth && truth <= one.high).count() as u32
}

#[test]
fn what_the_baseline_shows_alone_is_never_left_out() {
    let duel = Duel { blocks: 20, own: Some("epoll"), ..DUEL };
    let truth = HALF_MORE.powf(-0.1);
    let (covered, half) = covered(duel, "percore", truth);
    let of_two = covered_of(&["epoll", "percore"], duel, truth);
    assert!(covered >= AT_LEAST && of_two >= AT_LEAST, "{covered}, ±{half}; {of_two}");
}

#[test]
fn a_contender_that_disturbs_the_next_one_keeps_its_expensive_slices() {
    let duel = Duel { blocks: 20, own: Some("node"), drags: true, ..DUEL };
    let (covered, half) = covered(duel, "node", with_own_mode());
    assert!(covered >= AT_LEAST, "{covered}, ±{half}");
}

#[test]
fn a_contender_that_disturbs_the_next_one_at_no_cost_for_itself_gains_nothing() {
    let duel = |who| Duel { blocks: 20, litters: Some(who), ..DUEL };
    let (covered, half) = covered(duel("node"), "node", 1.72);
    let three = ["epoll", "epoll-twin", "percore"];
    let long = |who| Duel { blocks: 40, ..duel(who) };
    let of_three = ["epoll", "percore"].map(|who| covered_of(&three, long(who), 1.0));
    assert!(covered >= AT_LEAST, "{covered}, ±{half}");
    assert!(of_three.iter().all(|covered| *covered >= AT_LEAST), "{of_three:?}");
}

/// Nobody else is unusual after that one, so it does not disturb.
#[test]
fn a_contender_that_is_expensive_only_after_another_one_is_not_rid_of_that() {
    let duel = Duel { blocks: 20, after: Some(("percore", "epoll")), ..DUEL };
    for seed in 0..20 {
        let rounds = duels(&field(), duel, seed);
        let asked = in_duels(&NAMES, duel.lives, &[LOAD]);
        let ratio = cell(&judge(&asked, &rounds), "percore").ratio_to_baseline.unwrap();
        // It comes right after `epoll` in a fifth of the blocks: 8% more.
        assert!(ratio.mean > 1.05, "{seed}: {ratio:?}");
    }
}

#[test]
fn a_contender_that_varies_from_start_to_start_has_a_wide_interval_and_does_not_widen_others() {
    let wild = Duel { lives: 4, wild: Some("node"), ..DUEL };
    let (node, percore) = (covered(wild, "node", 1.72), covered(wild, "percore", 1.0));
    let alike = covered(Duel { wild: None, ..wild }, "percore", 1.0);
    assert!(node.0 >= AT_LEAST && percore.0 >= AT_LEAST, "{node:?}, {percore:?}");
    assert!(node.1 > 0.05 && percore.1 < 1.25 * alike.1, "{node:?}, {percore:?}, {alike:?}");
}

/// A look after every life, and an end that depends on the widths: the interval of two equal contenders, whose
/// ratio is the same in all states, has it in 93% of the races at least.
#[test]
fn intervals_of_races_that_end_by_themselves_have_the_truth() {
    const RACES: u64 = 28;
    for state_lasts in [0, 11, 40] {
        let duel = Duel { lives: 16, within: 0.02, between: 0.01, state_lasts, ..DUEL };
        let asked = Asked { precision: Some(0.03), ..in_duels(&NAMES, 16, &[LOAD]) };
        let excludes_1 = |rounds: &[Round]| {
            let ratio = cell(&judge(&asked, rounds), "percore").ratio_to_baseline;
            ratio.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
        };
        let is_ever_wrong = |seed: &u64| {
            let ran = run(&asked, &duels(&field(), duel, 7_000 + seed));
            (3..=passes(&ran)).any(|lives| {
                let so_far: Vec<Round> = ran.iter().filter(|r| r.round < lives).cloned().collect();
                excludes_1(&so_far)
            })
        };
        let wrong = (0..RACES).filter(is_ever_wrong).count() as u64;
        assert!(wrong * 100 <= RACES * 7, "{state_lasts}: {wrong} of {RACES}");
    }
}
