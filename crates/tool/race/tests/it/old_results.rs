//! A result directory of an earlier version is judged as that version judged it, except for that
//! version's defects.
//!
//! `tests/old-result` and `tests/old-drives` were written by an earlier version: `race.toml`,
//! `rounds.jsonl`, and its judgement, `summary.json`. The first has closed loops, Poisson arrivals, a
//! burst and silent connections; the second a connection per request, in a window and counted, and
//! evenly spaced arrivals. Cells are compared in their order.

use regatta_judge::judge;
use regatta_race::Store;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The places where the judgements differ because the earlier one was wrong, and the defect.
const MENDED: &[(&str, &str)] = &[
    (".noise_floor: ", FLOOR),
    (r#".cells[10].relation: "dearer" was, "not-told-apart" is"#, NEAR),
    (r#".cells[1].relation: "tied" was, "not-told-apart" is"#, TIED),
    (r#".gate.lines[1].judgement: "same" was, "undecided" is"#, OPEN),
    (".gate.method: ", OPEN),
    (".cells[0].verdict.also: ", MODES),
    (".cells[14].verdict.also: ", MODES),
    (
        r#".cells[2].verdict.also: ["generator-bound"] was, ["generator-bound","in-flight"] is"#,
        LITTLE,
    ),
    (
        r#".cells[12].verdict.also: ["generator-bound"] was, ["generator-bound","in-flight"] is"#,
        LITTLE,
    ),
    (
        r#".cells[13].verdict.also: ["noisy","generator-bound"] was, ["noisy","generator-bound","in-flight"] is"#,
        LITTLE,
    ),
    (".cells[7].rounds_needed", HOURS),
    (".cells[11].rounds_needed", HOURS),
    (r#".cells[7].verdict.also[0]: "at-asked-rate" was, "generator-bound" is"#, BEHIND),
    (r#".cells[7].verdict.void: ["latency"] was, ["latency","rate"] is"#, BEHIND),
];

/// In the second result: without CPU for the load, half of the requests waited for 15 ms.
const BEHIND: &str =
    "582 of 1000 requests per second were no miss, because the others were answered later";

/// Of these three cells the earlier version doubted Little's law, and left their latencies valid.
const LITTLE: &str = "latencies were valid that contradict rate and connections";

/// Two modes of the rate are the machine's, not a contender's.
const MODES: &str = "two modes of the rate are no finding";

/// Nobody runs rounds for hours because of an advice.
const HOURS: &str = "rounds that take longer than ten minutes are not advised";

const FLOOR: &str = "a lasting offset of the twin was averaged away";
const NEAR: &str = "a difference could reach into the noise floor";
const TIED: &str = "a wide noise floor made a tie";
const OPEN: &str = "a gate passed what the rounds did not decide";

/// Keys that are not judgements: settings, and sentences, whose words may change.
const LEFT_OUT: [&str; 4] = ["asked", "format", "because", "doubts"];

/// Collects the places where `new` differs from `old`. Ignores keys that exist only in `new`: they were
/// added later.
fn compare(place: &str, old: &Value, new: &Value, apart: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, old) in old.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str())) {
                let (place, missing) = (format!("{place}.{key}"), Value::Null);
                let new = new.get(key).unwrap_or(&missing);
                compare(&place, old, new, apart);
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
        // Fixed defect: intervals too wide to show even the order of magnitude were printed.
        (old, Value::Null) if said_nothing(old) => {}
        (old, new) => apart.push(format!("{place}: {old} was, {new} is")),
    }
}

fn said_nothing(estimate: &Value) -> bool {
    let [mean, low, high] = ["mean", "low", "high"].map(|key| estimate[key].as_f64());
    mean.zip(low)
        .zip(high)
        .is_some_and(|((mean, low), high)| low < mean / 10.0 || high > mean * 10.0)
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn is_judged_as_it_was(name: &str, all_rounds: usize, all_cells: usize) {
    let (asked, rounds) = Store::read(&folder(name)).unwrap();
    assert_eq!(rounds.len(), all_rounds);
    let new = serde_json::to_value(judge(&asked, &rounds)).unwrap();
    let old = fs::read_to_string(folder(name).join("summary.json")).unwrap();
    let old: Value = serde_json::from_str(&old).unwrap();
    assert_eq!(old["cells"].as_array().unwrap().len(), all_cells);
    let mut apart = Vec::new();
    compare("", &old, &new, &mut apart);
    apart.retain(|what| !MENDED.iter().any(|(place, _)| what.starts_with(place)));
    assert!(apart.is_empty(), "{} differences:\n{}", apart.len(), apart.join("\n"));
}

#[test]
fn an_old_result_is_judged_as_it_was() {
    is_judged_as_it_was("old-result", 44, 16);
}

#[test]
fn old_churn_and_even_arrivals_are_judged_as_they_were() {
    is_judged_as_it_was("old-drives", 18, 9);
}

#[test]
fn a_difference_is_found() {
    let (asked, mut rounds) = Store::read(&folder("old-result")).unwrap();
    let old = serde_json::to_value(judge(&asked, &rounds)).unwrap();
    let server = rounds.iter_mut().find_map(|round| round.server.as_mut()).unwrap();
    server.cpu_ns += server.cpu_ns / 10;
    let new = serde_json::to_value(judge(&asked, &rounds)).unwrap();
    let mut apart = Vec::new();
    compare("", &old, &new, &mut apart);
    assert!(apart.iter().any(|what| what.contains("cost_ns_per_request")), "{apart:?}");
}
