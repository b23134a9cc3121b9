//! `race --precision`: it stops as soon as the intervals are narrow enough, and says what it would
//! take where they do not become so.

use crate::{
    raced::{Race, Raced, half_width, told},
    stage::{Turn, is_full, turn},
};

/// A race of two copies to a precision, with so many rounds at most.
fn race(turn: &Turn, precision: &str, rounds: u32, seed: u64) -> Raced {
    let contenders = &[("old", "--burn 100ns"), ("new", "--burn 100ns")];
    let more = format!("--precision {precision} --rounds {rounds}");
    let (load, window_ms) = ("connections = 64", if is_full() { 300 } else { 100 });
    Race { contenders, null: false, load, rounds, window_ms, seed, more: &more }.run_steady(turn)
}

#[test]
fn an_easy_pair_stops_early() {
    let Some(turn) = turn() else { return };
    // The short form: what any machine that is fit to run tests reaches.
    let (precision, most) = if is_full() { ("2%", 40) } else { ("100%", 12) };
    let raced = race(&turn, precision, most, 21);
    let reached = raced.summary.precision.as_ref().expect("a precision was asked for");
    let cell = raced.cell("new");
    println!("\n--precision {precision} after {} rounds of {most}: {}", reached.rounds, told(cell));
    assert!(reached.reached, "{reached:?}");
    if is_full() {
        let ratio = cell.ratio_to_baseline.unwrap();
        assert_eq!(raced.code, 0, "{}", raced.stderr);
        assert!(reached.rounds < most, "{reached:?}");
        assert!(half_width(&ratio) <= reached.asked * 100.0 * 1.05, "{ratio:?}");
    }
}

#[test]
fn a_hard_pair_is_told_what_it_would_take() {
    let Some(turn) = turn() else { return };
    let raced = race(&turn, "0.01%", 6, 22);
    let missed = raced.summary.precision.as_ref().expect("a precision was asked for");
    println!("\n--precision 0.01% after {} rounds: {}", missed.rounds, missed.missing.join("; "));
    assert!(!missed.reached && missed.rounds == 6, "{missed:?}");
    assert!(missed.missing.iter().any(|told| told.contains("rounds")), "{missed:?}");
    assert!(raced.cell("new").rounds_needed.is_some_and(|needed| needed > 6));
}
