//! Messages as JSON, which are compared by their fields.

use super::*;
use std::time::Duration;

const TEXT: &str = r#"
protocol = "grpc"
proto = "items.proto"

[[request]]
path = "/test.Items/Get"
message = { id = 1 }
expect = { name = "one", id = 1 }

[[request]]
path = "/test.Items/Get"
message = '{"id": 2}'
expect = '{}'

[files]
"items.proto" = '''
syntax = "proto3";
package test;
message Item { int32 id = 1; string name = 2; }
service Items { rpc Get(Item) returns (Item); }
'''
"#;

/// The right messages, in several encodings.
fn encodings(asked: &Asked) -> [&'static [u8]; 3] {
    match &asked.content[..] {
        b"\0\0\0\0\x02\x08\x01" => {
            [b"\x08\x01\x12\x03one", b"\x12\x03one\x08\x01", b"\x08\x02\x12\x03one\x08\x01"]
        }
        b"\0\0\0\0\x02\x08\x02" => [b"", b"\x08\0", b"\x08\0\x12\0"],
        other => panic!("{other:?}"),
    }
}

/// One turn of an honest server, which changes between encodings.
fn turn(pair: &mut Pair<Reply>) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, asked) in pair.asked(&mut out).iter().rev().enumerate() {
        Answer::right(encodings(asked)[i % 3]).write(asked.stream, &mut out);
    }
    out
}

#[test]
fn every_encoding_is_right_in_pieces_of_any_size() {
    for size in [1, 2, 3, 5, 7, 9, 10, 11, 16, 50, 1 << 16] {
        let mut pair = of_file(TEXT);
        for turns in 1..=10 {
            let bytes = turn(&mut pair);
            pair.receive(&bytes, size);
            assert_eq!(pair.answered, turns * PIPELINE as u32);
        }
    }
}

#[test]
fn nothing_is_allocated_for_encodings_that_were_right_before() {
    for size in [3, 100, 1 << 16] {
        let mut pair = of_file(TEXT);
        for turns in 0..200 {
            if turns == 50 {
                pair.allocations = 0;
            }
            let bytes = turn(&mut pair);
            pair.receive(&bytes, size);
        }
        assert_eq!(pair.allocations, 0, "{size}");
    }
}

#[test]
fn wrong_messages_are_found_in_pieces_of_any_size() {
    for (wrong, part) in [
        (&b"\x08\x02\x12\x03one"[..], "a message test.Item in which `id` is 2; expected 1"),
        (b"\x08\x01\x12\x03onf", "in which `name` is \"onf\"; expected \"one\""),
        (b"\x08\x01", "in which `name` is \"\"; expected \"one\""),
        (b"", "in which `id` is 0; expected 1"),
        (b"\x08\x01\x12\x03one\x18\x01", "the field 3, which test.Item does not have: "),
        (b"\x08\x01\x12\x04one", "a value of 4 bytes, of which 3 came"),
    ] {
        for size in [1, 3, 7, 50, 1 << 16] {
            let mut pair = of_file(TEXT);
            for _ in 0..3 {
                let bytes = turn(&mut pair);
                pair.receive(&bytes, 1 << 16);
            }
            let wrong = loop {
                let mut out = Vec::new();
                for asked in pair.asked(&mut out) {
                    let encodings = encodings(&asked);
                    let is_first = encodings[0].len() == 7;
                    let message = if is_first { wrong } else { encodings[0] };
                    Answer::right(message).write(asked.stream, &mut out);
                }
                if let Err(wrong) = pair.try_receive(&out, size) {
                    break wrong;
                }
            };
            assert!(wrong.received.contains(part), "{part}: {wrong:?}");
            let expected = r#"status 200, the message test.Item {"id":1,"name":"one"} and"#;
            assert!(wrong.expected.starts_with(expected), "{wrong:?}");
        }
    }
}

/// A server announces a long message, and the load must not wait for it, or keep it.
#[test]
fn messages_that_are_too_long_to_compare_are_wrong_at_once() {
    let mut pair = of_file(TEXT);
    let mut out = Vec::new();
    let stream = pair.asked(&mut out)[0].stream;
    let answer = Answer {
        head: owned(HEAD),
        content: Some(vec![0, 0, 1, 2, 0, 8]),
        trailers: Some(owned(OK)),
        frame: 4,
    };
    answer.write(stream, &mut out);
    let wrong = pair.try_receive(&out, 1 << 16).unwrap_err();
    let expected = "a message of 66048 bytes; the expected one has at most 658";
    assert!(wrong.received.starts_with(expected), "{wrong:?}");
}

