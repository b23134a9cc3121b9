//! Tests of all report formats for counted loads, historic results in words, small requests beside
//! large ones, and silent connections, on the summary of a simulated race (`counted.json`, made by the
//! example `simulated_counted` of regatta-judge).

use crate::common::{alone, column, row, table, titles, words};
use regatta_record::{Kind, Summary};
use regatta_report::{csv, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

const COUNTED: &str = "hash · 300 conn, 2000 requests, n=1000";
const FAIR: &str = "hash · 100 conn, 200/s, n=1, beside 8 conn with n=1000";

fn summary() -> Summary {
    serde_json::from_str(include_str!("../counted.json")).expect("the fixture is a summary")
}

#[test]
fn a_counted_load_shows_the_time_of_a_request() {
    let s = summary();
    let load = "300 conn, 2000 requests, n=1000";
    let counted = terminal(&alone(&s, load), 200, false);
    let counted = table(&counted, COUNTED);
    let shown = titles(&counted);
    assert!(shown.contains(" result rate wall time p50 p99 "), "{shown}");
    assert!(shown.contains(" /s ms/req s s "), "{shown}");
    let note = row(&counted, "counted · wall time: ");
    assert!(
        note.contains("2000 requests, including connecting") && note.contains("300 connections")
    );
    assert!(row(&counted, "node").contains("52.2 [51.2–53.2]"), "{}", row(&counted, "node"));
    let narrow = terminal(&s, 80, false);
    assert!(
        words(table(&narrow, COUNTED)[1]).contains("wall time"),
        "it is kept if there is little room"
    );
    assert!(markdown(&s).contains("| wall time ms/req |"));
    let lines = csv(&s);
    let head: Vec<&str> = lines.lines().next().unwrap().split(',').collect();
    let node =
        lines.lines().find(|l| l.contains("\"node\"") && l.contains(",2000,1000,,,")).unwrap();
    assert!(head.contains(&"ms_per_request") && node.contains(",2000,1000,,,52."), "{node}");
    let value: serde_json::Value = serde_json::from_str(&json(&s)).unwrap();
    assert!(value["cells"][0]["ms_per_request"]["mean"].as_f64().unwrap() > 40.0);
    assert_eq!(value["cells"][0]["load"]["requests"], 2_000);
}

#[test]
fn historic_words_are_shown_beside_the_order_measured_now() {
    let s = summary();
    let text = terminal(&s, 400, false);
    let counted = table(&text, COUNTED);
    assert!(!counted[1].contains("then"), "no figure, no column");
    let then = row(&counted, "then · ");
    assert!(then.contains("node: far back; php (a stand-in for PHP 7.0): ahead of Java"), "{then}");
    assert!(then.contains("“An article” (2017), measured on other machines long ago"), "{then}");
    let now = row(&counted, "now · ");
    assert!(now.starts_with("now · node 52.2") && now.contains(", php (a stand-in for"), "{now}");
    assert!(now.ends_with("ms per request, fastest first, as measured here"), "{now}");
    assert!(markdown(&s).contains("- now · node 52.2"));
    assert!(column(&csv(&s), "then_in_words").contains(&"far back".to_owned()));
}

#[test]
fn fairness_is_shown_by_the_latencies_of_small_requests() {
    let mut s = summary();
    let wide = terminal(&s, 200, false);
    let fair = table(&wide, FAIR);
    let shown = titles(&fair);
    assert!(shown.starts_with("contender rate p50 p99 max large requests memory"), "{shown}");
    assert!(shown.contains("/ /s ms ms ms /s MiB"), "{shown}");
    assert!(row(&fair, "go").contains("24.00 [24.00–24.00]"), "the rate of the large requests");
    let answer = format!(
        "{}: Beside large requests, small requests wait least on go (p99 2.10 ms), and most on php",
        FAIR.trim_start_matches("hash · ")
    );
    assert!(wide.find(&answer).is_some_and(|at| at < wide.find(FAIR).unwrap()), "{wide}");
    let note =
        row(&fair, "fairness · large requests: 8 requests with n=1000 were always in flight");
    assert!(note.contains("There is no cost"), "{note}");
    let at_rate = fair.iter().filter(|line| line.starts_with("at-asked-rate · ")).count();
    assert_eq!(at_rate, 0, "the rate was held");
    let narrow = terminal(&s, 80, false);
    let shown = words(table(&narrow, FAIR)[1]);
    assert!(shown.starts_with("contender rate p50 p99 large requests"), "{shown}");
    assert!(csv(&s).lines().any(|line| line.contains(",1,8,1000,,,,24")));
    // Contenders that failed are not compared. Here all failed.
    for cell in s.cells.iter_mut().filter(|cell| cell.load.beside.is_some()) {
        cell.verdict = regatta_record::Verdict::new(Kind::Failed, "it died");
    }
    let text = terminal(&s, 200, false);
    assert!(words(&text).contains("No contender has valid latencies here."), "{text}");
}

#[test]
fn silent_connections_have_a_sentence_and_a_plot() {
    let s = summary();
    let text = terminal(&s, 200, false);
    let idle = table(&text, "over silent connections · hash · 10 conn");
    assert!(row(&idle, "php: 20.4 ").contains("µs per request + 2.04 ["), "{idle:?}");
    assert!(row(&idle, "epoll: ").contains("a silent connection adds at most 0.00"), "{idle:?}");
}

#[test]
fn explains_that_counted_loads_measure_cold_starts() {
    let is_explained =
        |s: &Summary| terminal(s, 200, false).contains("measure cold starts: they begin");
    let mut s = summary();
    assert!(is_explained(&s));
    s.asked.loads.retain(|load| load.requests.is_none());
    assert!(!is_explained(&s));
}

#[test]
fn no_line_is_too_long_and_the_summary_survives_json() {
    let s = summary();
    for width in 40..200 {
        let text = terminal(&s, width, false);
        assert_eq!(text.lines().find(|line| line.width() > width), None, "{width}");
    }
    assert_eq!(serde_json::from_str::<Summary>(&json(&s)).unwrap(), s);
}
