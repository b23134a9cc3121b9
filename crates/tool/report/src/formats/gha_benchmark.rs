//! JSON for github-action-benchmark with `tool: customSmallerIsBetter`: a list of benchmarks with one figure
//! each (<https://github.com/benchmark-action/github-action-benchmark>).

use crate::formats::{
    exported::{Exported, exported, name, per},
    json::pretty,
};
use regatta_record::{Cell, Summary};
use serde::Serialize;

/// The longest name of a cell, in characters. The action has no limit.
const LONGEST_NAME: usize = 1024;

#[derive(Serialize)]
struct Benchmark {
    name: String,
    unit: String,
    value: f64,
    /// Half of the interval, as `± 1.5`: the action parses this form.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    /// Lines of text in the tooltips of its charts.
    extra: String,
}

/// Renders the figures of a race that are better when they are smaller; a rate is not. Figures that are void
/// or not known are left out.
pub fn gha_benchmark(summary: &Summary) -> String {
    let per = per(summary);
    let of_cell = |cell| exported(cell).into_iter().map(move |figure| (cell, figure));
    let all = summary.cells.iter().flat_map(of_cell);
    let smaller = all.filter(|(_, figure)| figure.measure.smaller_is_better());
    let benchmarks: Vec<Benchmark> =
        smaller.map(|(cell, figure)| benchmark(cell, &figure, &per)).collect();
    pretty(&benchmarks)
}

fn benchmark(cell: &Cell, figure: &Exported, per: &str) -> Benchmark {
    let unit = figure.measure.unit(per);
    let Exported { measure, value, interval } = *figure;
    let mut extra = format!("{} rounds, {}", cell.rounds, cell.verdict.kind().name());
    if let Some((low, high)) = interval {
        extra += &format!("\n95% interval: {} to {} {unit}", digits(low), digits(high));
    }
    Benchmark {
        name: plain(&format!("{} · {}", name(cell, LONGEST_NAME), measure.name())),
        value,
        // An interval of a ratio is wider above its mean than below.
        range: interval.map(|(low, high)| format!("± {}", digits((high - value).max(value - low)))),
        unit,
        extra,
    }
}

/// Four significant digits, without an exponent.
fn digits(figure: f64) -> String {
    let whole = figure.abs().max(f64::MIN_POSITIVE).log10().floor() as i32 + 1;
    format!("{figure:.*}", (4 - whole).clamp(0, 12) as usize)
}

/// The action writes names between backticks into a table of Markdown, so neither may be in a name.
fn plain(name: &str) -> String {
    name.replace('`', "'").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn figures_have_four_digits_and_no_exponent() {
        for (figure, text) in [
            (123_456.0, "123456"),
            (5432.1, "5432"),
            (1.04567, "1.046"),
            (0.0123456, "0.01235"),
            (0.0, "0.000000000000"),
        ] {
            assert_eq!(digits(figure), text);
        }
    }
}
