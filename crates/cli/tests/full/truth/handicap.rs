//! A handicap of a known number of nanoseconds of CPU per request: the intervals cover it, and the
//! referee finds it.
//!
//! The true ratio of a race is 1 + extra / the baseline's cost. A burn has the same length in each state of the
//! machine, and all else has not. So the ratio differs between states, and that of a state has the truth of that
//! state. Nothing else may differ:
//!
//! - The baseline burns too, so that both run the same instructions. The cost of reading the clock right
//!   after a system call, which the clock itself cannot see, then cancels out.
//! - Both servers are always busy and the load is not, because the baseline burns enough. Then each wait
//!   of either server finds nearly all connections ready. If the load were slower, a slower server would
//!   find more requests at each wait and answer each at a lower cost. At an equal rate that uses a share
//!   ρ of a CPU, a burn of x saves about the share ρ·x/cost of the waits. With one connection, each
//!   request pays for waking a CPU, which takes 10 to 20 µs.

use crate::truth::{
    raced::{Race, Raced, half_width, median, shown},
    stage::{Turn, turn},
};
use regatta_record::{Relation, Slice};

/// The baseline's burn, in nanoseconds.
pub const BASE_NS: f64 = 2_000.0;
/// The load of both.
pub const LOAD: &str = "connections = 64";
const RACES: u64 = 10;

/// Races the baseline and a server that burns `extra_ns` more.
fn race(turn: &Turn, extra_ns: f64, rounds: u32, seed: u64) -> Raced {
    let burn = |ns: f64| format!("--burn {ns:.0}ns");
    let (base, burdened) = (burn(BASE_NS), burn(BASE_NS + extra_ns));
    let contenders = [("base", base.as_str()), ("burdened", burdened.as_str())];
    let (load, more) = (LOAD, "");
    Race { contenders: &contenders, null: false, load, rounds, window_ms: 300, seed, more }
        .run(turn)
}

/// Returns the cost of the baseline in nanoseconds. The handicaps are shares of it.
fn cost_of_baseline(turn: &Turn) -> f64 {
    race(turn, 0.0, 3, 1).cell("base").cost_ns_per_request.unwrap().mean
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_coarse_handicap_is_found() {
    let Some(turn) = turn() else { return };
    // Several times the cost of the whole request: no machine can hide it.
    let raced = race(&turn, 100_000.0, 5, 5);
    let cell = raced.cell("burdened");
    assert_eq!(cell.relation, Some(Relation::Costlier), "{:?}", cell.ratio_to_baseline);
    let more = cell.cost_ns_per_request.unwrap().mean
        - raced.cell("base").cost_ns_per_request.unwrap().mean;
    assert!((90_000.0..200_000.0).contains(&more), "{more} ns more instead of 100000");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn handicaps_are_covered_and_found() {
    let Some(turn) = turn() else { return };
    let base = cost_of_baseline(&turn);
    println!("\n{BASE_NS} ns burnt, {LOAD}: {base:.0} ns per request");
    println!("asked    truth   ratio [95% interval]        covered  found");
    let (mut covered, mut found_10, mut widths) = (0, 0, Vec::new());
    for (percent, seed) in [(3.0, 300), (10.0, 1_000), (30.0, 3_000)] {
        let extra = (base * percent / 100.0).round();
        for race_no in 0..RACES {
            let raced = race(&turn, extra, 10, seed + race_no);
            let cell = raced.cell("burdened");
            let truth = 1.0 + extra / cost_of_base(&raced);
            let ratio = cell.ratio_to_baseline;
            let covers = ratio.is_some_and(|ratio| (ratio.low..=ratio.high).contains(&truth));
            let found = cell.relation == Some(Relation::Costlier);
            println!("{percent:+4.0}%  {truth:.4}   {}  {covers:7}  {found}", shown(cell));
            covered += u32::from(covers);
            found_10 += u32::from(found && percent == 10.0);
            widths.extend(ratio.as_ref().map(half_width));
        }
    }
    let width = median(widths);
    println!(
        "the interval covers the truth in {covered} of 30 (24 at least), +10% is found in \
         {found_10} of 10 (8 at least); median width ±{width:.2}%"
    );
    // 30 races at 95%: the probability of 23 or fewer is about 1 in 1,700.
    assert!(covered >= 24, "{covered} of 30");
    assert!(found_10 >= 8, "{found_10} of 10");
}

/// Returns the median cost of the baseline in nanoseconds, in the state of the machine that the ratio is of. The mean
/// would be that of disturbed slices, too, which the ratio leaves out.
fn cost_of_base(raced: &Raced) -> f64 {
    let (_, rounds) = raced.stored();
    let base = rounds.iter().filter(|round| round.contender == "base");
    let slices = base.filter_map(|round| round.life.as_ref()).flat_map(|life| &life.slices);
    let costs: Vec<f64> = slices.filter_map(Slice::cost_ns).collect();
    let of_state = raced.cell("burdened").ratio_is_of_state;
    let of_state = of_state.map(|state| (state as usize, raced.summary.duels[0].states.len()));
    let (state, states) = of_state.unwrap_or((0, 1));
    median(groups(costs, states).swap_remove(state))
}

/// Divides values into so many groups, in ascending order, so that each value is nearest to the mean of its group
/// (k-means, Lloyd's algorithm).
fn groups(mut values: Vec<f64>, count: usize) -> Vec<Vec<f64>> {
    values.sort_by(f64::total_cmp);
    let at = |i: usize| values[(2 * i + 1) * values.len() / (2 * count)];
    let mut centres: Vec<f64> = (0..count).map(at).collect();
    for _ in 0..100 {
        let nearest = |value: f64| {
            let far = |i: &usize| (centres[*i] - value).abs();
            (0..count).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap()
        };
        let mut groups = vec![Vec::new(); count];
        values.iter().for_each(|value| groups[nearest(*value)].push(*value));
        let mean = |group: &Vec<f64>| group.iter().sum::<f64>() / group.len().max(1) as f64;
        let means: Vec<f64> = groups.iter().map(mean).collect();
        if means == centres {
            return groups;
        }
        centres = means;
    }
    panic!("the groups of {values:?} do not become stable")
}

#[test]
fn values_are_divided_where_they_are_far_apart() {
    let values = vec![9.0, 1.0, 1.2, 8.8, 1.1, 5.0];
    assert_eq!(groups(values.clone(), 2), [vec![1.0, 1.1, 1.2], vec![5.0, 8.8, 9.0]]);
    assert_eq!(groups(values.clone(), 3), [vec![1.0, 1.1, 1.2], vec![5.0], vec![8.8, 9.0]]);
    assert_eq!(groups(values, 1).concat().len(), 6);
}
