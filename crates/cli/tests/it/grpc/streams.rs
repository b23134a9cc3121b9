//! Server streaming against a server with grpcio.

use super::{assert_refused, assert_right, assert_wrong, load, server};
use crate::support::{json, refused, regatta, run};
use regatta_testkit::child::Ended;
use serde_json::Value;
use std::fs;

const NUMBERS: &str = "/test.Items/Numbers";

/// The number of messages of the request, as the server reads it: in hex, decimal digits.
fn asks(messages: u32) -> String {
    messages.to_string().bytes().map(|digit| format!("{digit:02x}")).collect()
}

/// The operations of a result, by name.
fn operation(output: &Ended, name: &str) -> Value {
    let result = json(output);
    let all = result["operations"].as_array().expect("operations").clone();
    let named = |one: &Value| one["operation"]["name"] == name;
    all.into_iter().find(named).unwrap_or_else(|| panic!("no {name} in {result:#}"))
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn streams_of_grpcio_are_right_and_their_messages_are_counted() {
    let Some(server) = server() else { return };
    // Numbers of two bytes are among them.
    let asks = asks(150);
    let stream = ["--stream", "--message-hex", &asks, "--expect-hex", "08{n:varint}"];
    for more in [&["--messages", "150"][..], &[], &["--processes", "2", "-c", "2"]] {
        let output = load(
            &server,
            NUMBERS,
            &[&stream[..], more, &["-p", "4", "-n", "40", "--timeout", "120s"]].concat(),
        );
        assert_right(&output, 40);
        let messages = operation(&output, "messages");
        assert_eq!(
            (&messages["count"], &messages["latency_ns"]["max"]),
            (&6_000.into(), &Value::Null)
        );
        for name in ["first_messages", "longest_gaps"] {
            let of_each = operation(&output, name);
            assert_eq!(of_each["count"], 40, "{name}");
            assert!(of_each["latency_ns"]["max"].as_u64() > Some(0), "{of_each}");
        }
    }
    let printed = run(regatta!("load grpc://{}{NUMBERS} -n 40", server.addr).args(stream)).stdout;
    let lines = |part: &str| printed.lines().filter(|line| line.starts_with(part)).count();
    let expected = ["messages    6,000 in", "first messages 40 in", "longest gaps 40 in"];
    assert_eq!(expected.map(lines), [1; 3], "{printed}");
    assert_eq!(lines("  latency"), 2, "{printed}");
    // None, and any; the messages are not known.
    let none = ["--stream", "--messages", "0", "--message-hex", "30", "-n", "20"];
    assert_right(&load(&server, NUMBERS, &none), 20);
    let any = ["--stream", "--message-hex", "37", "-n", "20"];
    assert_right(&load(&server, NUMBERS, &any), 20);
}

/// 32 streams at a time, each longer than the first window of the connection.
#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn long_streams_of_grpcio_complete_on_many_streams() {
    let Some(server) = server() else { return };
    let (asks, expected) = (asks(60), "78".repeat(10_000));
    let stream =
        ["--stream", "--message-hex", &asks, "--messages", "60", "--expect-hex", &expected];
    let load_of = ["-c", "1", "-p", "32", "-n", "64", "--timeout", "120s"];
    let output = load(&server, "/test.Items/Long", &[&stream[..], &load_of].concat());
    assert_right(&output, 64);
    assert_eq!(operation(&output, "messages")["count"], 64 * 60);
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn wrong_streams_of_grpcio_are_found_with_the_number_of_the_message() {
    let Some(server) = server() else { return };
    let numbers = ["-c", "1", "-n", "5", "--stream", "--message-hex", "36"];
    for (path, messages, expected, reason) in [
        ("FailLate", "6", "08{n:varint}", "grpc-status 15 (DATA_LOSS): half, after 3 messages"),
        ("Doubled", "6", "08{n:varint}", "message 4: a message that differs from byte 1 on: 03"),
        ("Numbers", "7", "08{n:varint}", "no message 7: the stream ended after 6 of 7 messages"),
        ("Numbers", "5", "08{n:varint}", "bytes of message 6; expected 5 messages"),
        ("Numbers", "6", "08{n-1:varint}", "message 1: a message that differs from byte 1 on: 01"),
        ("Numbers", "6", "08{n:fixed32}", "message 1: a message of 2 bytes; expected 5 bytes"),
        ("None", "6", "08{n:varint}", "grpc-status 12 (UNIMPLEMENTED)"),
    ] {
        let args = [&numbers[..], &["--messages", messages, "--expect-hex", expected]].concat();
        assert_wrong(&load(&server, &format!("/test.Items/{path}"), &args), reason);
    }
    // A unary call has one message.
    let unary = ["-c", "1", "-n", "5", "--message-hex", "32"];
    assert_wrong(&load(&server, NUMBERS, &unary), "more bytes behind the message of 2 bytes");
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn a_stream_that_stalls_times_out() {
    let Some(server) = server() else { return };
    let args = ["--stream", "-c", "1", "-n", "2", "--timeout", "300ms", "--tolerate", "100%"];
    let output = load(&server, "/test.Items/Stalls", &args);
    let result = json(&output);
    // The server knows the timeout too, and may be the first to end the stream.
    let errors = &result["errors"];
    let late = errors["timeout"].as_u64().zip(errors["wrong_reply"].as_u64());
    assert_eq!((&result["requests"], late.map(|(ours, its)| ours + its)), (&0.into(), Some(2)));
    assert_eq!(operation(&output, "messages")["whole_run"], 0);
    for (first, cause) in [
        ("first_unfinished", "and no end of the response, after 1 message"),
        ("first_wrong", "grpc-status 4 (DEADLINE_EXCEEDED): Deadline Exceeded, after 1 message"),
    ] {
        let received = result[first]["received"].as_str().unwrap_or(cause);
        assert!(received.contains(cause), "{received}");
    }
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn a_workload_file_has_streams_beside_unary_calls() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items.toml");
    let text = "protocol = \"grpc\"\n\
                [[request]]\npath = \"/test.Items/Echo\"\nmessage_hex = \"0801\"\nexpect_hex = \"0801\"\n\
                [[request]]\npath = \"/test.Items/Numbers\"\nmessage_hex = \"35\"\nstream = true\n\
                messages = 5\nexpect_hex = \"08{n:varint}\"\n";
    fs::write(&path, text).expect("written");
    let args = ["--workload", path.to_str().expect("a path"), "-c", "2", "-p", "8", "-n", "200"];
    let output = load(&server, "", &args);
    assert_right(&output, 200);
    let (messages, streams) =
        (operation(&output, "messages"), operation(&output, "first_messages"));
    let (messages, streams) = (messages["count"].as_u64(), streams["count"].as_u64());
    assert!(streams > Some(50) && messages == streams.map(|n| 5 * n), "{messages:?} {streams:?}");
    // A rate, a threshold and a log of latencies, as for any load.
    let log = folder.path().join("latencies.hlog");
    let more = ["--rate", "200/s", "-d", "1s", "--fail-if", "errors>0"];
    let more = [&more[..], &["--hdr-log", log.to_str().expect("a path")]].concat();
    load(&server, "", &[&args[..6], &more].concat()).with_status(0);
    let log = fs::read_to_string(log).expect("a log");
    assert!(log.contains("Tag=first_messages") && log.contains("Tag=longest_gaps"), "{log}");
    assert!(!log.contains("Tag=messages"), "messages are only counted");
}

#[test]
fn what_needs_a_stream_is_refused_without_one() {
    let url = "grpc://127.0.0.1:1/a.B/C";
    assert_refused(&[url, "--messages", "5"], "--stream");
    assert_refused(&[url, "--expect-hex", "08{n:varint}"], "needs `--stream`");
    assert_refused(&[url, "--stream", "--expect-hex", "08{n}"], "expected {n:varint}");
    assert_refused(&["http://127.0.0.1:1/", "--stream"], "--stream applies only to URLs of gRPC");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.toml");
    fs::write(&path, "protocol = \"grpc\"\n[[request]]\npath = \"/a/b\"\n").expect("written");
    let path = path.to_str().expect("a path");
    assert_refused(
        &["grpc://127.0.0.1:1", "--workload", path, "--stream"],
        "--stream cannot be used",
    );
    // Options of one call are those of `load`.
    refused(regatta!("capacity {url} --stream"));
}
