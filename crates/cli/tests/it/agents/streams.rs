//! Streams of messages (gRPC) whose load comes from several machines.

use super::{Place, assert_right};
use crate::support::{Server, example::example, json, run};
use serde_json::Value;
use std::{fs, path::PathBuf, process::Command};

/// The service of the server.
const PROTO: &str = "syntax = \"proto3\";
package test;
message Item { int32 sequence = 1; string message = 2; }
service Items { rpc Watch(Item) returns (stream Item); }
";

const EACH: &str = r#"{"message": "Hello {n}", "sequence": {n}}"#;

/// The same. The text of a number is its digit, 48 more.
const EACH_IN_HEX: &str = "08{n:varint}120748656c6c6f20{n+48:varint}";

/// Agents, and a server of streams of five messages.
struct Streams {
    place: Place,
    server: Server,
    proto: PathBuf,
}

impl Streams {
    fn new(how: &str) -> Streams {
        let place = Place::new();
        let proto = place.folder.path().join("items.proto");
        fs::write(&proto, PROTO).unwrap();
        let mut command = Command::new(example("streams"));
        command.args(["0", how]);
        Streams { place, server: Server::start(command), proto }
    }

    fn command(&self, on: &str, more: &[&str]) -> Command {
        let url = format!("grpc://{}/test.Items/Watch", self.server.addr);
        let short = ["-c", "4", "-p", "2", "-d", "400ms", "--warm-up", "100ms", "--json", "-"];
        let mut command = self.place.of(&["load", &url, "--on", on, "--stream"], &short);
        command.args(more);
        command
    }

    fn proto(&self) -> &str {
        self.proto.to_str().unwrap()
    }
}

/// The counts of a kind of operation: inside the window, and of the whole run.
fn counts(result: &Value, name: &str) -> (u64, u64) {
    let all = result["operations"].as_array().expect("operations");
    let named = |one: &&Value| one["operation"]["name"] == name;
    let one = all.iter().find(named).unwrap_or_else(|| panic!("no {name} in {result:#}"));
    (one["count"].as_u64().unwrap(), one["whole_run"].as_u64().unwrap())
}

/// Checks that all streams of five messages of all agents are in the result.
#[track_caller]
fn assert_whole(result: &Value, agents: usize) {
    let (messages, messages_of_run) = counts(result, "messages");
    let streams = counts(result, "first_messages");
    assert_eq!((messages, messages_of_run), (5 * streams.0, 5 * streams.1));
    assert_eq!(counts(result, "longest_gaps"), streams);
    assert_eq!(result["requests"], streams.0);
    let of_agents = result["agents"]["agents"].as_array().unwrap();
    assert_eq!(of_agents.len(), agents);
    let sum: u64 = of_agents.iter().map(|agent| agent["requests"].as_u64().unwrap()).sum();
    assert_eq!((sum, sum > 0), (streams.0, true), "{result:#}");
}

#[test]
fn streams_from_agents_are_checked_and_counted_together() {
    let streams = Streams::new("counts");
    let json_of_each = ["--proto", streams.proto(), "--expect", EACH, "--messages", "5"];
    let hex = ["--expect-hex", EACH_IN_HEX, "--messages", "5"];
    for expected in [&json_of_each[..], &hex, &["--messages", "5"], &[]] {
        let output = run(streams.command("one,two", expected));
        assert_whole(&assert_right(&output, 4, 2), 2);
    }
}

#[test]
fn a_workload_file_of_streams_arrives_at_agents_with_its_proto_file() {
    let streams = Streams::new("counts");
    let path = streams.place.folder.path().join("items.toml");
    let text = format!(
        "protocol = \"grpc\"\nproto = \"items.proto\"\n[[request]]\npath = \"/test.Items/Watch\"\n\
         stream = true\nmessages = 5\nexpect = '{EACH}'\n"
    );
    fs::write(&path, text).unwrap();
    let url = format!("grpc://{}", streams.server.addr);
    let file = ["--workload", path.to_str().unwrap(), "-c", "4", "-d", "400ms"];
    let open = [&file[..], &["--warm-up", "100ms", "--rate", "200/s", "--json", "-"]].concat();
    let result = json(&run(streams.place.of(&["load", &url, "--on", "one,two"], &open)));
    let (messages, streams) = (counts(&result, "messages"), counts(&result, "first_messages"));
    assert_eq!(messages, (5 * streams.0, 5 * streams.1));
    assert!(streams.0 > 0, "{result:#}");
}

#[test]
fn a_wrong_message_at_one_agent_is_found_with_its_number() {
    let streams = Streams::new("counts-swapped");
    for expected in
        [&["--proto", streams.proto(), "--expect", EACH][..], &["--expect-hex", EACH_IN_HEX]]
    {
        let result = json(&run(streams.command("one,two", expected)).with_status(1));
        assert_eq!(result["verdict"]["kind"], "disqualified", "{result:#}");
        let received = result["first_wrong"]["received"].as_str().unwrap();
        assert!(received.starts_with("message 2: a message "), "{received}");
    }
}

#[test]
fn thresholds_of_streams_are_compared_with_the_sums_of_agents() {
    let streams = Streams::new("counts");
    let figures = ["message-rate<1000M/s", "first-p50=1ns", "gap-p50>1h", "errors>0"];
    let mut more = vec!["--messages", "5"];
    figures.iter().for_each(|figure| more.extend(["--fail-if", figure]));
    let output = run(streams.command("one,two", &more)).with_status(1);
    let result = json(&output);
    let values: Vec<_> =
        result["thresholds"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
    let of = |name: &str, field: &str| {
        let all = result["operations"].as_array().unwrap();
        let named = |one: &&Value| one["operation"]["name"] == name;
        all.iter().find(named).unwrap()[field].clone()
    };
    assert_eq!(values[0].as_f64(), of("messages", "rate_per_s").as_f64());
    for (value, name) in [(values[1], "first_messages"), (values[2], "longest_gaps")] {
        assert_eq!(value.as_f64(), of(name, "latency_ns")["p50"].as_f64(), "{result:#}");
    }
    // Nothing is asked of machines for a figure that this load does not have.
    let refused = ["--messages", "1", "--fail-if", "gap-p99>1ms"];
    let refused = run(streams.command("gone", &refused)).with_status(2);
    assert!(refused.stderr.contains("needs streams of at least two messages"), "{refused:?}");
}
