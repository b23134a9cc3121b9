//! `race --precision` stops as soon as the intervals are narrow enough, and otherwise reports how many
//! rounds they would need.

use crate::truth::{
    raced::{Race, Raced, half_width, shown},
    stage::{Turn, turn},
};

/// Races two copies to a precision, with a maximum number of rounds.
fn race(turn: &Turn, precision: &str, rounds: u32, seed: u64) -> Raced {
    let contenders = &[("old", "--burn 100ns"), ("new", "--burn 100ns")];
    let more = format!("--precision {precision} --rounds {rounds}");
    let (load, window_ms) = ("connections = 64", 300);
    Race { contenders, null: false, load, rounds, window_ms, seed, more: &more }.run(turn)
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn an_easy_pair_stops_early() {
    let Some(turn) = turn() else { return };
    let (precision, most) = ("2%", 40);
    let raced = race(&turn, precision, most, 21);
    let reached = raced.summary.precision.as_ref().expect("a precision was requested");
    let cell = raced.cell("new");
    println!(
        "\n--precision {precision} after {} rounds of {most}: {}",
        reached.rounds,
        shown(cell)
    );
    assert!(reached.reached, "{reached:?}");
    let ratio = cell.ratio_to_baseline.unwrap();
    assert_eq!(raced.code, 0, "{}", raced.stderr);
    assert!(reached.rounds < most, "{reached:?}");
    assert!(half_width(&ratio) <= reached.asked * 100.0 * 1.05, "{ratio:?}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_precision_that_is_not_reached_reports_the_needed_rounds() {
    let Some(turn) = turn() else { return };
    let raced = race(&turn, "0.01%", 6, 22);
    let missed = raced.summary.precision.as_ref().expect("a precision was requested");
    println!("\n--precision 0.01% after {} rounds: {}", missed.rounds, missed.missing.join("; "));
    assert!(!missed.reached && missed.rounds == 6, "{missed:?}");
    // How many lives would reach it, or that they take too long.
    assert!(missed.missing.iter().any(|one| one.contains("after 6 lives; ±0.01% ")), "{missed:?}");
}
