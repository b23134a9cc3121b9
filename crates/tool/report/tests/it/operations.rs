//! Tests of all report formats for operations other than requests, and for costs per such an operation.

use crate::common::{column, row, table, titles, words};
use regatta_record::{Cell, Estimate, Figure, Latency, Operation, OperationFigures, Summary};
use regatta_report::{csv, json, markdown, terminal};

fn fixture() -> Summary {
    serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary")
}

/// The baseline under the first load.
fn cell(summary: &mut Summary) -> &mut Cell {
    let (load, name) = (summary.asked.loads[0], summary.asked.baseline.clone());
    let is_it = |cell: &&mut Cell| cell.load == load && cell.contender == name;
    summary.cells.iter_mut().find(is_it).expect("a cell")
}

/// A summary with costs per delivery, and with deliveries of the baseline under the first load.
fn summary() -> Summary {
    let mut summary = fixture();
    let deliveries = Operation {
        name: "deliveries".into(),
        one: "delivery\u{1b}".into(),
        several: "<deliveries>".into(),
    };
    summary.asked.cost_per = deliveries.clone();
    cell(&mut summary).operations = vec![OperationFigures {
        operation: deliveries,
        count: 1_234_567,
        rate_per_s: Some(Estimate { mean: 61_728.0, low: 60_000.0, high: 63_000.0 }),
        latency_ns: Latency {
            p50: Some(2_000_000),
            p95: Some(5_000_000),
            p99: None,
            ..Latency::default()
        },
        latency_intervals: Default::default(),
        not_known: Vec::new(),
    }];
    summary
}

#[test]
fn each_kind_has_a_row_with_its_number_rate_and_latency() {
    let mut summary = summary();
    let (load, name) = (summary.asked.loads[0], summary.asked.baseline.clone());
    let title = format!("operations beside requests · {} · {load}", summary.asked.workload);
    let text = terminal(&summary, 200, false);
    let table = table(&text, &title);
    assert_eq!(titles(&table), "contender operations number rate p50 p95 p99 / k/s ms ms ns");
    assert_eq!(
        words(row(&table, &name)),
        format!("{name} <deliveries> 1,234,567 61.7 [60.0–63.0] 2.00 5.00 –")
    );
    assert_eq!(table.len(), 4, "no other contender has deliveries");
    assert!(markdown(&summary).contains(&format!("### {title}")));
    let mut read: Summary = serde_json::from_str(&json(&summary)).expect("what was written");
    assert_eq!(cell(&mut read).operations, cell(&mut summary).operations);

    cell(&mut summary).verdict.void = vec![Figure::Rate, Figure::Latency];
    let text = terminal(&summary, 200, false);
    assert!(text.contains("(61.7 [60.0–63.0])") && text.contains("(5.00)"), "{text}");
}

#[test]
fn names_the_operation_that_costs_are_per_everywhere() {
    let summary = summary();
    let text = terminal(&summary, 250, false);
    for title in ["µs/delivery\\u{1b}", "/delivery\\u{1b}"] {
        assert!(text.contains(title), "{title}:\n{text}");
    }
    for other in ["µs/req", "/req ", "per request"] {
        assert!(!text.contains(other), "{other}");
    }
    assert!(column(&csv(&summary), "cost_per").iter().all(|per| per == "deliveries"));
}

#[test]
fn without_other_operations_costs_are_per_request_and_there_is_no_table() {
    let summary = fixture();
    assert!(summary.asked.cost_per.is_request(), "the default for old results");
    let text = terminal(&summary, 250, false);
    assert!(text.contains("µs/req") && text.contains("/req "), "{text}");
    assert!(column(&csv(&summary), "cost_per").iter().all(|per| per == "requests"));
    let stored = json(&summary);
    for text in [text, markdown(&summary), stored.clone()] {
        assert!(!text.contains("operations"), "{text}");
    }
    assert!(!stored.contains("cost_per"), "as it was stored");
}
