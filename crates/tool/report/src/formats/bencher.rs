//! Bencher Metric Format: JSON that Bencher's adapter `json` reads. An object for each benchmark with an
//! object for each measure (<https://bencher.dev/docs/reference/bencher-metric-format>).

use crate::formats::{
    exported::{Measure, exported, name, per},
    json::pretty,
};
use regatta_record::{Percentile, Summary};
use serde::Serialize;
use std::collections::BTreeMap;

/// The longest name of a benchmark that Bencher accepts, in characters.
const LONGEST_NAME: usize = 1024;
/// The longest name of a measure that Bencher accepts, in characters.
const LONGEST_MEASURE: usize = 64;

#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Renders the figures of a race in Bencher Metric Format. A benchmark is a contender under a load. The bounds
/// are the ends of 95% intervals. Figures that are void or not known, and rates that are only lower bounds,
/// are left out; so is a benchmark without any figure.
pub fn bencher(summary: &Summary) -> String {
    let per = per(summary);
    let mut benchmarks: BTreeMap<String, BTreeMap<String, Metric>> = BTreeMap::new();
    for cell in &summary.cells {
        for figure in exported(cell) {
            let metric = Metric {
                value: figure.value,
                lower_value: figure.interval.map(|(low, _)| low),
                upper_value: figure.interval.map(|(_, high)| high),
            };
            let measures = benchmarks.entry(name(cell, LONGEST_NAME)).or_default();
            measures.insert(slug(figure.measure, &per), metric);
        }
    }
    pretty(&benchmarks)
}

/// The slug of a measure, with its unit. `throughput` is a measure that every project of Bencher has.
fn slug(measure: Measure, per: &str) -> String {
    let slug = match measure {
        Measure::Cost => return kebab(&format!("cpu-ns-per-{per}")),
        Measure::Ratio => "cost-ratio",
        Measure::Rate => "throughput",
        Measure::Latency(Percentile::P50) => "latency-p50-ns",
        Measure::Latency(Percentile::P90) => "latency-p90-ns",
        Measure::Latency(Percentile::P95) => "latency-p95-ns",
        Measure::Latency(Percentile::P99) => "latency-p99-ns",
        Measure::Latency(Percentile::P99_9) => "latency-p99-9-ns",
        Measure::Memory => "memory-bytes",
        Measure::MsPerRequest => "ms-per-request",
        Measure::Instance => "instance-s",
    };
    slug.to_owned()
}

/// Lower-case ASCII letters and digits, with hyphens in place of everything else.
fn kebab(text: &str) -> String {
    let lower = text.chars().map(|c| c.to_ascii_lowercase());
    let lower = lower.map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    lower.take(LONGEST_MEASURE).collect()
}
