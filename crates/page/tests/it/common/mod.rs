//! Shared by the tests of the page: stored results.
#![allow(dead_code)]

pub mod browser;

use regatta_record::{Round, Summary};
use regatta_report::{table::Table, view::View};
use serde_json::Value;
use std::{fs, path::Path};

/// A stored summary among the fixtures of `report`.
pub fn summary(name: &str) -> Summary {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests");
    let text = fs::read_to_string(folder.join(name)).expect("a fixture");
    serde_json::from_str(&text).expect("the fixture is a summary")
}

/// A real race: five rounds of a few contenders, with their histograms.
pub fn race() -> (Summary, Vec<Round>) {
    let summary = include_str!("../../race/summary.json");
    let rounds = include_str!("../../race/rounds.jsonl").lines();
    (
        serde_json::from_str(summary).expect("the fixture is a summary"),
        rounds.map(|line| serde_json::from_str(line).expect("a round")).collect(),
    )
}

/// Checks that two JSON values are equal, except for digits of fractions after the ninth.
pub fn assert_same(one: &Value, other: &Value, at: &str) {
    match (one, other) {
        (Value::Array(ones), Value::Array(others)) => {
            assert_eq!(ones.len(), others.len(), "{at}");
            ones.iter().zip(others).for_each(|(one, other)| assert_same(one, other, at));
        }
        (Value::Object(ones), Value::Object(others)) => {
            let keys =
                |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(ones), keys(others), "{at}");
            ones.iter()
                .for_each(|(key, one)| assert_same(one, &others[key], &format!("{at}.{key}")));
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            assert!((one - other).abs() <= 1e-8 * other.abs(), "{at}: {one}, {other}");
        }
        _ => assert_eq!(one, other, "{at}"),
    }
}

/// All tables of a view except those that the page has in another form.
pub fn all_tables(view: &View) -> impl Iterator<Item = &Table> {
    view.gate.iter().chain(view.raced()).chain(view.details()).chain(&view.scaling)
}
