//! `regatta capacity` finds capacities that are known by construction.

use crate::support::{
    json,
    serial::{Serial, capacity},
};
use regatta_testkit::machine;
use serde_json::Value;

#[test]
fn a_server_that_answers_one_per_millisecond_carries_50_clients_at_50_ms() {
    let _turn = machine::alone();
    let server = Serial::start();
    let more = ["--limit", "p95=50ms", "--step", "40", "--window", "400ms", "--json", "-"];
    let found = json(&capacity(&[&[server.url.as_str()], &more[..]].concat()).with_status(0));
    let of = |name: &str| found["clients"][name].as_u64().unwrap();
    let (best, low, high) = (of("best"), of("low"), of("high"));
    // By Little's law the mean latency with n clients is at least n ms.
    assert!(low <= best && best < high && low <= 55, "{found:#}");
    assert!(best >= 20 && high >= 30, "{found:#}");
    assert_eq!(found["limit"], serde_json::json!({ "quantile": 0.95, "ns": 50_000_000 }));
    let steps = found["steps"].as_array().unwrap();
    let at = |level: u64, passed: bool| {
        steps.iter().filter(|s| s["level"] == level && s["passed"] == passed).count()
    };
    assert!(at(low, true) >= 3 && at(high, false) >= 3, "{found:#}");
    assert_eq!((&found["rate_per_s"], &found["memory_bytes"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_server_that_answers_one_per_millisecond_carries_1000_per_second() {
    let _turn = machine::alone();
    let server = Serial::start();
    let more = ["--by", "rate", "--limit", "p50=40ms", "--step", "150", "--window", "500ms"];
    let rest = ["--arrivals", "constant", "-c", "8", "--json", "-"];
    let found =
        json(&capacity(&[&[server.url.as_str()], &more[..], &rest].concat()).with_status(0));
    let of = |name: &str| found["rate_per_s"][name].as_u64();
    assert!((400..=1_200).contains(&of("best").unwrap()), "{found:#}");
    assert!(of("low").unwrap() <= 1_200, "{found:#}");
    assert!(of("high").is_some_and(|high| high >= 500), "{found:#}");
    assert_eq!(found["clients"], Value::Null);
}