#[test]
fn a_status_explains_a_wrong_message_that_is_tolerated() {
    use crate::dialect::{At, Dialect};
    let mut pair = of_file(TEXT);
    pair.dialect.tolerate(&mut pair.desk);
    let mut out = Vec::new();
    let stream = pair.asked(&mut out)[0].stream;
    let mut answer = Answer::right(b"\x08\x09");
    set(answer.trailers.as_mut().unwrap(), "grpc-status", "4");
    answer.write(stream, &mut out);
    let Pair { dialect, cursor, talk, desk, .. } = &mut pair;
    let wrong = dialect.receive(At { cursor, talk, desk }, &out, 0, &mut ()).unwrap_err();
    assert_eq!(wrong.received, "grpc-status 4 (DEADLINE_EXCEEDED)");
}

#[test]
fn the_timeout_of_the_load_is_in_every_call() {
    let workload = Workload::from_text(TEXT, "items").unwrap();
    for (timeout, expected) in [(None, None), (Some(Duration::from_secs(5)), Some("5S"))] {
        let place = Destination { host: "a.test:1", timeout, ..Destination::default() };
        let order =
            CompileOptions { seed: 3, pipeline: PIPELINE, place, ..CompileOptions::default() };
        let Compiled::Grpc(dialect) = workload.compile(&order).unwrap() else {
            panic!("another protocol")
        };
        for asked in Pair::new(dialect).asked(&mut Vec::new()) {
            let value = asked.fields.get(b"grpc-timeout");
            assert_eq!(value, expected.map(str::as_bytes));
        }
    }
}

#[test]
fn a_workload_arrives_in_another_process_with_its_types() {
    let workload = Workload::from_text(TEXT, "items").unwrap();
    let sent = serde_json::to_value(&workload).unwrap();
    let again: Workload = serde_json::from_value(sent.clone()).unwrap();
    assert_eq!(format!("{workload:?}"), format!("{again:?}"));
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut sent = sent.clone();
        change(&mut sent["asks"]);
        serde_json::from_value::<Workload>(sent).unwrap_err().to_string()
    };
    // One set of types for all calls.
    assert!(sent["asks"]["types"].is_string());
    let mut keys: Vec<&String> = sent["asks"]["calls"][0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["by_fields", "expected", "message", "path", "weight"]);
    let error = refused(&|asks| asks["types"] = serde_json::Value::Null);
    assert!(error.contains("request 1: JSON needs the `.proto` file"), "{error}");
    let error = refused(&|asks| asks["types"] = "/w==".into());
    assert!(error.contains("descriptors with invalid bytes"), "{error}");
    let error = refused(&|asks| asks["calls"][1]["path"] = "/test.Items/Put".into());
    assert!(error.contains("request 2: the service test.Items has no method Put"), "{error}");
    let error = refused(&|asks| asks["calls"][0]["expected"] = "CA==".into());
    assert!(error.contains("request 1: a message test.Item with invalid bytes"), "{error}");
}

#[test]
fn mistakes_in_files_are_named_with_their_request() {
    let of = |calls: &str| {
        let files = &TEXT[TEXT.find("[files]").unwrap()..];
        let text = format!("protocol = \"grpc\"\nproto = \"items.proto\"\n{calls}\n{files}");
        Workload::from_text(&text, "mine").map(drop).map_err(|error| error.to_string())
    };
    let call = |more: &str| of(&format!("[[request]]\npath = \"/test.Items/Get\"\n{more}"));
    assert_eq!(call(""), Ok(()));
    assert_eq!(call("message_hex = \"0801\"\nexpect = { id = 1 }"), Ok(()));
    for (more, part) in [
        ("message = { idd = 1 }", "request 1: `message`: test.Item has no field \"idd\""),
        ("expect = '{\"id\": 1, \"id\": 1}'", "request 1: `expect`: \"id\" is given twice"),
        ("message = 7", "expected a message as JSON"),
        ("message = { id = nan }", "`message`: no JSON of a message test.Item"),
        ("message = {}\nmessage_hex = \"\"", "request 1: `message` and `message_hex`; remove one"),
        ("expect = {}\nexpect_hex = \"\"", "request 1: `expect` and `expect_hex`; remove one"),
    ] {
        let error = call(more).unwrap_err();
        assert!(error.contains(part), "{more}: {error}");
    }
    let error = of("[[request]]\npath = \"/test.Items/Put\"").unwrap_err();
    assert!(error.contains("request 1: the service test.Items has no method Put"), "{error}");
    let without = "protocol = \"grpc\"\n[[request]]\npath = \"/a/b\"\nmessage = {}";
    let error = Workload::from_text(without, "mine").unwrap_err().to_string();
    assert!(error.contains("JSON needs the `.proto` file: `--proto"), "{error}");
    let missing = format!("proto = \"x.proto\"\n{without}");
    let error = Workload::from_text(&missing, "mine").unwrap_err().to_string();
    assert!(error.contains("`proto`: the content of \"x.proto\" is not in [files]"), "{error}");
}
