//! The gates for a build: `race --fail-over` with both builds, and `diff` of two results. The tests in
//! `copies` check that they pass equal builds.

use crate::support::regatta;
use crate::truth::{
    handicap::{BASE_NS, LOAD},
    raced::{Race, Raced, shown},
    stage::{Turn, turn},
};
use regatta_testkit::child::run_within;
use std::{path::Path, time::Duration};

const RACES: u64 = 10;

/// Runs `regatta diff OLD NEW --fail-over 5%`. Returns its exit status.
pub fn diff(old: &Path, new: &Path) -> i32 {
    let ended = run_within(
        Duration::from_secs(60),
        regatta!("diff").args([old, new]).args(["--fail-over", "5%"]),
    );
    assert_ne!(ended.code(), 2, "{}", ended.stderr);
    ended.code()
}

/// Races two builds with a gate. The new one costs `extra_ns` more per request.
fn gate(turn: &Turn, load: &str, extra_ns: f64, rounds: u32, seed: u64) -> Raced {
    let [old, new] = [BASE_NS, BASE_NS + extra_ns].map(|ns| format!("--burn {ns:.0}ns"));
    let contenders = &[("old", old.as_str()), ("new", new.as_str())];
    let more = "--baseline old --fail-over 5%";
    Race { contenders, null: true, load, rounds, window_ms: 300, seed, more }.run(turn)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_build_that_costs_much_more_fails() {
    let Some(turn) = turn() else { return };
    let costly = gate(&turn, "connections = 8", 100_000.0, 4, 1);
    assert_eq!(costly.code, 1, "{}", costly.stderr);
    let failed = costly.summary.gate.as_ref().expect("a gate was requested");
    assert!(failed.fails(), "{failed:?}");
    let cheaper = gate(&turn, "connections = 8", -50.0, 4, 2);
    assert_eq!(diff(&cheaper.dir, &costly.dir), 1, "a much more expensive build must fail");
    // Few rounds on a busy machine may leave a cell undecided, but none may fail.
    assert!([0, 3].contains(&diff(&costly.dir, &cheaper.dir)), "a cheaper build must not fail");
    assert!(
        [0, 3].contains(&diff(&costly.dir, &costly.dir)),
        "a result must not fail against itself"
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_build_that_costs_a_tenth_more_fails() {
    let Some(turn) = turn() else { return };
    let base = gate(&turn, LOAD, 0.0, 3, 1).cell("old").cost_ns_per_request.unwrap().mean;
    let extra = (base * 0.1).round();
    let fails = |n: &u64| {
        let raced = gate(&turn, LOAD, extra, 10, 10_000 + n);
        println!("{}: status {}", shown(raced.cell("new")), raced.code);
        raced.code == 1
    };
    println!("\na gate of 5%, and a new build that costs {extra} ns more than {base:.0} ns");
    let failed = (0..RACES).filter(fails).count();
    println!("it fails {failed} of {RACES} times (8 at least)");
    assert!(failed >= 8, "{failed} of {RACES}");
}
