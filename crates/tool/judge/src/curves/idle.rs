//! A contender over silent connections: how much each of them adds to the cost of a request.

use super::{
    place::{CurvePoint, POINTS, farthest, list},
    straight::{Fitted, fit},
};
use regatta_record::{Asked, Figure, IdleCost, IdlePoint, Over};

/// The curve, and doubts about it.
pub(super) fn over(asked: &Asked, places: &[CurvePoint]) -> (Over, Vec<String>) {
    let mut doubts = Vec::new();
    let trusted = |place: &CurvePoint| {
        place.cell.cost_ns_per_request.filter(|_| !place.cell.verdict.voids(Figure::Cost))
    };
    let point = |place: &CurvePoint| IdlePoint { idle: place.n, cost_ns: trusted(place) };
    let points = places.iter().map(point).collect();
    let usable: Vec<&CurvePoint> = places.iter().filter(|place| trusted(place).is_some()).collect();
    let cost = cost(asked, &usable, &mut doubts);
    (Over::Idle { points, cost }, doubts)
}

fn cost(asked: &Asked, places: &[&CurvePoint], doubts: &mut Vec<String>) -> Option<IdleCost> {
    if places.len() < POINTS {
        let at = list(places.iter().map(|place| place.n));
        let at = if at.is_empty() { "none".to_owned() } else { at };
        doubts.push(format!(
            "no line of cost: it needs a cost at {POINTS} or more numbers of silent connections; these \
             have one: {at}"
        ));
        return None;
    }
    let Fitted { start, slope, line, means } = fit(asked, places, doubts, |place, pass| {
        Some((f64::from(place.n), place.observed.cost[pass]?.exp()))
    })?;
    let measured = places.iter().map(|place| place.n).zip(means);
    if let Some((idle, by)) = farthest(measured, |idle| line.at(idle)) {
        doubts.push(format!(
            "cost over silent connections is not a straight line: at {idle} the measured cost \
             is {by} the line"
        ));
    }
    Some(IdleCost { alone_ns: start, each_ns: slope })
}
