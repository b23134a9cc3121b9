//! A contender over rates: its points, and CPU(rate) = standing + marginal × rate. The rate counts
//! requests, so the marginal cost is per request, even where other costs are per another operation.

use super::{
    knee,
    place::{CurvePoint, POINTS, farthest, list},
    straight::{Fitted, fit},
};
use crate::{
    cell::observed::CellRounds,
    statistics::{geometric, is_known, known, present},
};
use regatta_record::{Asked, Figure, Over, Percentile, RateCost, RatePoint};

/// The curve, and doubts about it.
pub(super) fn over(asked: &Asked, places: &[CurvePoint]) -> (Over, Vec<String>) {
    let mut doubts = Vec::new();
    let points = places.iter().map(|place| point(asked, place)).collect();
    let cost = cost(asked, places, &mut doubts);
    let knee = knee::knee(places).map_err(|why| doubts.push(why)).ok();
    (Over::Rate { points, cost, knee }, doubts)
}

fn point(asked: &Asked, place: &CurvePoint) -> RatePoint {
    let CurvePoint { n: rate, cell, observed } = *place;
    let latency = |percentile| {
        let shown = cell.percentile(percentile).filter(|_| !cell.verdict.voids(Figure::Latency));
        shown.map(|shown| shown.ns.round() as u64)
    };
    let cpu = observed
        .cost_of_request
        .iter()
        .zip(&observed.rate)
        .map(|(cost, rate)| Some((*cost)? + (*rate)?));
    let cpu = known(geometric(&present(&cpu.collect::<Vec<_>>()), asked.seed));
    RatePoint {
        rate,
        held: place.is_held(),
        p50_ns: latency(Percentile::P50),
        p99_ns: latency(Percentile::P99),
        cpu_ns_per_s: cpu.filter(|_| !cell.verdict.voids(Figure::Cost)),
    }
}

/// The line through the rates that were held.
fn cost(asked: &Asked, places: &[CurvePoint], doubts: &mut Vec<String>) -> Option<RateCost> {
    let is_usable =
        |place: &&CurvePoint| place.is_held() && !place.cell.verdict.voids(Figure::Cost);
    let held: Vec<&CurvePoint> = places.iter().filter(is_usable).collect();
    if held.len() < POINTS {
        let rates = list(held.iter().map(|place| place.n));
        let rates = if rates.is_empty() { "none".to_owned() } else { rates };
        doubts.push(format!(
            "no line of cost: it needs {POINTS} rates that were held; these were: {rates}"
        ));
        return None;
    }
    let Fitted { start, slope, line, means } = fit(asked, &held, doubts, |place, pass| {
        let CellRounds { cost_of_request: cost, rate, .. } = place.observed;
        let (cost, rate) = (cost[pass]?, rate[pass]?);
        Some((rate.exp(), (cost + rate).exp()))
    })?;
    if !is_known(&slope) {
        doubts.push(
            "no line of cost: the cost that a request adds is not known, because the rounds differ \
             too much"
                .to_owned(),
        );
        return None;
    }
    let measured = held.iter().map(|place| place.n).zip(means);
    if let Some((rate, by)) = farthest(measured, |rate| line.at(rate)) {
        doubts.push(format!(
            "CPU over the rate is not a straight line: at {rate}/s the measured CPU is {by} the line"
        ));
    }
    Some(RateCost { standing_ns_per_s: start, marginal_ns: slope })
}
