//! Coordinates of the plots of a sweep, for the template. The plots are small, so that their texts stay
//! legible in a narrow window.

use crate::{chart::round_step, curves::groups, numbers, table::visible};
use regatta_record::{Curve, Estimate, IdlePoint, NULL, Over, RateCost, RatePoint, Summary, Usl};
use serde::Serialize;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
/// The frame, in units of the plot.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 404.0;
const TOP: f64 = 14.0;
const BASE: f64 = 222.0;
/// Half of a mark's width.
const MARK: f64 = 4.0;
/// Number of colours in the template; further contenders repeat them with dashed lines.
const COLOURS: usize = 8;

/// The plots of a sweep.
#[derive(Debug, Serialize)]
pub struct Plots {
    legend: Vec<Key>,
    /// Whether any mark is hollow.
    hollow: bool,
    plots: Vec<Plot>,
}

#[derive(Debug, Serialize)]
struct Key {
    name: String,
    class: String,
    mark: String,
}

#[derive(Debug, Serialize)]
struct Plot {
    title: String,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    base: f64,
    x_label: String,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    series: Vec<Series>,
}

#[derive(Debug, Serialize)]
struct Tick {
    at: f64,
    label: String,
}

#[derive(Debug, Serialize)]
struct Series {
    class: String,
    /// The points of its line.
    line: String,
    marks: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Mark {
    shape: String,
    /// Full name and figures, for the tooltip.
    title: String,
    hollow: bool,
}

/// The plots of every sweep, in the order of the record.
pub fn plots(summary: &Summary) -> Vec<Plots> {
    let per = visible(&summary.asked.cost_per.one);
    groups(summary).iter().map(|curves| of_sweep(curves, &per)).collect()
}

/// `per`: the operation that costs are per.
fn of_sweep(curves: &[&Curve], per: &str) -> Plots {
    let legend = curves.iter().enumerate().map(|(nth, curve)| Key {
        name: visible(&curve.contender),
        class: class(nth, curve),
        mark: shape(nth, 8.0, 8.0),
    });
    let plots: Vec<Plot> = match curves[0].over {
        Over::Rate { .. } => [
            latency(curves, "99th percentile of latency", |p| p.p99_ns),
            latency(curves, "median latency", |p| p.p50_ns),
            cpu(curves),
        ]
        .into_iter()
        .flatten()
        .collect(),
        Over::Idle { .. } => idle(curves, per).into_iter().collect(),
        Over::Connections { .. } | Over::Cores { .. } => rate(curves).into_iter().collect(),
    };
    let hollow = plots.iter().flat_map(|p| &p.series).flat_map(|s| &s.marks).any(|m| m.hollow);
    Plots { legend: legend.collect(), hollow, plots }
}

/// The marks and the line of a contender.
#[derive(Default)]
struct Drawn {
    /// x, y, text of the tooltip, hollow.
    marks: Vec<(f64, f64, String, bool)>,
    line: Vec<(f64, f64)>,
}

fn latency(curves: &[&Curve], title: &str, of: fn(&RatePoint) -> Option<u64>) -> Option<Plot> {
    let drawn: Vec<Drawn> = curves
        .iter()
        .map(|curve| {
            let points = rate_points(curve).iter();
            let points = points.filter_map(|p| Some((p, of(p).filter(|ns| *ns > 0)? as f64)));
            let marks = points.map(|(p, ns)| (f64::from(p.rate), ns, numbers::time(ns), !p.held));
            let marks: Vec<_> = marks.collect();
            Drawn { line: marks.iter().map(|(x, y, ..)| (*x, *y)).collect(), marks }
        })
        .collect();
    let label = |ns: f64| numbers::time(ns).replace(".00", "").replace(".0", "");
    let y = Axis::of_factors(ys(&drawn), label)?;
    Some(plot(title.to_owned(), rates_axis(&drawn)?, y, curves, &drawn))
}

fn cpu(curves: &[&Curve]) -> Option<Plot> {
    const MS: f64 = 1e6;
    let drawn: Vec<Drawn> = curves
        .iter()
        .map(|curve| {
            let points = rate_points(curve);
            let seen = points.iter().filter_map(|p| Some((p, p.cpu_ns_per_s?)));
            let marks = seen.map(|(p, e)| {
                let text = format!("{} ms/s", numbers::estimate(&e, MS));
                (f64::from(p.rate), e.mean / MS, text, !p.held)
            });
            let held = || points.iter().filter(|p| p.held).map(|p| f64::from(p.rate));
            let line = |cost: &RateCost| {
                let ends = held().min_by(f64::total_cmp).zip(held().max_by(f64::total_cmp));
                let at = |rate: f64| {
                    let ns = cost.standing_ns_per_s.mean + cost.marginal_ns.mean * rate;
                    (rate, ns.max(0.0) / MS)
                };
                // The line starts at rate zero, where it shows the standing cost.
                ends.map(|(_, last)| vec![at(0.0), at(last)]).unwrap_or_default()
            };
            let Over::Rate { cost, .. } = &curve.over else { return Drawn::default() };
            Drawn { marks: marks.collect(), line: cost.as_ref().map(line).unwrap_or_default() }
        })
        .collect();
    let y = Axis::from_zero(ys(&drawn), 1.0)?;
    let title = "server CPU, ms per second, with fitted lines".to_owned();
    Some(plot(title, rates_axis(&drawn)?, y, curves, &drawn))
}

/// Cost over silent connections; both axes are logarithmic.
fn idle(curves: &[&Curve], per: &str) -> Option<Plot> {
    const US: f64 = 1e3;
    let draw = |curve: &&Curve| {
        let Over::Idle { points, .. } = &curve.over else { return Drawn::default() };
        let seen = points.iter().filter(|p| p.idle > 0).filter_map(|p| Some((p, p.cost_ns?)));
        let mark = |(p, e): (&IdlePoint, Estimate)| {
            let text = format!("{} µs", numbers::estimate(&e, US));
            (f64::from(p.idle), e.mean / US, text, false)
        };
        let marks: Vec<_> = seen.map(mark).collect();
        Drawn { line: marks.iter().map(|(x, y, ..)| (*x, *y)).collect(), marks }
    };
    let drawn: Vec<Drawn> = curves.iter().map(draw).collect();
    let x = Axis::of_factors(xs(&drawn), numbers::short)?;
    let y = Axis::of_factors(ys(&drawn), numbers::short)?;
    let title = format!("server CPU, µs per {per}");
    Some(plot(title, Axis { label: "silent connections".to_owned(), ..x }, y, curves, &drawn))
}

/// Rate over connections or cores, with the universal scalability law.
fn rate(curves: &[&Curve]) -> Option<Plot> {
    let points = |curve: &Curve| -> (Vec<(f64, Estimate)>, Option<Usl>) {
        let there = |n: u32, e: Option<Estimate>| Some((f64::from(n), e?));
        match &curve.over {
            Over::Connections { points, usl } => {
                (points.iter().filter_map(|p| there(p.connections, p.rate_per_s)).collect(), *usl)
            }
            Over::Cores { points, usl } => {
                (points.iter().filter_map(|p| there(p.cores, p.rate_per_s)).collect(), *usl)
            }
            Over::Rate { .. } | Over::Idle { .. } => (Vec::new(), None),
        }
    };
    let all: Vec<_> = curves.iter().map(|curve| points(curve)).collect();
    let rates = all.iter().flat_map(|(points, _)| points.iter().map(|(_, e)| e.mean));
    let unit = numbers::rate_unit(rates.fold(None, larger).into_iter());
    let draw = |(points, usl): &(Vec<(f64, Estimate)>, Option<Usl>)| {
        let mark = |(n, e): &(f64, Estimate)| {
            let text = format!("{} {}", numbers::estimate(e, unit.size), unit.name);
            (*n, e.mean / unit.size, text, false)
        };
        let ends = points.first().zip(points.last()).zip(usl.as_ref());
        let line = ends.map(|(((first, _), (last, _)), usl)| law(usl, *first, *last, unit.size));
        Drawn { marks: points.iter().map(mark).collect(), line: line.unwrap_or_default() }
    };
    let drawn: Vec<Drawn> = all.iter().map(draw).collect();
    let y = Axis::from_zero(ys(&drawn), 1.0)?;
    let (x, over) = match curves[0].over {
        Over::Cores { .. } => (Axis::from_zero(xs(&drawn), 1.0)?, "cores"),
        _ => (Axis::of_factors(xs(&drawn), numbers::short)?, "connections"),
    };
    let title = format!("requests answered, {}, with the universal scalability law", unit.name);
    Some(plot(title, Axis { label: over.to_owned(), ..x }, y, curves, &drawn))
}

/// The points of the law's curve between two numbers.
fn law(usl: &Usl, first: f64, last: f64, size: f64) -> Vec<(f64, f64)> {
    const STEPS: u32 = 48;
    let [lambda, sigma, kappa] = [usl.lambda, usl.sigma, usl.kappa].map(|e| e.mean);
    let at = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
    (0..=STEPS)
        .map(|i| first * (last / first).powf(f64::from(i) / f64::from(STEPS)))
        .map(|n| (n, at(n) / size))
        .collect()
}

fn rate_points(curve: &Curve) -> &[RatePoint] {
    match &curve.over {
        Over::Rate { points, .. } => points,
        _ => &[],
    }
}

fn xs(drawn: &[Drawn]) -> impl Iterator<Item = f64> + Clone {
    drawn.iter().flat_map(|d| d.marks.iter().map(|(x, ..)| *x))
}

fn ys(drawn: &[Drawn]) -> impl Iterator<Item = f64> + Clone {
    let lines = drawn.iter().flat_map(|d| d.line.iter().map(|(_, y)| *y));
    drawn.iter().flat_map(|d| d.marks.iter().map(|(_, y, ..)| *y)).chain(lines)
}

fn rates_axis(drawn: &[Drawn]) -> Option<Axis> {
    let unit = numbers::rate_unit(xs(drawn).fold(None, larger).into_iter());
    let axis = Axis::from_zero(xs(drawn), unit.size)?;
    Some(Axis { label: format!("requested rate, {}", unit.name), ..axis })
}

fn larger(a: Option<f64>, b: f64) -> Option<f64> {
    Some(a.map_or(b, |a| a.max(b)))
}

/// An axis with its ticks. Both ends have a tick, unless only powers of ten are shown.
struct Axis {
    label: String,
    /// Maps a value to a fraction of the length of the axis.
    place: Box<dyn Fn(f64) -> f64>,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis from zero in equal steps, labelled in `unit`. `None` without a value above zero.
    fn from_zero(values: impl Iterator<Item = f64>, unit: f64) -> Option<Axis> {
        let most = values.fold(0.0, f64::max);
        if most <= 0.0 || !most.is_finite() {
            return None;
        }
        let step = round_step(most / unit / 5.0) * unit;
        let steps = (most / step).ceil() as u32;
        let to = f64::from(steps) * step;
        let ticks = (0..=steps).map(|i| f64::from(i) * step);
        let ticks = ticks.map(|v| (v, numbers::short(v / unit))).collect();
        Some(Axis { label: String::new(), place: Box::new(move |v| v / to), ticks })
    }

