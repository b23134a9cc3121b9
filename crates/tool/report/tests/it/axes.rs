//! Tests of all report formats for idle connections, requested rates, cores and bursts, on the summary
//! of a simulated race (`axes.json`, made by the example `simulated_axes` of regatta-judge).
//! `summary.json` has none of these fields, like results of earlier versions.

use crate::common::{alone, row, table, titles, words};
use regatta_record::Summary;
use regatta_report::{csv, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

const SHARED: &str = "64 conn, 20000/s, 2 cores · server and load share CPU 1";

fn summary() -> Summary {
    serde_json::from_str(include_str!("../axes.json")).expect("the fixture is a summary")
}

#[test]
fn shared_cpus_are_labelled_and_show_cost_only() {
    let text = terminal(&alone(&summary(), "64 conn, 20000/s, 2 cores"), 200, false);
    let shared = table(&text, &format!("double · {SHARED}"));
    assert_eq!(
        titles(&shared),
        "contender cost ratio to epoll ratio, log scale result verdict memory / µs/req 1 1.8 MiB"
    );
    assert!(row(&shared, "percore").contains("cost-only"));
    assert!(row(&shared, "haskell").contains("(9.4 [8.9–10.0])"), "its rate was not held");
    let note = row(&shared, "cost-only · ");
    assert!(note.ends_with("had to share CPUs, so only the cost is shown"), "{note}");
    assert!(row(&shared, "overloaded · haskell").contains("16000 of 20000 requests per second"));
    let text = terminal(&alone(&summary(), "64 conn, 20000/s, 1 core"), 200, false);
    let alone = table(&text, "double · 64 conn, 20000/s, 1 core");
    assert!(titles(&alone).contains(" rate p50 p99 "), "{}", alone[1]);
    assert!(row(&alone, "percore").contains("at-asked-rate"));
    assert!(markdown(&summary()).contains(&format!("### double · {SHARED}")));
    let lines = csv(&summary());
    let shared = lines.lines().filter(|l| l.contains(",0,20000,2,true,,,")).count();
    assert_eq!(shared, 7, "{lines}");
}

#[test]
fn notes_models_that_coincide_on_one_core() {
    let text = terminal(&alone(&summary(), "64 conn"), 200, false);
    let note = "one core · percore, cluster: the same loop as epoll on one core; measured: \
                percore unclear (1.01× [0.99–1.03]), cluster costlier (1.13× [1.12–1.14])";
    assert!(table(&text, "double · 64 conn").contains(&note), "{text}");
    let text = terminal(&alone(&summary(), "64 conn, 20000/s, 2 cores"), 200, false);
    let shared = table(&text, &format!("double · {SHARED}"));
    assert!(!shared.iter().any(|line| line.starts_with("one core")), "it has two");
}

#[test]
fn scaling_is_shown_below_the_tables() {
    let s = summary();
    let text = terminal(&s, 80, false);
    let rated = table(&text, "scaling over cores · double · 64 conn, 20000/s");
    assert_eq!(words(rated[1]), "contender cores cost vs 1");
    assert!(words(row(&rated, "percore")).starts_with("percore 2 1.00× ["));
    assert!(!rated.iter().any(|line| line.starts_with("haskell")), "void costs do not scale");
    assert!(text.rfind("scaling").unwrap() > text.find("cost as a multiple").unwrap());
    assert!(markdown(&s).contains("### scaling over cores · double · 64 conn, 20000/s"));
    let value: serde_json::Value = serde_json::from_str(&json(&s)).unwrap();
    let scaling = value["cells"].as_array().unwrap().iter().find(|c| !c["scaling"].is_null());
    let scaling = &scaling.unwrap()["scaling"];
    assert_eq!((&scaling["from_cores"], &scaling["cores"]), (&1.into(), &2.into()));
    assert!(scaling["cost"]["low"].is_number());
}

#[test]
fn a_burst_shows_its_instances_and_historic_results() {
    let s = summary();
    let title = "double · 5000 conn × 3, burst of 10 × 10";
    let wide = terminal(&s, 200, false);
    let burst = table(&wide, title);
    assert_eq!(
        titles(&burst),
        "contender cost ratio to epoll ratio, log scale result instance now then slowest memory / \
         µs/req 1 2.2 s s MiB"
    );
    assert!(row(&burst, "null").contains("≤ "), "co-bound: it may be faster");
    let then = row(&burst, "then · ");
    assert!(then.contains("node 8.94 s (one process), haskell-conduit 8.0 s (one core)"), "{then}");
    assert!(then.contains("(2013), measured on other machines long ago; do not compare"));
    let narrow = terminal(&s, 80, false);
    let burst = table(&narrow, title);
    let shown = titles(&burst);
    assert!(shown.starts_with("contender cost ratio to epoll result instance now then"), "{shown}");
    assert!(row(&burst, "node ").contains("8.94 s"));
    let lines = csv(&s);
    let node = lines.lines().find(|l| l.contains("\"8.94 s\",")).unwrap();
    assert!(node.contains(",false,10,10,"), "{node}");
    let value: serde_json::Value = serde_json::from_str(&json(&s)).unwrap();
    assert_eq!(value["asked"]["then"][1]["figure"], "8.94 s");
}

#[test]
fn shows_memory_per_connection_if_there_are_many() {
    let s = summary();
    for width in [80, 200] {
        let text = terminal(&alone(&s, "10 conn + 10000 idle"), width, false);
        let idle = table(&text, "double · 10 conn + 10000 idle");
        assert!(idle[1].contains("user    kernel"), "{}", idle[1]);
        assert!(idle[2].contains("B/conn  KiB/conn"), "{}", idle[2]);
        assert!(row(&idle, "percore").contains("   312      7.25"), "{}", row(&idle, "percore"));
        assert!(row(&idle, "memory · ").contains("for both ends of each connection"));
        let few = terminal(&alone(&s, "64 conn"), width, false);
        assert!(!few.contains("/conn"), "{few}");
    }
    assert!(csv(&s).contains(",312,7424,"));
}

#[test]
fn loads_left_out_are_doubts_and_lines_fit_the_width() {
    let s = summary();
    for width in 40..200 {
        let text = terminal(&s, width, false);
        let too_long = text.lines().find(|line| line.width() > width);
        assert_eq!(too_long, None, "{width}");
        assert!(words(&text).contains("doubt: left out: 64 conn on 8 CPUs: there are 2 to use"));
    }
}

#[test]
fn the_summary_survives_json() {
    let s = summary();
    assert_eq!(serde_json::from_str::<Summary>(&json(&s)).unwrap(), s);
}
