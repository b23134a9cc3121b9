//! Tests of all report formats for open loops, on the summary of a simulated race (`open.json`, made by
//! the example `simulated_open` of regatta-judge).

use crate::common::{row, table, titles, words};
use regatta_record::Summary;
use regatta_report::{csv, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

fn summary() -> Summary {
    serde_json::from_str(include_str!("../open.json")).expect("the fixture is a summary")
}

#[test]
fn shows_percentiles_with_intervals_and_the_lag() {
    let wide = terminal(&summary(), 220, false);
    let poisson = table(&wide, "double · 64 conn, 10000/s");
    assert_eq!(
        titles(&poisson),
        "contender cost ratio to epoll ratio, log scale result rate p50 p99 max lag p99 unsent verdict \
         memory / µs/req 0.99 1 1.022 /s ms µs µs µs MiB"
    );
    let epoll = words(row(&poisson, "epoll "));
    assert!(
        epoll.contains(" [0.045") && epoll.contains(" 11.") && epoll.contains(" 0 "),
        "{epoll}"
    );
    assert!(row(&poisson, "node").contains(" 30% ") && row(&poisson, "node").contains(" – "));
    assert!(row(&poisson, "late").contains("(0.045"), "void");
    let note = words(&poisson.join(" "));
    assert!(note.contains("open loop · p50, p99: Poisson arrivals; latency starts when"));
    assert!(note.contains(
        "generator-bound · late: the load itself was late: 1% of the sends were late by 3.0 ms"
    ));
    assert!(note.contains("overloaded · node: 7000 of 10000 requests per second were answered"));
    assert!(note.contains("noisy · crowded: another program took the server's CPU"));
    let even = table(&wide, "double · 64 conn, 10000/s even").join(" ");
    assert!(even.contains("p99: evenly spaced; latency"), "{even}");
}

#[test]
fn drops_intervals_before_columns_and_fits_the_width() {
    let s = summary();
    let at = |width| {
        let text = terminal(&s, width, false);
        table(&text, "double · 64 conn, 10000/s").join("\n")
    };
    assert!(at(220).contains(" [0.045"));
    let narrower = at(160);
    assert!(narrower.contains("unsent") && !narrower.contains(" [0.045"), "{narrower}");
    for width in 40..230 {
        let text = terminal(&s, width, false);
        let too_long = text.lines().find(|line| line.width() > width);
        assert_eq!(too_long, None, "{width}");
    }
}

#[test]
fn every_form_has_the_figures() {
    let s = summary();
    assert!(markdown(&s).contains("| lag p99 µs | unsent |"));
    let lines = csv(&s);
    let columns = lines.lines().next().unwrap().split(',').count();
    assert!(
        lines
            .lines()
            .next()
            .unwrap()
            .contains("little_residual,steal,server_run_delay,load_run_delay,")
    );
    let node = lines.lines().find(|l| l.contains("\"node\"")).unwrap();
    assert!(node.contains(",poisson,") && node.contains(",140000,42000,98000,0,0,0,"), "{node}");
    let plain = s.cells.iter().position(|c| c.contender == "epoll").unwrap() + 1;
    let epoll = lines.lines().nth(plain).unwrap();
    // Its sentence contains commas in quotes.
    let in_quotes: usize =
        epoll.split('"').skip(1).step_by(2).map(|text| text.matches(',').count()).sum();
    assert_eq!(epoll.split(',').count() - in_quotes, columns, "{epoll}");
    assert_eq!(serde_json::from_str::<Summary>(&json(&s)).unwrap(), s);
}
