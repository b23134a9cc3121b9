//! Capacity searches whose load comes from several machines.

use super::Place;
use crate::support::{json, run};

#[test]
fn two_agents_carry_out_the_levels_of_a_search() {
    let place = Place::new();
    let more = ["--limit", "p50=2s", "--step", "2", "--max", "4"];
    // Short, because the levels take all the CPU that is there.
    let more = [&more[..], &["--window", "100ms", "--warm-up", "0s"]].concat();
    let first = ["capacity", &place.url(), "--on", "one,two", "--json", "-"];
    let found = json(&run(place.of(&first, &more)));
    assert_eq!(found["agents"], serde_json::json!(["one", "two"]), "{found:#}");
    let steps = found["steps"].as_array().unwrap();
    assert!(steps.len() > 1, "{found:#}");
    assert!(steps.iter().all(|step| step["reply_rate_per_s"].as_f64().unwrap() > 0.0), "{found:#}");
}

#[test]
fn a_search_with_too_little_for_every_agent_is_refused() {
    let place = Place::new();
    let of = |more: &[&str]| {
        let first =
            ["capacity", "line://127.0.0.1:1", "--limit", "p50=1s", "--on", "one,two,three"];
        run(place.of(&first, more)).with_status(2).stderr
    };
    let step = of(&["--step", "2"]);
    assert!(step.contains("--on has 3 machines, so --step must be at least 3, not 2"), "{step}");
    let connections = of(&["--by", "rate", "-c", "2"]);
    assert!(connections.contains("so --connections must be at least 3, not 2"), "{connections}");
    let threads = of(&["--threads", "2"]);
    assert!(threads.contains("cannot be used with"), "{threads}");
}

#[test]
fn a_lost_agent_ends_the_search() {
    let place = Place::new();
    let first = ["capacity", &place.url(), "--on", "one,gone", "--limit", "p50=2s"];
    let output = run(place.of(&first, &["--step", "2"])).with_status(2);
    assert!(output.stderr.contains("agent gone cannot be reached"), "{}", output.stderr);
}
