//! A server against its copy: the referee must not find a difference.
//!
//! Twenty real races of two copies of one server, which run once and are shared by the tests of the full
//! form. These check their claims, the claims of races simulated from their twin rounds, their gates,
//! and comparisons of two of them.

use crate::truth::{
    gate::diff,
    raced::{Race, Raced, cell, half_width, median, shown},
    stage::{Turn, turn},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_judge::judge;
use regatta_record::{Asked, Relation, Round, twin_name};
use std::{collections::HashSet, fs, path::Path, sync::OnceLock};

const RACES: usize = 20;
const ROUNDS: u32 = 10;
const SIMULATED: usize = 200;
const OLD: &str = "old";
const NEW: &str = "new";

fn race(seed: u64) -> Race<'static> {
    let contenders = &[(OLD, ""), (NEW, "")];
    let (load, more) = ("connections = 64", "--baseline old --fail-over 5%");
    Race { contenders, null: true, load, rounds: ROUNDS, window_ms: 300, seed, more }
}

/// Returns the races of the full form, which the first call runs. Their results stay in cargo's
/// directory for files of tests until the races run again.
fn races(turn: &Turn) -> &'static [Raced] {
    static RUN: OnceLock<Vec<Raced>> = OnceLock::new();
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("copies");
    RUN.get_or_init(|| {
        if all.exists() {
            fs::remove_dir_all(&all).unwrap();
        }
        let one = |n: usize| {
            eprintln!("race {} of {RACES} of a server against its copy", n + 1);
            let folder = all.join(n.to_string());
            fs::create_dir_all(&folder).unwrap();
            race(20_000 + n as u64).run_in(turn, &folder)
        };
        (0..RACES).map(one).collect()
    })
}

fn claims(relation: Option<Relation>) -> bool {
    matches!(relation, Some(Relation::Cheaper | Relation::Costlier))
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn no_difference_is_claimed_between_copies() {
    let Some(turn) = turn() else { return };
    let mut claimed = 0;
    let mut widths = Vec::new();
    println!("\nratio of a server to its copy, and the claimed relation");
    for raced in races(&turn) {
        let cell = raced.cell(NEW);
        println!("{}  {:?}", shown(cell), cell.relation);
        claimed += u32::from(claims(cell.relation));
        widths.extend(cell.ratio_to_baseline.as_ref().map(half_width));
    }
    println!(
        "{claimed} of {RACES} claim a difference (3 at most); median width ±{:.2}%",
        median(widths)
    );
    // 20 races at 5%: the probability of 4 or more claims is about 1 in 60.
    assert!(claimed <= 3, "{claimed} of {RACES}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn no_difference_is_claimed_between_simulated_copies() {
    let Some(turn) = turn() else { return };
    let mut random = StdRng::seed_from_u64(200);
    let mut claimed = 0;
    let mut widths = Vec::new();
    for n in 0..SIMULATED {
        let (asked, rounds) = twins(&races(&turn)[n % RACES]);
        let swapped = swap_some(rounds, |_| random.random());
        let summary = judge(&asked, &swapped);
        let cell = cell(&summary, &twin_name(OLD));
        claimed += u32::from(claims(cell.relation));
        widths.extend(cell.ratio_to_baseline.as_ref().map(half_width));
    }
    println!(
        "\n{claimed} of {SIMULATED} simulated races of twins claim a difference (16 at most); \
         median width ±{:.2}%",
        median(widths)
    );
    // 200 races at 5%: the probability of 17 or more claims is about 1 in 42.
    assert!(claimed <= 16, "{claimed} of {SIMULATED}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn the_gate_passes_copies() {
    let Some(turn) = turn() else { return };
    let passed = races(&turn).iter().filter(|raced| raced.code == 0).count();
    println!("\nthe gate of 5% passes {passed} of {RACES} races of two copies (17 at least)");
    assert!(passed >= 17, "{passed} of {RACES}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn diff_passes_two_runs_of_one_build() {
    let Some(turn) = turn() else { return };
    let races = races(&turn);
    // Races five apart ran a minute and a half apart.
    let passes = |n: &usize| diff(&races[*n].dir, &races[(n + 5) % RACES].dir) == 0;
    let passed = (0..RACES).filter(passes).count();
    println!("\ndiff passes {passed} of {RACES} pairs of runs of one build (17 at least)");
    assert!(passed >= 17, "{passed} of {RACES}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn swapping_the_names_of_twins_inverts_their_ratio() {
    let Some(turn) = turn() else { return };
    let mut has_effect = false;
    for raced in races(&turn) {
        let (asked, rounds) = twins(raced);
        assert_eq!(rounds.len(), 2 * ROUNDS as usize, "expected these rounds of each twin");
        let ratio = |rounds: &[Round]| {
            cell(&judge(&asked, rounds), &twin_name(OLD)).ratio_to_baseline.unwrap()
        };
        let there = ratio(&rounds);
        let back = ratio(&swap_some(rounds.clone(), |_| true));
        let pairs = [(there.mean, back.mean), (there.low, back.high), (there.high, back.low)];
        for (there, back) in pairs {
            assert!((there * back - 1.0).abs() < 1e-9, "{there} there, {back} back");
        }
        let first = swap_some(rounds.clone(), |pass| pass == 0);
        // No life counts whose blocks are all left out.
        has_effect |= ratio(&first) != there;
        assert_eq!(swap_some(first, |pass| pass == 0), rounds);
    }
    assert!(has_effect, "swapping one pass never has an effect");
}

/// Returns the race as if only its twins had taken part.
fn twins(raced: &Raced) -> (Asked, Vec<Round>) {
    let (mut asked, mut rounds) = raced.stored();
    let is_twin = |name: &str| name == OLD || name == twin_name(OLD);
    asked.contenders.retain(|name| is_twin(name));
    asked.entries.retain(|entry| is_twin(&entry.name));
    rounds.retain(|round| is_twin(&round.contender));
    rounds.sort_by(|a, b| (a.round, &a.contender).cmp(&(b.round, &b.contender)));
    (asked, rounds)
}

/// Swaps the names of the twins in the passes for which `swaps` is true, which flips the sign of the
/// pass's log-ratio.
fn swap_some(mut rounds: Vec<Round>, mut swaps: impl FnMut(u32) -> bool) -> Vec<Round> {
    let mut passes: Vec<u32> = rounds.iter().map(|round| round.round).collect();
    passes.dedup();
    let swapped: HashSet<u32> = passes.into_iter().filter(|pass| swaps(*pass)).collect();
    for round in rounds.iter_mut().filter(|round| swapped.contains(&round.round)) {
        round.contender = if round.contender == OLD { twin_name(OLD) } else { OLD.into() };
    }
    rounds.sort_by(|a, b| (a.round, &a.contender).cmp(&(b.round, &b.contender)));
    rounds
}
