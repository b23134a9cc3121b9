//! Curves over simulated sweeps with known truth: standing and marginal CPU, the knee of a queue,
//! and the three coefficients of the Universal Scalability Law.

use crate::simulated::{
    LOAD, Machine, QUIET, asked, rounds,
    sweep::{QUEUE, Queue, at, law, queue},
    truth,
};
use regatta_judge::judge;
use regatta_record::{
    Asked, Curve, Estimate, Knee, LoadShape, Over, RateCost, Round, Summary, Usl,
};

const RATES: [u32; 8] = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 75_000, 90_000];

/// A race of one contender at these rates.
fn at_rates(rates: &[u32], passes: u32, seed: u64) -> (Asked, Vec<Round>) {
    at_rates_of(QUEUE, rates, passes, seed)
}

fn at_rates_of(truth: Queue, rates: &[u32], passes: u32, seed: u64) -> (Asked, Vec<Round>) {
    let loads: Vec<LoadShape> = rates.iter().map(|rate| at(*rate)).collect();
    let (asked, mut rounds) = alone(&loads, passes, seed);
    queue(rounds.iter_mut(), truth, seed);
    (asked, rounds)
}

/// A race of one contender in closed loop at these connections.
fn at_connections(counts: &[u32], truth: [f64; 3], passes: u32, seed: u64) -> (Asked, Vec<Round>) {
    let loads: Vec<LoadShape> = counts.iter().map(|n| LoadShape::closed(*n, 1)).collect();
    let (asked, mut rounds) = alone(&loads, passes, seed);
    law(rounds.iter_mut(), truth, seed);
    (asked, rounds)
}

fn alone(loads: &[LoadShape], passes: u32, seed: u64) -> (Asked, Vec<Round>) {
    let machine = Machine { samples: 1, ..QUIET };
    let rounds = rounds(&[truth("epoll", 5_000.0)], loads, passes, machine, seed);
    (asked(&["epoll"], passes, loads), rounds)
}

fn only(summary: &Summary) -> &Curve {
    assert_eq!(summary.curves.len(), 1, "{:?}", summary.curves);
    &summary.curves[0]
}

fn of_rate(curve: &Curve) -> (Option<RateCost>, Option<Knee>) {
    match &curve.over {
        Over::Rate { cost, knee, .. } => (*cost, *knee),
        other => panic!("{other:?}"),
    }
}

fn of_connections(curve: &Curve) -> Option<Usl> {
    match &curve.over {
        Over::Connections { usl, .. } => *usl,
        other => panic!("{other:?}"),
    }
}

fn covers(e: Estimate, truth: f64) -> bool {
    e.low <= truth && truth <= e.high
}

/// Number of races, and the minimum number of intervals that contain the true value. Each does so
/// with 95%; fewer hits have a probability of one in a thousand.
const COVERED: (usize, usize) = (60, 51);

#[test]
fn the_line_of_cost_covers_the_true_values() {
    let (races, fewest) = COVERED;
    let (mut standing, mut marginal) = (0, 0);
    for seed in 0..races as u64 {
        // Few passes and many: Student's interval, and the bootstrap's.
        let (asked, rounds) = at_rates_of(
            Queue { samples: 1, ..QUEUE },
            &RATES[..6],
            if seed % 10 == 0 { 25 } else { 5 },
            seed,
        );
        let cost = of_rate(only(&judge(&asked, &rounds))).0.unwrap();
        standing += usize::from(covers(cost.standing_ns_per_s, QUEUE.standing_ns));
        marginal += usize::from(covers(cost.marginal_ns, QUEUE.marginal_ns));
        let width = cost.marginal_ns.high - cost.marginal_ns.low;
        assert!(width < 0.4 * QUEUE.marginal_ns, "the machine drifts by 5%: {cost:?}");
    }
    assert!(standing >= fewest && marginal >= fewest, "{standing} and {marginal} of {races}");
}

#[test]
fn rates_that_were_not_held_do_not_enter_the_line() {
    let (asked, rounds) = at_rates(&[20_000, 40_000, 60_000, 200_000], 5, 1);
    let summary = judge(&asked, &rounds);
    let curve = only(&summary);
    let Over::Rate { points, cost, .. } = &curve.over else { panic!("{curve:?}") };
    assert_eq!(points.iter().map(|p| p.held).collect::<Vec<_>>(), [true, true, true, false]);
    assert_eq!(
        points.iter().map(|p| p.rate).collect::<Vec<_>>(),
        [20_000, 40_000, 60_000, 200_000]
    );
    assert!(points.iter().all(|p| p.p99_ns > p.p50_ns && p.cpu_ns_per_s.is_some()));
    assert!(covers(cost.unwrap().marginal_ns, QUEUE.marginal_ns), "{cost:?}");

    let (asked, rounds) = at_rates(&[20_000, 40_000, 200_000], 5, 1);
    let summary = judge(&asked, &rounds);
    assert_eq!(of_rate(only(&summary)), (None, None));
    let doubt = only(&summary).doubt.as_deref().unwrap();
    assert!(doubt.contains("3 rates that were held; these were: 20000, 40000"), "{doubt}");
}

