//! The knee: the rate at which power, the rate over the 99th percentile of latency, is highest.

use super::place::CurvePoint;
use crate::{
    compared::comparison::Comparison,
    statistics::{Margins, Series, bands, log, mean, paired, present},
};
use regatta_record::{Figure, Kind, Knee};

/// Minimum number of rates with a latency among which a knee is sought.
const RATES: usize = 4;

/// The knee, or why there is none.
///
/// Power by pass is compared between all rates that were held, as costs are for their bands: paired
/// within passes, Holm's correction over all pairs, 95% in all. The knee may be at any rate that no
/// other rate beats significantly; the ends of the interval are the neighbours of these rates.
pub(super) fn knee(places: &[CurvePoint]) -> Result<Knee, String> {
    let no = |why: String| Err(format!("no knee: {why}"));
    let is_usable = |place: &&CurvePoint| {
        place.is_held() && !place.cell.shared_cpus && !place.cell.verdict.voids(Figure::Latency)
    };
    let held = places.iter().filter(is_usable).map(|place| (place.n, weakness(place)));
    let held: Vec<(u32, Series)> = held.filter(|(_, series)| present(series).len() >= 2).collect();
    if held.len() < RATES {
        return no(format!(
            "it needs {RATES} rates that were held and have a valid 99th percentile in 2 rounds; {} \
             qualify",
            held.len()
        ));
    }
    let mean_of = |i: usize| mean(&present(&held[i].1)).unwrap_or(f64::INFINITY);
    let best = (0..held.len())
        .min_by(|&a, &b| mean_of(a).total_cmp(&mean_of(b)))
        .expect("there are rates");
    let last = held.len() - 1;
    // If the generator was the limit, nothing is known about the server.
    let overloaded = |p: &&CurvePoint| {
        p.n > held[last].0 && !p.is_held() && !p.cell.verdict.is(Kind::GeneratorBound)
    };
    let not_held = places.iter().find(overloaded).map(|place| place.n);
    if best == 0 {
        return no(format!(
            "already above the lowest rate, {}/s, the 99th percentile grows faster than the rate",
            held[0].0
        ));
    }
    if best == last && not_held.is_none() {
        return no(format!(
            "up to the highest rate, {}/s, the 99th percentile grows more slowly than the rate: the \
             knee is beyond the sweep",
            held[last].0
        ));
    }
    let pair = |a: usize, b: usize| {
        let ratio = Comparison::paired(&paired(&held[b].1, &held[a].1))?;
        Some((ratio.ratio(), ratio.p()))
    };
    let bands = bands(held.len(), pair, Margins::NONE);
    let could_be = |i: &usize| bands[*i].best == 1;
    let first = (0..=best).find(could_be).unwrap_or(best);
    let until = (best..=last).rev().find(could_be).unwrap_or(best);
    let rate = |(rate, _): &(u32, Series)| f64::from(*rate);
    Ok(Knee {
        rate: rate(&held[best]),
        low: first.checked_sub(1).map(|i| rate(&held[i])),
        high: held.get(until + 1).map(rate).or(not_held.map(f64::from)),
    })
}

/// Logarithm of latency over rate, the reciprocal of power, by pass.
fn weakness(place: &CurvePoint) -> Series {
    const P99: usize = 3;
    let of_pass =
        |percentiles: Option<[Option<u64>; 5]>| log(percentiles?[P99]? as f64 / f64::from(place.n));
    place.observed.latency_by_pass().into_iter().map(of_pass).collect()
}
