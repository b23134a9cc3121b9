//! All formats show the same figure for the same thing, and mark figures that are not known.

use regatta_record::{Estimate, Kind, Percentile, Relation, Summary, Unknown};
use regatta_report::{csv, html, markdown, terminal};

fn summary() -> Summary {
    serde_json::from_str(include_str!("summary.json")).expect("the fixture is a summary")
}

/// The tooltips of the page's charts; each has a contender and its figures.
fn tooltips(page: &str) -> Vec<&str> {
    let titles = page.split("<title>").skip(2);
    titles.filter_map(|rest| Some(rest.split_once("</title>")?.0)).collect()
}

#[test]
fn chart_and_table_show_the_same_percentile() {
    let mut summary = summary();
    let load = summary.asked.loads[0];
    // Make the percentile over rounds differ from that of all rounds pooled.
    for cell in summary.cells.iter_mut().filter(|cell| cell.load == load) {
        cell.latency_intervals.p99 = cell.latency_ns.p99.map(|pooled| {
            let mean = pooled as f64 * 0.91;
            Estimate { mean, low: mean * 0.9, high: mean * 1.1 }
        });
    }
    let (page, text) = (html(&summary), terminal(&summary, 400, false));
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("contender")).collect();
    let units = table.get(1).expect("units").split_whitespace().collect::<Vec<_>>();
    let times: Vec<&&str> = units.iter().filter(|unit| ["µs", "ms"].contains(unit)).collect();
    let unit_ns = if **times[1] == *"ms" { 1e6 } else { 1e3 };
    let mut compared = 0;
    for cell in summary.cells.iter().filter(|cell| cell.load == load) {
        let Some(p99) = cell.percentile(Percentile::P99).filter(|p99| p99.interval.is_some())
        else {
            continue;
        };
        assert_ne!(Some(p99.ns as u64), cell.latency_ns.p99, "the two percentiles differ");
        let start = format!("{}: p50 ", cell.contender);
        let tooltips = tooltips(&page);
        let tooltip = tooltips.iter().find(|t| t.starts_with(&start)).expect(&start);
        let (_, shown) = tooltip.split_once("p99 ").expect("it has a p99");
        // The unit of the table is in its titles.
        let shown = shown.split(['(', ',', '[']).next().unwrap().trim();
        let (number, unit) = shown.split_once(' ').expect("a number with its unit");
        let ns: f64 = number.parse().expect("a number");
        let ns = ns * if unit == "ms" { 1e6 } else { 1e3 };
        let row = table.iter().find(|line| line.starts_with(&format!("{} ", cell.contender)));
        let row = row.unwrap_or_else(|| panic!("no row of {} in {text}", cell.contender));
        let figures = row.split_whitespace().filter_map(|word| {
            word.trim_matches(['(', ')']).parse::<f64>().ok().map(|figure| figure * unit_ns)
        });
        let is_same = |figure: f64| (figure / ns - 1.0).abs() < 0.006;
        assert!(figures.clone().any(is_same), "{shown:?} of the chart is not in {row:?}");
        compared += 1;
    }
    assert!(compared >= 8, "{compared} compared");
}

#[test]
fn every_form_marks_figures_that_are_not_known() {
    let mut summary = summary();
    let cell = summary.cells.iter_mut().find(|c| c.contender == "node").unwrap();
    assert_eq!(cell.verdict.kind, Kind::ServerBound);
    (cell.cost_ns_per_request, cell.ratio_to_baseline, cell.rate_per_s) = (None, None, None);
    (cell.latency_intervals.p50, cell.latency_intervals.p99) = (None, None);
    cell.relation = Some(Relation::Inconclusive);
    let percentiles = [Percentile::P50, Percentile::P99].map(Unknown::Latency);
    cell.not_known = [Unknown::Cost, Unknown::Ratio, Unknown::Rate].to_vec();
    cell.not_known.extend(percentiles);
    let pooled = cell.latency_ns.clone();
    summary.noise_floor = None;

    let text = terminal(&summary, 400, false);
    let row = text.lines().find(|line| line.starts_with("node ")).unwrap();
    assert_eq!(row.matches("not known").count(), 5, "{row}");
    assert!(row.contains("unclear"), "{row}");
    assert!(text.contains("noise floor not known"), "{text}");
    let markdown = markdown(&summary);
    let row = markdown.lines().find(|line| line.starts_with("| node |")).unwrap();
    assert_eq!(row.matches("| not known |").count() + row.matches("| not known | not").count(), 5);
    assert!(html(&summary).matches("not known").count() >= 6);
    let tooltip = html(&summary);
    let tooltip = tooltips(&tooltip).into_iter().find(|t| t.starts_with("node: p"));
    assert!(tooltip.unwrap().starts_with("node: p90 "), "{tooltip:?}");

    let csv = csv(&summary);
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row: Vec<&str> = lines.find(|line| line.contains("\"node\"")).unwrap().split(',').collect();
    for name in ["cost_ns_per_request", "cost_high", "ratio_low", "rate_per_s", "p50_ns", "p99_low"]
    {
        let at = columns.iter().position(|column| *column == name).unwrap();
        assert_eq!(row[at], "", "{name}");
    }
    let at = columns.iter().position(|column| *column == "p90_ns").unwrap();
    assert_eq!(row[at], pooled.p90.unwrap().to_string());
}
