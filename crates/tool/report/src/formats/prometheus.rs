//! Prometheus' text exposition format 0.0.4, e.g. for the textfile collector of node_exporter
//! (<https://prometheus.io/docs/instrumenting/exposition_formats>). Figures are gauges in base units.

use crate::{
    formats::exported::{Exported, Measure, exported},
    table::visible,
};
use regatta_record::{Cell, Percentile, Summary};
use std::fmt::Write;

/// The metrics: name, unit, and what it is. The unit is at the end of a name, after `_low` and `_high` of an
/// interval.
const METRICS: [(&str, &str, &str); 7] = [
    ("cost", "_seconds", "Server CPU per operation (label per)"),
    ("cost_ratio", "", "Server CPU per operation over the baseline's of the same rounds"),
    ("rate", "_per_second", "Requests per second"),
    ("latency", "_seconds", "Latency percentiles"),
    ("memory", "_bytes", "Memory of the server with the connections open"),
    ("request_time", "_seconds", "Time of a counted load over its requests"),
    ("instance_time", "_seconds", "Wall time of an instance of a burst"),
];

/// Renders the figures of a race. Figures that are void or not known, and rates that are only lower bounds,
/// have no sample.
pub fn prometheus(summary: &Summary) -> String {
    let mut out = String::new();
    let of_cell = |cell| exported(cell).into_iter().map(move |figure| (cell, figure));
    let figures: Vec<(&Cell, Exported)> = summary.cells.iter().flat_map(of_cell).collect();
    for (metric, unit, help) in METRICS {
        let of_metric =
            || figures.iter().filter(move |(_, figure)| metric_of(figure.measure).0 == metric);
        let sample = |cell, figure: &Exported, value: f64| {
            let (_, per_unit) = metric_of(figure.measure);
            sample(&labels(summary, cell, Some(figure.measure)), value / per_unit)
        };
        let values = of_metric().map(|(cell, figure)| sample(cell, figure, figure.value));
        family(&mut out, &format!("regatta_{metric}{unit}"), help, values.collect());
        let ends: Vec<_> = of_metric().filter_map(|one| Some((one, one.1.interval?))).collect();
        let low = ends.iter().map(|((cell, figure), (low, _))| sample(cell, figure, *low));
        let name = format!("regatta_{metric}_low{unit}");
        family(&mut out, &name, &format!("{help}: lower end of the 95% interval"), low.collect());
        let high = ends.iter().map(|((cell, figure), (_, high))| sample(cell, figure, *high));
        let name = format!("regatta_{metric}_high{unit}");
        family(&mut out, &name, &format!("{help}: upper end of the 95% interval"), high.collect());
    }
    let rounds = summary.cells.iter();
    let rounds = rounds.map(|cell| sample(&labels(summary, cell, None), cell.rounds.into()));
    family(&mut out, "regatta_rounds", "Rounds behind the figures", rounds.collect());
    let race = [("race", summary.asked.name.clone())];
    let floor = summary.noise_floor.map(|floor| sample(&race, floor));
    let help = "How far from 1 the cost ratio of a contender to itself may be";
    family(&mut out, "regatta_noise_floor", help, floor.into_iter().collect());
    let started = sample(&race, summary.asked.setup.started_unix_s as f64);
    let help = "When the race started, in seconds since 1970";
    family(&mut out, "regatta_start_time_seconds", help, vec![started]);
    out
}

/// Appends a family of samples, which lack the name of the metric. Without samples, appends nothing.
fn family(out: &mut String, name: &str, help: &str, samples: Vec<String>) {
    if samples.is_empty() {
        return;
    }
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge").expect("a string takes all");
    for sample in samples {
        writeln!(out, "{name}{sample}").expect("a string takes all");
    }
}

/// The metric of a measure, and how many of the measure's units are one of the metric's.
fn metric_of(measure: Measure) -> (&'static str, f64) {
    match measure {
        Measure::Cost => ("cost", 1e9),
        Measure::Ratio => ("cost_ratio", 1.0),
        Measure::Rate => ("rate", 1.0),
        Measure::Latency(_) => ("latency", 1e9),
        Measure::Memory => ("memory", 1.0),
        Measure::MsPerRequest => ("request_time", 1e3),
        Measure::Instance => ("instance_time", 1.0),
    }
}

fn labels(summary: &Summary, cell: &Cell, of: Option<Measure>) -> Vec<(&'static str, String)> {
    let asked = &summary.asked;
    let mut labels = vec![
        ("race", asked.name.clone()),
        ("workload", cell.workload.clone()),
        ("load", cell.load.to_string()),
        ("contender", cell.contender.clone()),
    ];
    match of {
        Some(Measure::Cost) => labels.push(("per", asked.cost_per.one.to_string())),
        Some(Measure::Ratio) => labels.push(("baseline", asked.baseline.clone())),
        Some(Measure::Latency(percentile)) => {
            labels.push(("of", asked.latency_of.one.to_string()));
            labels.push(("quantile", quantile(percentile).to_owned()));
        }
        _ => {}
    }
    labels
}

fn quantile(percentile: Percentile) -> &'static str {
    match percentile {
        Percentile::P50 => "0.5",
        Percentile::P90 => "0.9",
        Percentile::P95 => "0.95",
        Percentile::P99 => "0.99",
        Percentile::P99_9 => "0.999",
    }
}

/// Labels and value of a sample.
fn sample(labels: &[(&str, String)], value: f64) -> String {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}} {value}", labels.join(","))
}

/// Escapes the value of a label. Control characters, and so line breaks, are made visible first.
fn escaped(value: &str) -> String {
    visible(value).replace('\\', "\\\\").replace('"', "\\\"")
}