#[test]
fn reports_a_cost_that_is_not_a_straight_line() {
    let (asked, mut rounds) = at_rates(&RATES[..6], 5, 2);
    for r in rounds.iter_mut().filter(|r| r.load == at(60_000)) {
        r.server.as_mut().unwrap().cpu_ns /= 2;
    }
    let summary = judge(&asked, &rounds);
    let doubt = only(&summary).doubt.as_deref().unwrap();
    assert!(doubt.contains("not a straight line: at 50000/s the measured CPU is"), "{doubt}");
}

#[test]
fn one_round_has_no_interval_and_two_rates_have_no_curve() {
    let (asked, rounds) = at_rates(&RATES, 1, 3);
    let summary = judge(&asked, &rounds);
    assert_eq!(of_rate(only(&summary)), (None, None));
    assert!(only(&summary).doubt.as_deref().unwrap().contains("needs 2 rounds"));
    let (asked, rounds) = at_rates(&RATES[..2], 5, 3);
    assert_eq!(judge(&asked, &rounds).curves, []);
}

#[test]
fn the_knee_of_a_queue_lies_at_half_of_its_capacity() {
    for seed in 0..10 {
        let (asked, rounds) = at_rates(&RATES, 7, seed);
        let summary = judge(&asked, &rounds);
        let knee = of_rate(only(&summary)).1.unwrap();
        let (low, high) = (knee.low.unwrap(), knee.high.unwrap());
        assert!(low < QUEUE.capacity / 2.0 && QUEUE.capacity / 2.0 < high, "{seed}: {knee:?}");
        assert!(low < knee.rate && knee.rate < high && high <= 90_000.0, "{seed}: {knee:?}");
    }
}

#[test]
fn reports_a_knee_outside_the_sweep() {
    let knee_at = |rates: &[u32]| {
        let (asked, rounds) = at_rates(rates, 7, 4);
        let summary = judge(&asked, &rounds);
        let knee = of_rate(only(&summary)).1;
        (knee, only(&summary).doubt.clone().unwrap_or_default())
    };
    let (knee, doubt) = knee_at(&[5_000, 10_000, 15_000, 20_000]);
    assert!(knee.is_none() && doubt.contains("20000/s") && doubt.contains("beyond the sweep"));
    let (knee, doubt) = knee_at(&[70_000, 80_000, 90_000, 96_000]);
    assert!(knee.is_none() && doubt.contains("already above the lowest rate, 70000/s"), "{doubt}");
    let (knee, doubt) = knee_at(&[10_000, 20_000, 30_000]);
    assert!(knee.is_none() && doubt.contains("it needs 4 rates"), "{doubt}");
    // The next rate was not held: the knee lies below it.
    let (knee, doubt) = knee_at(&[5_000, 10_000, 15_000, 20_000, 200_000]);
    let knee = knee.unwrap();
    assert_eq!((knee.rate, knee.high, doubt.as_str()), (20_000.0, Some(200_000.0), ""));
}

const COUNTS: [u32; 6] = [1, 4, 16, 64, 256, 1_000];

#[test]
fn the_scalability_law_covers_the_true_values() {
    let (races, fewest) = COVERED;
    let truth: [f64; 3] = [9_000.0, 0.04, 2e-5];
    let peak = ((1.0 - truth[1]) / truth[2]).sqrt();
    let mut covered = [0; 4];
    for seed in 0..races as u64 {
        let (asked, rounds) =
            at_connections(&COUNTS, truth, if seed % 10 == 0 { 25 } else { 5 }, seed);
        let usl = of_connections(only(&judge(&asked, &rounds))).unwrap();
        let found = [usl.lambda, usl.sigma, usl.kappa, usl.peak.unwrap()];
        for ((count, e), truth) in
            covered.iter_mut().zip(found).zip([truth[0], truth[1], truth[2], peak])
        {
            *count += usize::from(covers(e, truth));
        }
        assert!(usl.r2 > 0.95, "{usl:?}");
        assert!(usl.kappa.high < 2.0 * truth[2], "{usl:?}");
    }
    assert!(covered.iter().all(|n| *n >= fewest), "{covered:?} of {races}");
}

#[test]
fn a_missing_loss_does_not_differ_from_zero() {
    let mut claimed = 0;
    for seed in 0..60 {
        let (asked, rounds) = at_connections(&COUNTS, [9_000.0, 0.04, 0.0], 5, seed);
        let summary = judge(&asked, &rounds);
        let usl = of_connections(only(&summary)).unwrap();
        claimed += usize::from(usl.kappa.low > 0.0);
        assert!(usl.peak.is_none() || usl.kappa.low > 0.0);
        assert!(usl.kappa.low >= 0.0 && usl.kappa.mean <= usl.kappa.high, "{usl:?}");
        assert!(usl.kappa.high > 0.0, "it is never certainly zero: {usl:?}");
    }
    // By chance 2.5% are above zero: at most 6 of 60, except with a probability of one in a
    // thousand.
    assert!(claimed <= 6, "{claimed}");
}

