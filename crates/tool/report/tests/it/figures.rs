//! All formats show the same figure for the same thing, and mark figures that are not known.

use regatta_record::{Estimate, Kind, MachineFigures, Percentile, Relation, Summary, Unknown};
use regatta_report::{csv, markdown, terminal};

fn summary() -> Summary {
    serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary")
}

#[test]
fn the_cost_of_a_machine_has_the_unit_of_the_cost_beside_it_and_its_error() {
    let mut summary = summary();
    let figures = MachineFigures {
        cost_ns_per_request: None,
        interrupts_ns_per_request: 1_200.0,
        cpus_alone: 0.012,
        steps_ns_per_request: 430.0,
    };
    summary.cells.iter_mut().for_each(|cell| cell.machine = Some(figures));
    let text = terminal(&summary, 400, false);
    assert!(text.matches("µs/").count() >= 2 && !text.contains("ms/"), "{text}");
    // Of a contender whose work others do.
    let cost = Estimate { mean: 3e6, low: 2e6, high: 4e6 };
    let node = summary.cells.iter_mut().find(|c| c.contender == "node").unwrap();
    node.machine = Some(MachineFigures { cost_ns_per_request: Some(cost), ..figures });
    let text = terminal(&summary, 400, false);
    assert!(text.matches("µs/").count() >= 2 && !text.contains("ms/"), "{text}");
    let csv = csv(&summary);
    assert!(csv.lines().next().unwrap().ends_with(
        "machine_interrupts_ns_per_request,machine_steps_ns_per_request,machine_cpus_alone"
    ));
    let row = csv.lines().find(|line| line.contains("\"node\"")).unwrap();
    assert!(row.ends_with(",3000000,2000000,4000000,1200,430,0.012"), "{row}");
}

#[test]
fn every_form_marks_figures_that_are_not_known() {
    let mut summary = summary();
    let cell = summary.cells.iter_mut().find(|c| c.contender == "node").unwrap();
    assert_eq!(cell.verdict.kind(), Kind::ServerBound);
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
