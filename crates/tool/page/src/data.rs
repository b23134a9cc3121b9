//! The data of the plots.

use crate::{
    percentile_curve::{PercentileCurve, percentile_curve, quantiles},
    strip::{Short, Strip, strip},
};
use regatta_record::{LoadShape, Outcome, Round, Summary};
use regatta_report::{regimes, table::visible};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// Significant digits of the figures of the summary. Reports print at most four; all seventeen of a 64-bit
/// number would make a page a tenth larger.
const DIGITS: usize = 9;

/// The data of a page.
#[derive(Debug, Serialize)]
pub struct Data<'a> {
    /// As in `summary.json`, but with [`DIGITS`].
    summary: Value,
    /// The contenders, first those of the race in their order.
    contenders: Vec<&'a str>,
    /// Their names as shown.
    names: Vec<String>,
    /// The loads as shown.
    loads: Vec<String>,
    /// The quantiles of the points of every curve of percentiles.
    quantiles: Vec<f64>,
    /// The curves, in the order of the cells.
    ladders: Vec<Option<Curve>>,
    rounds: Strip,
}

/// A [`PercentileCurve`] in short numbers.
#[derive(Debug, Serialize)]
struct Curve {
    ns: Vec<Short>,
    low: Vec<Short>,
    high: Vec<Short>,
}

impl From<PercentileCurve> for Curve {
    fn from(percentile_curve: PercentileCurve) -> Curve {
        let short = |values: Vec<u64>| values.into_iter().map(|ns| Short(ns as f64)).collect();
        Curve {
            ns: percentile_curve.ns.into_iter().map(Short).collect(),
            low: short(percentile_curve.low),
            high: short(percentile_curve.high),
        }
    }
}

/// The data of the plots as JSON: the summary, curves of percentiles, and all rounds.
pub fn data(summary: &Summary, rounds: &[Round]) -> String {
    let mut contenders: Vec<&str> = summary.asked.contenders.iter().map(String::as_str).collect();
    for cell in &summary.cells {
        if !contenders.contains(&cell.contender.as_str()) {
            contenders.push(&cell.contender);
        }
    }
    let quantiles = quantiles();
    let mut of_cell: HashMap<(&str, LoadShape), Vec<&Round>> = HashMap::new();
    for round in rounds.iter().filter(|round| round.outcome == Outcome::Finished) {
        of_cell.entry((&round.contender, round.load)).or_default().push(round);
    }
    let none = Vec::new();
    let ladders = in_parallel(&summary.cells, |cell| {
        let rounds = of_cell.get(&(cell.contender.as_str(), cell.load)).unwrap_or(&none);
        percentile_curve(&summary.asked, cell, rounds, &quantiles).map(Curve::from)
    });
    let mut stored = serde_json::to_value(summary).expect("a summary has string keys");
    shorten(&mut stored);
    let data = Data {
        summary: stored,
        names: contenders.iter().map(|name| visible(name)).collect(),
        loads: regimes::loads(&summary.asked),
        rounds: strip(summary, &contenders, rounds),
        contenders,
        quantiles,
        ladders,
    };
    serde_json::to_string(&data).expect("data has string keys")
}

/// Rounds all fractional numbers to [`DIGITS`].
fn shorten(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.*e}", DIGITS - 1, number.as_f64().unwrap_or_default());
            *value = text.parse::<f64>().map_or(Value::Null, Value::from);
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Maps over all CPUs: unpacking histograms takes nearly all of the time.
fn in_parallel<'a, T: Sync, R: Send>(items: &'a [T], map: impl Fn(&'a T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let map = &map;
        let parts: Vec<_> = items
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(map).collect::<Vec<R>>()))
            .collect();
        let joined = parts.into_iter().map(|part| part.join());
        joined
            .flat_map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
