//! The figures of an open loop: its send lag at a rate that it reaches, and the report of a rate that is
//! impossible.

use crate::truth::stage::turn;
use regatta_record::Kind;

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_feasible_rate_is_reached_with_little_lag() {
    let Some(turn) = turn() else { return };
    let (rate, seconds) = (20_000, 5);
    let server = turn.server("");
    let how = format!("-c 64 -r {rate} --arrivals constant -d {seconds}s --warm-up 300ms");
    let result = turn.load(&server, &how).result;
    let lag = result.send_lag_ns.as_ref().expect("an open loop reports the lag").p99.unwrap();
    let verdict = &result.verdict;
    println!(
        "\n{rate}/s evenly on 64 connections: lag p99 {:.1} µs (below 50, or the verdict says why); \
         {}: {}",
        lag as f64 / 1e3,
        verdict.kind().name(),
        verdict.because()
    );
    assert_eq!(result.unsent, 0);
    assert_eq!(result.errors.total(), 0, "{:?}", result.errors);
    assert!(lag < 50_000 || verdict.kind() != Kind::AtAskedRate, "{lag} ns: {verdict:?}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_rate_that_is_not_reached_is_reported_with_status_1() {
    let Some(turn) = turn() else { return };
    let server = turn.server("");
    let seconds = 3;
    let closed = turn.load(&server, "-c 64 -d 500ms --warm-up 100ms").result.rate_per_s;
    // The short run may have been disturbed, so the rate is at least 400,000/s.
    let rate = (closed * 10.0).max(400_000.0) as u32;
    let loaded = turn.load(&server, &format!("-c 64 -r {rate} -d {seconds}s --warm-up 300ms"));
    let result = &loaded.result;
    println!(
        "\n{rate}/s asked for, many times what is possible: {:.0}/s, {} unsent, {} late; {}: {}",
        result.rate_per_s,
        result.unsent,
        result.late,
        result.verdict.kind().name(),
        result.verdict.because()
    );
    assert_eq!(loaded.code, 1);
    let open = result.open_loop.as_ref().expect("an open loop reports its requests");
    assert!(result.rate_per_s > 0.0 && result.rate_per_s < f64::from(rate) / 2.0);
    assert!(result.unsent > 0 && result.late > 0, "{open:?}");
    assert!(open.due > u64::from(rate) * seconds / 2, "all due requests count: {open:?}");
    assert_ne!(result.verdict.kind(), Kind::AtAskedRate);
}
