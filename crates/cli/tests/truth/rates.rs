//! What an open loop says of itself: how late it sends at a rate that it holds, and what became of a
//! rate that nobody can hold.

use crate::stage::{is_full, turn};
use regatta_record::Kind;

#[test]
fn a_rate_that_can_be_held_is_held_in_time() {
    let Some(turn) = turn() else { return };
    let (rate, seconds) = if is_full() { (20_000, 5) } else { (1_000, 2) };
    let server = turn.server("");
    let how = format!("-c 64 -r {rate} --arrivals constant -d {seconds}s --warm-up 300ms");
    let result = turn.load(&server, &how).result;
    let lag = result.send_lag_ns.as_ref().expect("an open loop tells the lag").p99.unwrap();
    let verdict = &result.verdict;
    println!(
        "\n{rate}/s evenly on 64 connections: lag p99 {:.1} µs (below 50, or the verdict says why); \
         {}: {}",
        lag as f64 / 1e3,
        verdict.kind.name(),
        verdict.because
    );
    assert_eq!(result.unsent, 0);
    assert_eq!(result.errors.total(), 0, "{:?}", result.errors);
    if is_full() {
        assert!(lag < 50_000 || verdict.kind != Kind::AtAskedRate, "{lag} ns: {verdict:?}");
    }
}

#[test]
fn a_rate_that_cannot_be_held_is_told_with_status_1() {
    let Some(turn) = turn() else { return };
    let server = turn.server("");
    let seconds = if is_full() { 3 } else { 1 };
    let closed = turn.load(&server, "-c 64 -d 500ms --warm-up 100ms").result.rate_per_s;
    // Its short look may have come while the machine did something else.
    let rate = (closed * 10.0).max(400_000.0) as u32;
    let loaded = turn.load(&server, &format!("-c 64 -r {rate} -d {seconds}s --warm-up 300ms"));
    let result = &loaded.result;
    println!(
        "\n{rate}/s asked for, many times what is possible: {:.0}/s, {} unsent, {} late; {}: {}",
        result.rate_per_s,
        result.unsent,
        result.late,
        result.verdict.kind.name(),
        result.verdict.because
    );
    assert_eq!(loaded.code, 1);
    let told = result.open_loop.as_ref().expect("an open loop tells what became of its requests");
    assert!(result.rate_per_s > 0.0 && result.rate_per_s < f64::from(rate) / 2.0);
    assert!(result.unsent > 0 && result.late > 0, "{told:?}");
    assert!(told.due > u64::from(rate) * seconds / 2, "what was due, sent or not: {told:?}");
    assert_ne!(result.verdict.kind, Kind::AtAskedRate);
}
