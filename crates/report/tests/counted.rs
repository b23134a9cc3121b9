//! Tests of all report formats for counted loads, historic results in words, small requests beside
//! large ones, and silent connections, on the summary of a simulated race (`counted.json`, made by the
//! example `simulated_counted` of regatta-judge).

mod common;

use common::{column, row, table, words};
use regatta_record::{Kind, Summary};
use regatta_report::{csv, html, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

const COUNTED: &str = "hash · 300 conn, 2000 requests, n=1000";
const FAIR: &str = "hash · 100 conn, 200/s, n=1, beside 8 conn with n=1000";

fn summary() -> Summary {
    serde_json::from_str(include_str!("counted.json")).expect("the fixture is a summary")
}

#[test]
fn a_counted_load_shows_the_time_of_a_request() {
    let s = summary();
    let counted = terminal(&s, 200, false);
    let counted = table(&counted, COUNTED);
    assert!(words(counted[1]).starts_with("contender ms/req vs epoll band /s wall ms/req p50"));
    let note = row(&counted, "counted · wall ms/req: ");
    assert!(
        note.contains("2000 requests, including connecting") && note.contains("300 connections")
    );
    assert!(row(&counted, "node").contains("52.2 [51.2–53.2]"), "{}", row(&counted, "node"));
    let narrow = terminal(&s, 80, false);
    assert!(
        words(table(&narrow, COUNTED)[1]).contains("wall ms/req"),
        "it is kept if there is little room"
    );
    assert!(markdown(&s).contains("| wall ms/req |"));
    assert!(html(&s).contains(">wall ms&#x2f;req</th>"));
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
    assert!(html(&s).contains("now · node 52.2"));
    assert!(markdown(&s).contains("- now · node 52.2"));
    assert!(column(&csv(&s), "then_in_words").contains(&"far back".to_owned()));
}

#[test]
fn fairness_is_shown_by_the_latencies_of_small_requests() {
    let mut s = summary();
    let wide = terminal(&s, 200, false);
    let fair = table(&wide, FAIR);
    assert!(words(fair[1]).starts_with("contender /s p50 p99 large /s lag p99"), "{}", fair[1]);
    assert!(row(&fair, "go").contains("24.00 [24.00–24.00]"), "the rate of the large requests");
    assert!(fair.iter().any(|line| {
        line.starts_with("small requests wait least on go with a p99 of 2.10 ms, and most on")
    }));
    let note = row(&fair, "fairness · large: 8 requests with n=1000 were always in flight");
    assert!(note.contains("There is no cost"), "{note}");
    assert!(!fair.iter().any(|line| line.starts_with("at-asked-rate · ")), "once for all");
    let narrow = terminal(&s, 80, false);
    let titles = words(table(&narrow, FAIR)[1]);
    assert!(titles.starts_with("contender p50 p99 large /s"), "{titles}");
    assert!(csv(&s).lines().any(|line| line.contains(",1,8,1000,,,,24")));
    // Contenders that failed are not compared. Here all failed.
    for cell in s.cells.iter_mut().filter(|cell| cell.load.beside.is_some()) {
        cell.verdict = regatta_record::Verdict::new(Kind::Failed, "it died");
    }
    let text = terminal(&s, 200, false);
    let fair = table(&text, FAIR);
    assert!(fair.contains(&"no contender has valid latencies here"), "{fair:?}");
}

#[test]
fn silent_connections_have_a_sentence_and_a_plot() {
    let s = summary();
    let text = terminal(&s, 200, false);
    let idle = table(&text, "over silent connections · hash · 10 conn");
    assert!(row(&idle, "php: 20.4 ").contains("µs per request + 2.04 ["), "{idle:?}");
    assert!(row(&idle, "epoll: ").contains("a silent connection adds at most 0.00"), "{idle:?}");
    let page = html(&s);
    assert!(page.contains("silent connections</text>"), "the axis");
    assert!(page.contains("<figcaption>server CPU, µs per request</figcaption>"));
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