#[test]
fn reports_rates_that_are_bounds_or_void() {
    let (asked, mut rounds) = at_connections(&COUNTS, [9_000.0, 0.04, 2e-5], 5, 5);
    for r in &mut rounds {
        match r.load.connections {
            64 => r.load_cpu_ns = r.window_ns * 98 / 100,
            // The load was busy and the server was not.
            256 => {
                r.load_cpu_ns = r.window_ns * 98 / 100;
                r.server.as_mut().unwrap().cpu_ns = r.window_ns / 2;
            }
            _ => {}
        }
    }
    let summary = judge(&asked, &rounds);
    let curve = only(&summary);
    assert!(of_connections(curve).is_some());
    let doubt = curve.doubt.as_deref().unwrap();
    assert!(doubt.contains("the rates at 256 conn are void"), "{doubt}");
    assert!(doubt.contains("the rates are lower bounds: co-bound at 64 conn"), "{doubt}");
    let Over::Connections { points, .. } = &curve.over else { panic!("{curve:?}") };
    assert_eq!(points[4].rate_per_s, None);

    for r in rounds.iter_mut().filter(|r| r.load.connections >= 64) {
        r.load_cpu_ns = r.window_ns * 98 / 100;
        r.server.as_mut().unwrap().cpu_ns = r.window_ns / 2;
    }
    let summary = judge(&asked, &rounds);
    assert_eq!(of_connections(only(&summary)), None);
    assert!(only(&summary).doubt.as_deref().unwrap().contains("it needs rates at 4 numbers"));
}

#[test]
fn reports_rates_that_do_not_follow_the_law_and_needs_two_rounds_and_four_counts() {
    let (asked, mut rounds) = at_connections(&COUNTS, [9_000.0, 0.04, 2e-5], 5, 6);
    for r in &mut rounds {
        // Ever faster for each connection.
        r.requests = u64::from(r.load.connections).pow(3);
    }
    let summary = judge(&asked, &rounds);
    let doubt = only(&summary).doubt.as_deref().unwrap();
    assert!(doubt.contains("the rates do not follow the law: at 1 conn"), "{doubt}");
    let (asked, rounds) = at_connections(&COUNTS, [9_000.0, 0.04, 2e-5], 1, 6);
    assert!(of_connections(only(&judge(&asked, &rounds))).is_none(), "one round");
    let (asked, rounds) = at_connections(&COUNTS[..3], [9_000.0, 0.04, 2e-5], 5, 6);
    assert_eq!(judge(&asked, &rounds).curves, []);
}

#[test]
fn four_numbers_of_cores_have_a_law() {
    let (mut asked, mut rounds) = at_connections(&[1, 2, 3, 4], [20_000.0, 0.1, 0.0], 5, 7);
    asked.cpus.server = vec![0, 1, 2, 3];
    asked.cpus.load = vec![4];
    let on = |load: LoadShape| LoadShape { cores: Some(load.connections), ..LOAD };
    asked.loads.iter_mut().for_each(|load| *load = on(*load));
    for r in &mut rounds {
        r.load = on(r.load);
        let (cpus, server) = (r.load.cores.unwrap(), r.server.as_mut().unwrap());
        (server.cpus, server.threads) = (cpus, cpus);
        server.cpu_ns *= u64::from(cpus);
    }
    let summary = judge(&asked, &rounds);
    let Over::Cores { points, usl } = &only(&summary).over else { panic!("{summary:?}") };
    assert_eq!(points.iter().map(|p| p.cores).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let usl = usl.unwrap();
    assert!(covers(usl.sigma, 0.1) && usl.sigma.high < 0.3, "{usl:?}");
    asked.loads.pop();
    assert_eq!(judge(&asked, &rounds).curves, [], "three");
}

#[test]
fn references_and_races_without_sweeps() {
    let loads = [at(1_000), at(2_000), at(3_000)];
    let names = ["epoll", "epoll-twin", "null"];
    let field = names.map(|name| truth(name, 5_000.0));
    let all = rounds(&field, &loads, 3, QUIET, 8);
    let summary = judge(&asked(&names, 3, &loads), &all);
    let with_curves: Vec<&str> = summary.curves.iter().map(|c| c.contender.as_str()).collect();
    assert_eq!(with_curves, ["epoll", "null"], "the null server has a curve, the twin has none");
    let other =
        [at(1_000), LoadShape { pipeline: 2, ..at(2_000) }, LoadShape { idle: 1, ..at(3_000) }];
    let all = rounds(&field, &other, 3, QUIET, 8);
    assert_eq!(
        judge(&asked(&names, 3, &other), &all).curves,
        [],
        "they differ in more than the rate"
    );
}
