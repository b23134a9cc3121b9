//! A result directory of an earlier version is judged as that version judged it, but for what was a
//! defect of its.
//!
//! `tests/old-result` was written by the version of June 2026: `race.toml`, `rounds.jsonl`, and its
//! judgement, `summary.json`. The load's own form is left out of the comparison, since it may be
//! written in another way; cells are compared in their order.

use regatta_judge::judge;
use regatta_race::Store;
use serde_json::Value;
use std::{fs, path::Path};

/// Where the judgements differ because the earlier one was wrong, and what was wrong with it.
const MENDED: &[(&str, &str)] = &[];

/// What is asked, not judged.
const LEFT_OUT: [&str; 2] = ["asked", "load"];

/// Collects the places where `new` is not as `old` was. What is only in `new` came later.
fn compare(place: &str, old: &Value, new: &Value, apart: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, old) in old.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str())) {
                let missing = Value::Null;
                compare(&format!("{place}.{key}"), old, new.get(key).unwrap_or(&missing), apart);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (nth, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{place}[{nth}]"), old, new, apart);
            }
        }
        (Value::Number(old), Value::Number(new)) => {
            let (old, new) = (old.as_f64().unwrap(), new.as_f64().unwrap());
            if (old - new).abs() > 1e-9 * old.abs() {
                apart.push(format!("{place}: {old} was, {new} is"));
            }
        }
        (old, new) if old == new => {}
        (old, new) => apart.push(format!("{place}: {old} was, {new} is")),
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old-result"))
}

#[test]
fn an_old_result_is_judged_as_it_was() {
    let (asked, rounds) = Store::read(folder()).unwrap();
    assert_eq!(rounds.len(), 44);
    let new = serde_json::to_value(judge(&asked, &rounds)).unwrap();
    let old = fs::read_to_string(folder().join("summary.json")).unwrap();
    let old: Value = serde_json::from_str(&old).unwrap();
    assert_eq!(old["cells"].as_array().unwrap().len(), 16);
    let mut apart = Vec::new();
    compare("", &old, &new, &mut apart);
    apart.retain(|what| !MENDED.iter().any(|(place, _)| what.starts_with(place)));
    assert!(apart.is_empty(), "{} differences:\n{}", apart.len(), apart.join("\n"));
}

#[test]
fn a_difference_is_found() {
    let (asked, mut rounds) = Store::read(folder()).unwrap();
    let old = serde_json::to_value(judge(&asked, &rounds)).unwrap();
    let server = rounds.iter_mut().find_map(|round| round.server.as_mut()).unwrap();
    server.cpu_ns += server.cpu_ns / 10;
    let new = serde_json::to_value(judge(&asked, &rounds)).unwrap();
    let mut apart = Vec::new();
    compare("", &old, &new, &mut apart);
    assert!(apart.iter().any(|what| what.contains("cost_ns_per_request")), "{apart:?}");
}
