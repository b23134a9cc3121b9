//! The gates of a build: `race --fail-over` of both builds, and `diff` of two results. That they
//! pass what is the same stands in `copies`.

use crate::{
    handicap::{BASE_NS, LOAD},
    raced::{Race, Raced, told},
    stage::{Turn, is_full, run, turn},
};
use std::{path::Path, process::Command, time::Duration};

const RACES: u64 = 10;

/// `regatta diff OLD NEW --fail-over 5%`: its exit status.
pub fn diff(old: &Path, new: &Path) -> i32 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.arg("diff").args([old, new]).args(["--fail-over", "5%"]);
    let ended = run(command, Duration::from_secs(60));
    assert_ne!(ended.code(), 2, "{}", ended.stderr);
    ended.code()
}

/// A race of two builds behind a gate, the new one dearer by `extra_ns`.
fn gate(turn: &Turn, load: &str, extra_ns: f64, rounds: u32, seed: u64) -> Raced {
    let [old, new] = [BASE_NS, BASE_NS + extra_ns].map(|ns| format!("--burn {ns:.0}ns"));
    let contenders = &[("old", old.as_str()), ("new", new.as_str())];
    let more = "--baseline old --fail-over 5%";
    Race { contenders, null: true, load, rounds, window_ms: 300, seed, more }.run_steady(turn)
}

#[test]
fn what_is_much_dearer_fails() {
    let Some(turn) = turn() else { return };
    let dearer = gate(&turn, "connections = 8", 100_000.0, 4, 1);
    assert_eq!(dearer.code, 1, "{}", dearer.stderr);
    let failed = dearer.summary.gate.as_ref().expect("a gate was asked for");
    assert!(failed.fails(), "{failed:?}");
    let cheaper = gate(&turn, "connections = 8", -50.0, 4, 2);
    assert_eq!(diff(&cheaper.dir, &dearer.dir), 1, "the new one of the second is much dearer");
    // Few rounds on a busy machine may leave a cell undecided, but nothing failed.
    assert!([0, 3].contains(&diff(&dearer.dir, &cheaper.dir)), "a cheaper build must not fail");
    assert!(
        [0, 3].contains(&diff(&dearer.dir, &dearer.dir)),
        "a result must not fail against itself"
    );
}

#[test]
fn a_tenth_more_fails() {
    let Some(turn) = turn().filter(|_| is_full()) else { return };
    let base = gate(&turn, LOAD, 0.0, 3, 1).cell("old").cost_ns_per_request.unwrap().mean;
    let extra = (base * 0.1).round();
    let fails = |n: &u64| {
        let raced = gate(&turn, LOAD, extra, 10, 10_000 + n);
        println!("{}: status {}", told(raced.cell("new")), raced.code);
        raced.code == 1
    };
    println!("\na gate of 5%, and a new build that is dearer by {extra} of {base:.0} ns");
    let failed = (0..RACES).filter(fails).count();
    println!("it fails {failed} of {RACES} times (8 at least)");
    assert!(failed >= 8, "{failed} of {RACES}");
}