    /// A logarithmic axis, whose ends are 1, 2 or 5 times a power of ten.
    fn of_factors(
        values: impl Iterator<Item = f64> + Clone,
        label: impl Fn(f64) -> String,
    ) -> Option<Axis> {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        if !least.is_finite() || least <= 0.0 {
            return None;
        }
        let round = |power: i32| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power));
        let all: Vec<f64> = (-3..13).flat_map(round).collect();
        let first = all.iter().rposition(|v| *v <= least)?;
        let last = all.iter().position(|v| *v >= most)?.max(first + 1);
        let inside = all.get(first..=last)?;
        let (from, to) = (inside[0].log10(), inside[inside.len() - 1].log10());
        // If there are many, show only the powers of ten.
        let is_shown = |v: &&f64| inside.len() <= 8 || v.log10().fract().abs() < 1e-9;
        let ticks = inside.iter().filter(is_shown).map(|v| (*v, label(*v))).collect();
        let place = Box::new(move |v: f64| (v.log10() - from) / (to - from));
        Some(Axis { label: String::new(), place, ticks })
    }
}

fn plot(title: String, x: Axis, y: Axis, curves: &[&Curve], drawn: &[Drawn]) -> Plot {
    let place = |from: f64, to: f64, fraction: f64| {
        ((from + fraction.clamp(0.0, 1.0) * (to - from)) * 10.0).round() / 10.0
    };
    let (across, up) =
        (|v: f64| place(LEFT, RIGHT, (x.place)(v)), |v: f64| place(BASE, TOP, (y.place)(v)));
    let series = curves.iter().zip(drawn).enumerate().map(|(nth, (curve, drawn))| {
        let corner = |(x, y): &(f64, f64)| format!("{},{}", across(*x), up(*y));
        let name = visible(&curve.contender);
        let mark = |(x, y, text, hollow): &(f64, f64, String, bool)| Mark {
            shape: shape(nth, across(*x), up(*y)),
            title: format!(
                "{name}, {}: {text}{}",
                numbers::short(*x),
                if *hollow { ", the rate was not held" } else { "" }
            ),
            hollow: *hollow,
        };
        Series {
            class: class(nth, curve),
            line: drawn.line.iter().map(corner).collect::<Vec<_>>().join(" "),
            marks: drawn.marks.iter().map(mark).collect(),
        }
    });
    Plot {
        series: series.collect(),
        x_ticks: x.ticks.iter().map(|(v, l)| Tick { at: across(*v), label: l.clone() }).collect(),
        y_ticks: y.ticks.iter().map(|(v, l)| Tick { at: up(*v), label: l.clone() }).collect(),
        x_label: x.label.clone(),
        title,
        width: WIDTH,
        height: HEIGHT,
        left: LEFT,
        right: RIGHT,
        top: TOP,
        base: BASE,
    }
}

/// The CSS class of a curve. The null server is the floor, and is grey.
fn class(nth: usize, curve: &Curve) -> String {
    match curve.contender.as_str() {
        NULL => "null".to_owned(),
        _ if nth < COLOURS => format!("c{nth}"),
        _ => format!("c{} again", nth % COLOURS),
    }
}

/// The SVG path of a mark. There are four shapes, for readers who cannot distinguish the colours.
fn shape(nth: usize, x: f64, y: f64) -> String {
    let m = MARK;
    match nth % 4 {
        0 => format!("M{},{y}a{m},{m} 0 1 0 {},0a{m},{m} 0 1 0 -{},0z", x - m, 2.0 * m, 2.0 * m),
        1 => format!("M{},{}h{2}v{2}h-{2}z", x - m, y - m, 2.0 * m),
        2 => format!("M{x},{}l{m},{1}h-{1}z", y - m, 2.0 * m),
        _ => format!("M{x},{}l{m},{m}l-{m},{m}l-{m},-{m}z", y - m),
    }
}
