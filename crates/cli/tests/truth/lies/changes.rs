//! Costs that change while a contender runs: seen before its first round, and measured after that.

use super::{
    Findings, Told, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::stage::{is_full, turn};
use regatta_record::{Round, Settling, WarmUpClass, twin_name};

const HONEST: &str = "honest";

/// Requests that the flatterer is cheap for.
const FLATTERED: u64 = 10_000;

/// Seconds of the ramp, and after how many the other becomes more expensive. The short form has half the
/// time.
fn seconds() -> (f64, f64) {
    if is_full() { (4.0, 6.0) } else { (2.0, 3.0) }
}

#[test]
fn who_changes_while_it_runs_is_observed_until_it_does_not() {
    let Some(turn) = turn() else { return };
    let (ramp, tired) = seconds();
    let (ramps, becomes) = (format!("warms {ramp}"), format!("tires {tired}"));
    let flatters = format!("flatters {FLATTERED}");
    let contenders = [
        Contender::liar(HONEST, "honest"),
        Contender::liar("warms", &ramps),
        Contender::liar("tires", &becomes),
        Contender::liar("flatters", &flatters),
    ];
    let race = Race {
        workload: "double",
        contenders: &contenders,
        load: "connections = 2",
        rounds: [2, 3],
        settle: ["12s", "24s"],
    };
    assert_named(|| {
        let raced = race.run(&turn, folder().path());
        let mut findings = Findings::of_honest(&raced, &[HONEST, &twin_name(HONEST)]);
        findings.told = vec![warms(&raced), tires(&raced), flatters_first(&raced)];
        findings
    });
}

fn warms(raced: &Raced) -> Told {
    let is_right = |seen: &Settling| {
        seen.class == WarmUpClass::WarmsUp
            && (0.5..1.5).contains(&(seen.after_ns as f64 / 1e9 / seconds().0))
            && seen.cold_ns_per_request > 3.0 * seen.warm_ns_per_request
    };
    // Cold it costs up to ten times as much as the honest one.
    told(raced, "warms", "a JIT-like ramp", is_right, [0.8, 1.2])
}

fn tires(raced: &Raced) -> Told {
    let is_right = |seen: &Settling| {
        let after = seen.after_ns as f64 / 1e9 / seconds().1;
        seen.class == WarmUpClass::SlowsDown && (0.8..1.4).contains(&after)
    };
    told(raced, "tires", "more expensive after a while", is_right, [1.25, 1.7])
}

fn flatters_first(raced: &Raced) -> Told {
    let is_right = |seen: &Settling| seen.class == WarmUpClass::SlowsDown;
    let mut told =
        told(raced, "flatters", "cheap for the first 10,000 requests", is_right, [0.8, 1.2]);
    let least = raced.rounds_of("flatters").filter_map(|round| round.warm_up);
    let least = least.map(|done| done.requests).min().unwrap_or(0);
    told.is_named &= least >= FLATTERED;
    told.certain += &format!("; {least} requests or more before each window");
    told
}

/// A class, and a cost that is measured after the change: its ratio to the honest one lies within these.
fn told(
    raced: &Raced,
    liar: &'static str,
    lie: &'static str,
    is_right: impl Fn(&Settling) -> bool,
    [low, high]: [f64; 2],
) -> Told {
    let cell = raced.cell(liar);
    let is_warm = |round: &Round| round.warm_up.is_some_and(|done| done.ns >= done.needed_ns);
    let is_warm = raced.rounds_of(liar).all(is_warm);
    // A ratio that few rounds do not tell is none that is wrong.
    let ratio = cell.ratio_to_baseline;
    let is_measured = ratio.is_none_or(|ratio| ratio.high >= low && ratio.low <= high);
    let (verdict, certain) = match &cell.settling {
        Some(seen) => (
            seen.class.in_words().to_owned(),
            format!(
                "after {:.1} s and {} requests, from {:.1} to {:.1} µs; then {} the honest one",
                seen.after_ns as f64 / 1e9,
                seen.after_requests,
                seen.cold_ns_per_request / 1e3,
                seen.warm_ns_per_request / 1e3,
                raced.ratio(liar)
            ),
        ),
        None => (cell.verdict.because.clone(), String::new()),
    };
    Told {
        lie,
        verdict,
        certain,
        is_named: is_warm && is_measured && cell.settling.as_ref().is_some_and(is_right),
        is_above: raced.is_above(liar, &[HONEST]),
    }
}
