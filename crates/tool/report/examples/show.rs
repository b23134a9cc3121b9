//! Prints a stored summary in one of the formats.
//!
//! `cargo run -p regatta-report --example show -- crates/tool/report/tests/summary.json terminal 80`

use std::{env, fs};

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let [file, form, rest @ ..] = args.as_slice() else {
        panic!("expected: summary.json, then terminal WIDTH | colour WIDTH | markdown | json | csv")
    };
    let text = fs::read_to_string(file).expect("the summary can be read");
    let summary = serde_json::from_str(&text).expect("it is a summary");
    let width = rest.first().map_or(80, |w| w.parse().expect("a width is a number"));
    let shown = match form.as_str() {
        "terminal" => regatta_report::terminal(&summary, width, false),
        "colour" => regatta_report::terminal(&summary, width, true),
        "markdown" => regatta_report::markdown(&summary),
        "json" => regatta_report::json(&summary),
        "csv" => regatta_report::csv(&summary),
        other => panic!("no such form: {other}"),
    };
    print!("{shown}");
}
