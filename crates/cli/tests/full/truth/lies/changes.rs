//! Costs that change while a contender runs: the change is observed before its first round, and the cost
//! after the change is measured. Both changes are by the clock, which goes on while a contender of a duel is
//! frozen: there they come after less of its own time, and it is already warmer when it is first observed.

use super::{
    Finding, Findings, assert_named,
    race::{Contender, Race, Raced, folder},
};
use crate::truth::stage::turn;
use regatta_record::{Round, Settling, WarmUpClass, twin_name};

const HONEST: &str = "honest";

/// Number of requests for which the flatterer is cheap.
const FLATTERED: u64 = 10_000;

/// Length of the ramp in seconds.
const RAMP: f64 = 4.0;

/// Time after which the other liar becomes more expensive, in seconds.
const TIRED: f64 = 6.0;

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_contender_whose_cost_changes_is_observed_until_it_is_steady() {
    let Some(turn) = turn() else { return };
    let (ramps, becomes) = (format!("warms {RAMP}"), format!("tires {TIRED}"));
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
        rounds: 3,
        settle: "24s",
    };
    for (schedule, least) in [("rounds", IN_ROUNDS), ("duels", IN_DUELS)] {
        assert_named(|| {
            let raced = race.run_in(schedule, &turn, folder().path());
            let mut findings = Findings::of_honest(&raced, &[HONEST, &twin_name(HONEST)]);
            findings.liars =
                vec![warms(&raced, &least), tires(&raced, &least), flatters_first(&raced)];
            findings
        });
    }
}

/// What must at least be seen of a change.
struct Least {
    /// Own time until the end of the ramp, as a share of its length.
    warm_after: f64,
    /// Cost of the cold one over that of the warm one.
    colder: f64,
    /// Own time until the other liar is more expensive, as a share of the true time.
    tired_after: f64,
}

const IN_ROUNDS: Least = Least { warm_after: 0.5, colder: 3.0, tired_after: 0.8 };
const IN_DUELS: Least = Least { warm_after: 0.05, colder: 1.5, tired_after: 0.05 };

fn warms(raced: &Raced, least: &Least) -> Finding {
    let is_right = |seen: &Settling| {
        seen.class == WarmUpClass::WarmsUp
            && (least.warm_after..1.5).contains(&(seen.after_ns as f64 / 1e9 / RAMP))
            && seen.cold_ns_per_request > least.colder * seen.warm_ns_per_request
    };
    // A cold one costs up to ten times as much as the honest one.
    judge(raced, "warms", "a JIT-like ramp", is_right, [0.8, 1.2])
}

fn tires(raced: &Raced, least: &Least) -> Finding {
    let is_right = |seen: &Settling| {
        let after = seen.after_ns as f64 / 1e9 / TIRED;
        seen.class == WarmUpClass::SlowsDown && (least.tired_after..1.4).contains(&after)
    };
    judge(raced, "tires", "more expensive after a while", is_right, [1.25, 1.7])
}

fn flatters_first(raced: &Raced) -> Finding {
    let is_right = |seen: &Settling| seen.class == WarmUpClass::SlowsDown;
    let mut finding =
        judge(raced, "flatters", "cheap for the first 10,000 requests", is_right, [0.8, 1.2]);
    let least = raced.rounds_of("flatters").filter_map(|round| round.warm_up);
    let least = least.map(|done| done.requests).min().unwrap_or(0);
    finding.is_named &= least >= FLATTERED;
    finding.evidence += &format!("; at least {least} requests before each window");
    finding
}

/// Judges a liar by its class, and by its cost after the change: the interval of the ratio to the honest
/// one must overlap `low` to `high`.
fn judge(
    raced: &Raced,
    liar: &'static str,
    lie: &'static str,
    is_right: impl Fn(&Settling) -> bool,
    [low, high]: [f64; 2],
) -> Finding {
    let cell = raced.cell(liar);
    let is_warm = |round: &Round| round.warm_up.is_some_and(|done| done.ns >= done.needed_ns);
    let is_warm = raced.rounds_of(liar).all(is_warm);
    // A few rounds may not yield a ratio, which is not wrong.
    let ratio = cell.ratio_to_baseline;
    let is_measured = ratio.is_none_or(|ratio| ratio.high >= low && ratio.low <= high);
    let (verdict, evidence) = match &cell.settling {
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
        None => (cell.verdict.because().clone(), String::new()),
    };
    Finding {
        lie,
        verdict,
        evidence,
        is_named: is_warm && is_measured && cell.settling.as_ref().is_some_and(is_right),
        is_above: raced.is_above(liar, &[HONEST]),
    }
}
