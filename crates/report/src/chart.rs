//! Coordinates of the two charts of a load, for the template.

use crate::{numbers, table::visible};
use regatta_record::{Cell, Figure, Kind, LoadShape, NULL, Percentile, ShownPercentile, Summary};
use serde::Serialize;

/// Left edge, right edge, height of a row and of the axis, in units of the chart.
const LEFT: f64 = 150.0;
const RIGHT: f64 = 640.0;
const ROW: f64 = 22.0;
const AXIS: f64 = 34.0;
/// Maximum length of a name beside a chart; the full name is in its tooltip.
const NAME: usize = 20;

/// A chart with a row for each contender.
#[derive(Debug, Serialize)]
pub struct Chart {
    width: f64,
    height: f64,
    /// Position of the axis.
    base: f64,
    left: f64,
    right: f64,
    axis: String,
    ticks: Vec<Tick>,
    /// Position of the null server's line, if there is one.
    floor: Option<f64>,
    rows: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Tick {
    x: f64,
    label: String,
}

#[derive(Debug, Serialize)]
struct Mark {
    y: f64,
    name: String,
    /// Full name and figures, for the tooltip.
    title: String,
    void: bool,
    low: f64,
    high: f64,
    /// The mean of a cost, or the percentiles of a latency, starting with the median.
    dots: Vec<f64>,
}

/// Costs with their intervals, from zero, in the order of the record. The null server is a line.
pub fn cost(summary: &Summary, load: &LoadShape) -> Option<Chart> {
    if load.beside.is_some() {
        // The cost is that of both loads together, so it describes neither.
        return None;
    }
    let cells: Vec<_> =
        cells(summary, load).filter_map(|c| Some((c, c.cost_ns_per_request?))).collect();
    let most = cells.iter().map(|(_, e)| e.high).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let unit = numbers::cost_unit(cells.iter().map(|(_, e)| e.mean));
    let per = visible(&summary.asked.cost_per.one);
    let x = |ns: f64| place(ns / (most * 1.02));
    let step = round_step(most / unit.size / 6.0) * unit.size;
    let decimals = (-(step / unit.size).log10().floor()).max(0.0) as usize;
    let ticks = (0..)
        .map(|i| f64::from(i) * step)
        .take_while(|v| *v <= most * 1.02)
        .map(|v| Tick { x: x(v), label: format!("{:.decimals$}", v / unit.size) });
    let floor = cells.iter().find(|(c, _)| c.contender == NULL).map(|(_, e)| x(e.mean));
    let shown = cells.iter().filter(|(c, _)| c.contender != NULL);
    let marks = shown.map(|(c, e)| {
        let figure = format!("{} {} per {per}", numbers::estimate(e, unit.size), unit.name);
        mark(c, Figure::Cost, figure, [e.low, e.high].map(x), vec![x(e.mean)])
    });
    Some(chart(
        format!("server CPU, {} per {per}", unit.name),
        ticks.collect(),
        floor,
        marks.collect(),
    ))
}

/// Latency from the median to the highest known percentile, on a logarithmic scale. The figures are
/// those of the table: see [`Cell::percentile`].
pub fn latency(summary: &Summary, load: &LoadShape) -> Option<Chart> {
    let cells: Vec<(&Cell, Vec<(Percentile, ShownPercentile)>)> =
        cells(summary, load).map(|c| (c, percentiles(c))).filter(|(_, p)| !p.is_empty()).collect();
    let all = || cells.iter().flat_map(|(_, p)| p.iter().map(|(_, shown)| shown.ns));
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if !least.is_finite() {
        return None;
    }
    let (from, to) = ((least / 1.1).log10(), (most * 1.1).log10());
    let x = |ns: f64| place((ns.log10() - from) / (to - from));
    let ticks = (0..12)
        .flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(exponent)))
        .filter(|v| (from..=to).contains(&v.log10()))
        .map(|v| Tick { x: x(v), label: numbers::time(v).replace(".00", "").replace(".0", "") });
    let marks = cells.iter().map(|(c, p)| {
        let text = |(percentile, shown): &(Percentile, ShownPercentile)| {
            format!("{} {}", percentile.name(), numbers::percentile(shown))
        };
        let figure: Vec<String> = p.iter().map(text).collect();
        let dots: Vec<f64> = p.iter().map(|(_, shown)| x(shown.ns)).collect();
        let ends = [dots[0], dots[dots.len() - 1]];
        mark(c, Figure::Latency, figure.join(", "), ends, dots)
    });
    let of = match &summary.asked.latency_of {
        operation if operation.is_request() => String::new(),
        operation => format!(" of the {}", visible(&operation.one)),
    };
    let axis =
        format!("latency{of}: p50, p90, p99, p99.9, geometric means over rounds as in the table");
    Some(chart(axis, ticks.collect(), None, marks.collect()))
}

fn percentiles(cell: &Cell) -> Vec<(Percentile, ShownPercentile)> {
    [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::P99_9]
        .into_iter()
        .filter_map(|p| Some((p, cell.percentile(p).filter(|shown| shown.ns > 0.0)?)))
        .collect()
}

fn cells<'a>(summary: &'a Summary, load: &'a LoadShape) -> impl Iterator<Item = &'a Cell> {
    summary.cells.iter().filter(move |c| c.load == *load && c.verdict.kind != Kind::Skipped)
}

/// The x coordinate at a fraction of the width.
fn place(fraction: f64) -> f64 {
    (LEFT + fraction.clamp(0.0, 1.0) * (RIGHT - LEFT)).round_ties_even()
}

/// Rounds up to 1, 2 or 5 times a power of ten.
pub fn round_step(at_least: f64) -> f64 {
    let power = 10f64.powf(at_least.log10().floor());
    [1.0, 2.0, 5.0].map(|d| d * power).into_iter().find(|s| *s >= at_least).unwrap_or(10.0 * power)
}

fn mark(cell: &Cell, figure: Figure, text: String, ends: [f64; 2], dots: Vec<f64>) -> Mark {
    let name = visible(&cell.contender);
    let void = cell.verdict.voids(figure);
    let remark =
        if void { format!(" (void: {})", cell.verdict.kind.name()) } else { String::new() };
    let short: String = if name.chars().count() > NAME {
        name.chars().take(NAME - 1).chain(['…']).collect()
    } else {
        name.clone()
    };
    let [low, high] = ends;
    Mark { y: 0.0, name: short, title: format!("{name}: {text}{remark}"), void, low, high, dots }
}

fn chart(axis: String, ticks: Vec<Tick>, floor: Option<f64>, mut rows: Vec<Mark>) -> Chart {
    for (i, row) in rows.iter_mut().enumerate() {
        row.y = ROW * (i as f64 + 0.5) + 14.0;
    }
    let base = ROW * rows.len() as f64 + 18.0;
    let (width, height) = (RIGHT + 20.0, base + AXIS);
    Chart { width, height, base, left: LEFT, right: RIGHT, axis, ticks, floor, rows }
}
