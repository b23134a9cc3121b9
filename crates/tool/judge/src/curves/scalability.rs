//! A contender over connections or cores in closed loop: its rates, and the Universal Scalability
//! Law through them.

use super::place::{Axis, CurvePoint, POINTS_OF_LAW as POINTS, by_pass, farthest, list};
use crate::statistics::{Free, Law, arithmetic, geometric, is_known, known, mean};
use regatta_record::{Asked, ConnectionsPoint, CoresPoint, Estimate, Figure, Kind, Over, Usl};

/// The curve, and doubts about it.
pub(super) fn over(asked: &Asked, places: &[CurvePoint], axis: Axis) -> (Over, Vec<String>) {
    let trusted = |place: &CurvePoint| {
        place.cell.rate_per_s.filter(|_| !place.cell.verdict.voids(Figure::Rate))
    };
    let (usable, void): (Vec<&CurvePoint>, Vec<&CurvePoint>) =
        places.iter().partition(|place| trusted(place).is_some());
    let mut doubts = Vec::new();
    let at = |places: &[&CurvePoint]| list(places.iter().map(|p| p.n));
    if !void.is_empty() {
        let (at, unit) = (at(&void), axis.unit());
        doubts.push(format!("the rates at {at} {unit} are void and left out"));
    }
    let co_bound = |place: &&CurvePoint| place.cell.verdict.is(Kind::CoBound);
    let bounds: Vec<&CurvePoint> = usable.iter().copied().filter(co_bound).collect();
    if !bounds.is_empty() {
        doubts.push(format!(
            "the rates are lower bounds: co-bound at {} {}; the law describes server and load \
             together",
            at(&bounds),
            axis.unit()
        ));
    }
    let usl = law(asked, &usable, axis, &mut doubts).map_err(|why| doubts.push(why)).ok();
    let points = places.iter().map(|place| (place.n, trusted(place)));
    let over = match axis {
        Axis::Cores => Over::Cores {
            points: points.map(|(cores, rate_per_s)| CoresPoint { cores, rate_per_s }).collect(),
            usl,
        },
        _ => {
            let point = |(connections, rate_per_s)| ConnectionsPoint { connections, rate_per_s };
            Over::Connections { points: points.map(point).collect(), usl }
        }
    };
    (over, doubts)
}

/// The law, or why there is none.
///
/// It is fitted to each pass, and the intervals are over the passes' coefficients, as with the line
/// of cost. If the mean rates of all passes put a loss below 0, it is held at 0 in every pass; its
/// upper end is then half the width of its interval when it is free. Single passes may put a free
/// loss below 0: if each were held at 0 separately, noise alone would look like a loss.
fn law(
    asked: &Asked,
    places: &[&CurvePoint],
    axis: Axis,
    doubts: &mut Vec<String>,
) -> Result<Usl, String> {
    let no = |why: &str| Err(format!("no law of scalability: {why}"));
    if places.len() < POINTS {
        return no(&format!("it needs rates at {POINTS} numbers of {}", axis.unit()));
    }
    let counts: Vec<f64> = places.iter().map(|place| f64::from(place.n)).collect();
    let passes = by_pass(places, |place, pass| Some(place.observed.rate[pass]?.exp()));
    if passes.len() < 2 {
        return no("an interval needs 2 rounds");
    }
    let on = |rates: &[f64]| counts.iter().copied().zip(rates.iter().copied()).collect::<Vec<_>>();
    let column = |i: usize| mean(&passes.iter().map(|pass| pass[i].ln()).collect::<Vec<_>>());
    let rates: Vec<f64> = (0..counts.len()).map_while(column).map(f64::exp).collect();
    let together = on(&rates);
    let fits = |free| -> Option<Vec<Law>> {
        passes.iter().map(|pass| Law::fit(&on(pass), free)).collect()
    };
    let found = Free::within_bounds(&together).and_then(|free| Some((free, fits(free)?)));
    let Some((free, laws)) = found else {
        return no("the rates grow faster than linearly");
    };
    let wide = fits(Free::BOTH);
    let over_passes = |laws: &[Law], of: fn(&Law) -> f64| {
        arithmetic(&laws.iter().map(of).collect::<Vec<_>>(), asked.seed)
    };
    let loss = |free: bool, of: fn(&Law) -> f64| -> Option<Estimate> {
        let e = over_passes(if free { &laws } else { wide.as_ref()? }, of)?;
        let half = (e.high - e.low) / 2.0;
        let held = Estimate { mean: 0.0, low: 0.0, high: half };
        let above_0 = Estimate { mean: e.mean.max(0.0), low: e.low.max(0.0), high: e.high };
        Some(if free { above_0 } else { held })
    };
    let logs: Vec<f64> = laws.iter().map(|law| law.lambda.ln()).collect();
    let all = geometric(&logs, asked.seed)
        .zip(loss(free.sigma, |law| law.sigma))
        .zip(loss(free.kappa, |law| law.kappa));
    let Some(((lambda, sigma), kappa)) = all else {
        return no("the rates of single rounds do not follow the law");
    };
    if !is_known(&lambda) {
        return no("λ, the rate at N = 1, is not known, because the rounds differ too much");
    }
    let peaks: Option<Vec<f64>> = laws.iter().map(|law| Some(law.peak()?.ln())).collect();
    let peak = peaks.filter(|_| kappa.low > 0.0).and_then(|logs| geometric(&logs, asked.seed));
    let peak = known(peak);
    let law = Law { lambda: lambda.mean, sigma: sigma.mean, kappa: kappa.mean };
    let measured = places.iter().map(|place| place.n).zip(rates);
    if let Some((n, by)) = farthest(measured, |n| law.at(n)) {
        let unit = axis.unit();
        doubts.push(format!(
            "the rates do not follow the law: at {n} {unit} the measured rate is {by} the curve"
        ));
    }
    Ok(Usl { lambda, sigma, kappa, peak, r2: law.r2(&together) })
}
