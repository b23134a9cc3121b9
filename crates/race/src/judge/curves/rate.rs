//! A contender over rates: its points, and CPU(rate) = standing + marginal × rate.

use super::{Place, RATES, by_pass, farthest, knee, list};
use crate::statistics::{Line, arithmetic, geometric, mean, present};
use regatta_record::{Asked, Figure, Over, RateCost, RatePoint};

/// The curve, and what must be said of it.
pub(super) fn over(asked: &Asked, places: &[Place]) -> (Over, Vec<String>) {
    let mut doubts = Vec::new();
    let points = places.iter().map(|place| point(asked, place)).collect();
    let cost = cost(asked, places, &mut doubts);
    let knee = knee::knee(places).map_err(|why| doubts.push(why)).ok();
    (Over::Rate { points, cost, knee }, doubts)
}

fn point(asked: &Asked, place: &Place) -> RatePoint {
    let Place { n: rate, cell, observed } = *place;
    let latency = |ns: Option<u64>| ns.filter(|_| !cell.verdict.voids(Figure::Latency));
    let cpu =
        observed.cost.iter().zip(&observed.rate).map(|(cost, rate)| Some((*cost)? + (*rate)?));
    let cpu = geometric(&present(&cpu.collect::<Vec<_>>()), asked.seed);
    RatePoint {
        rate,
        held: is_held(place),
        p50_ns: latency(cell.latency_ns.p50),
        p99_ns: latency(cell.latency_ns.p99),
        cpu_ns_per_s: cpu.filter(|_| !cell.verdict.voids(Figure::Cost)),
    }
}

/// Whether the server was given the rate and kept up with it.
pub(super) fn is_held(place: &Place) -> bool {
    place.observed.at_rate(place.n, &place.cell.load).is_held()
}

/// The line through the rates that were held. A line is laid through each pass, and the intervals
/// are over the passes' coefficients: the points of a pass share the machine's drift and are not
/// independent, the passes are. Weights are 1/CPU², CPU being the mean of all passes at that rate:
/// errors of CPU are in proportion to it, and weights that differed from pass to pass with the
/// errors would pull the line down.
fn cost(asked: &Asked, places: &[Place], doubts: &mut Vec<String>) -> Option<RateCost> {
    let is_usable = |place: &&Place| is_held(place) && !place.cell.verdict.voids(Figure::Cost);
    let held: Vec<&Place> = places.iter().filter(is_usable).collect();
    if held.len() < RATES {
        let rates = list(held.iter().map(|place| place.n));
        let rates = if rates.is_empty() { "none".to_owned() } else { rates };
        doubts.push(format!(
            "no line of cost: it takes {RATES} rates that were held, and these were: {rates}"
        ));
        return None;
    }
    let passes = by_pass(&held, |observed, pass| {
        let (cost, rate) = (observed.cost[pass]?, observed.rate[pass]?);
        Some((rate.exp(), (cost + rate).exp()))
    });
    let column = |i: usize| mean(&passes.iter().map(|pass| pass[i].1).collect::<Vec<_>>());
    let cpu: Vec<f64> = (0..held.len()).map_while(column).collect();
    let weights: Vec<f64> = cpu.iter().map(|cpu| 1.0 / (cpu * cpu)).collect();
    let lines: Option<Vec<Line>> = passes
        .iter()
        .map(|pass| {
            let (x, y): (Vec<f64>, Vec<f64>) = pass.iter().copied().unzip();
            Line::through(&x, &y, &weights)
        })
        .collect();
    let lines = lines?;
    let coefficients =
        |of: fn(&Line) -> f64| arithmetic(&lines.iter().map(of).collect::<Vec<_>>(), asked.seed);
    let Some((standing, marginal)) =
        coefficients(|line| line.start).zip(coefficients(|line| line.slope))
    else {
        doubts.push("no line of cost: it takes 2 rounds to tell how far to believe it".to_owned());
        return None;
    };
    let line = Line { start: standing.mean, slope: marginal.mean };
    let measured = held.iter().map(|place| place.n).zip(cpu);
    if let Some((rate, by)) = farthest(measured, |rate| line.at(rate)) {
        doubts.push(format!("CPU over the rate is no straight line: at {rate}/s it lies {by} it"));
    }
    Some(RateCost { standing_ns_per_s: standing, marginal_ns: marginal })
}
