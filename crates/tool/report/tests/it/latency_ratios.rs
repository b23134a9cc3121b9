//! Tests of all report formats for latency ratios, on the summary of a simulated race in an open loop
//! (`open.json`).

use crate::common::{column, row, table, words};
use regatta_record::{Estimate, LatencyRatio, LoadShape, Operation, Summary};
use regatta_report::{csv, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

const LOAD: &str = "64 conn, 10000/s";

fn summary() -> Summary {
    serde_json::from_str(include_str!("../open.json")).expect("the fixture is a summary")
}

/// The summary without latency ratios.
fn without() -> Summary {
    let mut summary = summary();
    summary.cells.iter_mut().for_each(|cell| cell.latency_to_baseline = None);
    summary
}

fn e(mean: f64) -> Option<Estimate> {
    Some(Estimate { mean, low: mean * 0.95, high: mean * 1.05 })
}

#[test]
fn each_form_shows_ratios_and_reasons_for_missing_ones() {
    let s = summary();
    let title = format!("latency compared with epoll · double · {LOAD}");
    let text = terminal(&s, 100, false);
    let compared = table(&text, &title);
    assert_eq!(words(compared[1]), "contender p95 ratio p99 ratio");
    let twin = words(row(&compared, "epoll-twin"));
    assert!(twin.starts_with("epoll-twin 1.0") || twin.starts_with("epoll-twin 0.9"), "{twin}");
    assert!(!compared.iter().any(|line| line.starts_with("epoll ")), "{compared:?}");
    let node = "no latency ratio · node: its latency was measured under overload";
    assert!(compared.join(" ").contains(node), "{compared:?}");
    assert!(compared.join(" ").contains("crowded, late: its latency is void"), "{compared:?}");
    assert_eq!(words(row(&compared, "late ")), "late – –");
    assert!(markdown(&s).contains(&format!("### {title}\n")));

    let csv = csv(&s);
    let (names, p95) = (column(&csv, "contender"), column(&csv, "p95_ratio"));
    let (high, why) = (column(&csv, "p99_ratio_high"), column(&csv, "latency_ratio_missing"));
    let at = |name: &str| names.iter().position(|one| one == name).unwrap();
    assert_eq!((p95[at("epoll")].as_str(), why[at("epoll")].as_str()), ("", ""));
    assert!(p95[at("null")].parse::<f64>().is_ok() && high[at("null")].parse::<f64>().is_ok());
    assert!(p95[at("late")].is_empty() && why[at("late")].starts_with("its latency is void"));
    assert!(column(&csv, "p99_to_all_reading").iter().all(String::is_empty));
    assert_eq!(serde_json::from_str::<Summary>(&json(&s)).unwrap(), s);
}

#[test]
fn the_title_names_the_operation_of_the_latency() {
    let mut s = summary();
    s.asked.latency_of = Operation::new("last", "delivery to the last\u{1b}", "deliveries");
    let text = terminal(&s, 200, false);
    assert!(text.contains("latency of the delivery to the last\\u{1b} compared with epoll · "));
}

#[test]
fn loads_with_connections_that_do_not_read_have_a_separate_table() {
    let mut s = without();
    let load = s.asked.loads[0];
    let stalled = LoadShape { idle: 1, stalled: 1, ..load };
    s.asked.loads[0] = stalled;
    for cell in s.cells.iter_mut().filter(|cell| cell.load == load) {
        cell.load = stalled;
        let (p99, missing) = match cell.contender.as_str() {
            "epoll" => (e(1.02), None),
            _ => (None, Some("p99: 2 of 7 starts have fewer".to_owned())),
        };
        cell.latency_to_all_reading = Some(LatencyRatio { p50: None, p95: e(1.5), p99, missing });
    }
    let title = "latency compared with the load in which all connections read · double · 64 conn + 1 \
                 idle that never read, 10000/s";
    let text = terminal(&s, 120, false);
    let compared = table(&text, title);
    assert_eq!(words(row(&compared, "epoll ")), "epoll 1.50× [1.42–1.58] 1.02× [0.97–1.07]");
    assert_eq!(words(row(&compared, "node")), "node 1.50× [1.42–1.58] –");
    let note = compared.iter().filter(|line| line.contains("no latency ratio · ")).count();
    assert_eq!(note, 1, "one note for all with the same reason");
    let csv = csv(&s);
    let (names, p95) = (column(&csv, "contender"), column(&csv, "p95_to_all_reading"));
    for cell in s.cells.iter_mut().filter(|cell| cell.load == stalled) {
        let missing = Some("its latency is void".to_owned());
        let none = Some(LatencyRatio { missing, ..LatencyRatio::default() });
        (cell.latency_to_baseline, cell.latency_to_all_reading) = (none.clone(), none);
    }
    let text = terminal(&s, 120, false);
    assert!(!text.contains("compared with"), "{text}");
    let first = table(&text, "double · 64 conn + 1 idle that never read, 10000/s").join(" ");
    assert!(first.contains("no latency ratio · "), "{first}");
    assert_eq!(first.matches("its latency is void").count(), 1, "{first}");
    assert_eq!(p95[names.iter().position(|name| name == "epoll").unwrap()], "1.5");
    let why = column(&csv, "to_all_reading_missing");
    assert!(why[names.iter().position(|name| name == "node").unwrap()].starts_with("p99: 2 of 7"));
}

#[test]
fn a_note_instead_of_a_table_explains_missing_comparisons() {
    let mut s = summary();
    for cell in &mut s.cells {
        if let Some(ratio) = &mut cell.latency_to_baseline {
            let missing = Some("7 of 7 starts have fewer than ten".to_owned());
            *ratio = LatencyRatio { missing, ..LatencyRatio::default() };
        }
    }
    let text = terminal(&s, 120, false);
    assert!(!text.contains("compared with"), "{text}");
    let first = table(&text, &format!("double · {LOAD}")).join(" ");
    assert!(
        first.contains("no latency ratio · ") && first.contains("7 of 7 starts have"),
        "{first}"
    );
    s.asked.rounds = 1;
    assert!(!terminal(&s, 120, false).contains("no latency ratio"), "nothing has an interval");
    let text = terminal(&without(), 120, false);
    assert!(!text.contains("latency ratio") && !text.contains("compared with"), "{text}");
}

#[test]
fn a_closed_loop_shows_neither_ratios_nor_a_note() {
    let mut s = summary();
    let closed = LoadShape::closed(64, 1);
    s.asked.loads = vec![closed];
    s.cells.iter_mut().for_each(|cell| cell.load = closed);
    let text = terminal(&s, 120, false);
    assert!(!text.contains("latency ratio") && !text.contains("compared with"), "{text}");
}

#[test]
fn the_table_fits_into_80_columns_without_dropping_any() {
    let mut s = summary();
    for cell in &mut s.cells {
        let missing = Some("p99: a reason that is much longer than a line of a terminal".repeat(3));
        let ratio = LatencyRatio { p50: None, p95: e(1_234.5), p99: e(0.001_234), missing };
        cell.latency_to_baseline = (cell.contender != "epoll").then_some(ratio);
    }
    let text = terminal(&s, 80, false);
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    let compared = table(&text, &format!("latency compared with epoll · double · {LOAD}"));
    assert!(!compared.join(" ").contains("no room"), "{compared:?}");
}
