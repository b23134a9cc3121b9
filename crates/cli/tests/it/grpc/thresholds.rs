//! `--fail-if` with figures of the messages of streams.

use super::assert_refused;
use crate::support::{Server, example::example, json, regatta, run};
use regatta_testkit::child::Ended;
use serde_json::Value;
use std::{fs, process::Command};

/// Loads a server of streams of five messages.
fn load(more: &[&str]) -> Ended {
    let mut command = Command::new(example("streams"));
    command.args(["0", "counts"]);
    let server = Server::start(command);
    let url = format!("grpc://{}/test.Items/Watch", server.addr);
    let short = ["--stream", "--messages", "5", "-c", "2", "-p", "2", "--json", "-"];
    run(regatta!("load {url}").args(short).args(more))
}

fn thresholds(output: &Ended) -> Vec<Value> {
    let result = json(output);
    result["thresholds"].as_array().expect("thresholds").clone()
}

#[test]
fn figures_of_messages_are_those_of_the_result() {
    let figures =
        ["message-rate<1000M/s", "first-p50=1ns", "first-max>1h", "gap-p50>1h", "gap-max>1h"];
    let mut more = vec!["-n", "100"];
    figures.iter().for_each(|figure| more.extend(["--fail-if", figure]));
    let output = load(&more);
    assert_eq!(output.code(), 1, "two of the figures are beyond their limits");
    let result = json(&output);
    let operation = |name: &str| {
        let all = result["operations"].as_array().expect("operations");
        all.iter().find(|one| one["operation"]["name"] == name).expect(name).clone()
    };
    let (first, gaps) = (operation("first_messages"), operation("longest_gaps"));
    let messages = operation("messages");
    assert_eq!(messages["count"], 500);
    let values: Vec<_> = thresholds(&output).iter().map(|one| one["value"].as_f64()).collect();
    let expected = [
        &messages["rate_per_s"],
        &first["latency_ns"]["p50"],
        &first["latency_ns"]["max"],
        &gaps["latency_ns"]["p50"],
        &gaps["latency_ns"]["max"],
    ];
    assert_eq!(values, expected.map(Value::as_f64));
    let failed = thresholds(&output).into_iter().filter(|one| one["passed"] == false);
    let failed: Vec<Value> = failed.map(|one| one["fail_if"].clone()).collect();
    for figure in ["message-rate < 1000M/s", "first-p50 > 1ns"] {
        assert!(failed.contains(&figure.into()), "{failed:?}");
    }
}

#[test]
fn figures_of_messages_are_compared_with_the_whole_load_and_others_with_each_stage() {
    let stages = ["--stages", "300ms:100/s,300ms:200/s", "--warm-up", "50ms"];
    let figures = ["--fail-if", "gap-p50>1h", "--fail-if", "p50>1h"];
    let output = load(&[&stages[..], &figures].concat());
    let all = thresholds(&output);
    let conditions: Vec<_> =
        all.iter().map(|one| (one["fail_if"].as_str(), one["stage"].as_u64())).collect();
    let expected =
        [(Some("p50 > 1h"), Some(1)), (Some("p50 > 1h"), Some(2)), (Some("gap-p50 > 1h"), None)];
    assert_eq!(conditions, expected, "{}", output.stderr);
    assert!(all[2]["value"].as_f64() > Some(0.0), "{all:?}");
}

/// No server is asked.
#[test]
fn figures_that_a_load_cannot_have_are_refused() {
    let url = "grpc://127.0.0.1:1/a.B/C";
    for figure in ["message-rate<1", "first-p99>1ms", "gap-max>1ms"] {
        for load in [&["http://127.0.0.1:1/"][..], &["line://127.0.0.1:1"], &[url]] {
            let args = [load, &["--fail-if", figure]].concat();
            assert_refused(&args, "is about streams of messages, and this load of ");
        }
    }
    let stream = |messages: &str, figure: &str, part: &str| {
        assert_refused(&[url, "--stream", "--messages", messages, "--fail-if", figure], part);
    };
    stream("0", "message-rate<1", "needs streams of at least one message, and those of this load");
    stream("0", "first-p50>1s", "have at most 0");
    stream("1", "gap-p99>1ms", "'gap-p99 > 1ms' needs streams of at least two messages");
    stream("2", "gap-p98>1ms", "\"gap-p98\" is not one of the figures p50, p90, ");
    // The only stream is never sent.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.toml");
    let text = "protocol = \"grpc\"\n[[request]]\npath = \"/a.B/C\"\n\
                [[request]]\npath = \"/a.B/D\"\nstream = true\nweight = 0\n";
    fs::write(&path, text).expect("written");
    let file = ["grpc://127.0.0.1:1", "--workload", path.to_str().expect("a path")];
    assert_refused(
        &[&file[..], &["--fail-if", "gap-p99>1ms"]].concat(),
        "this load of calls has none",
    );
}
