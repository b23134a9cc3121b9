//! Messages as JSON, against a server whose messages Google's library for Python compiles, encodes and reads.

use super::{assert_refused, assert_right, assert_wrong, library, load};
use crate::support::Server;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of the `.proto` files.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/grpc")
}

fn proto() -> String {
    folder().join("items.proto").display().to_string()
}

/// Messages that both sides read: numbers at their limits, presence, maps, and the well-known types.
fn cases() -> Value {
    let item = json!({
        "longId": "-9223372036854775808", "big": 18_446_744_073_709_551_615_u64, "small": -1,
        "price": 1e-7, "weight": 0.1, "stock": 0, "sizes": [1, -1, 0], "color": "RED",
        "data": "_-8=", "text": "", "mask": "a,bC.d",
        "at": "2023-11-14T22:13:20.000000001+01:00", "during": "-1.5s", "maybe": 0,
        "weights": { "1": 0.5, "-2": "NaN", "3": 0, "0": 1 },
        "free": { "a": [1, "b", null, true, { "c": -2.5 }], "d": {} },
        "old": { "id": 0, "size": 5, "sizes": [1, 2], "part": { "n": 1 }, "[old.note]": "ä" },
    });
    let mut any = item.clone();
    any["@type"] = "type.googleapis.com/typed.Item".into();
    let known = json!({ "@type": "a.b/google.protobuf.Duration", "value": "3.000001s" });
    let parts = json!({ "x": { "price": "NaN" }, "y": { "price": "-Infinity" }, "": {} });
    json!({
        "empty": {},
        "scalars": item,
        "messages": { "inner": item, "items": [{}, item, {}], "parts": parts },
        "any": { "any": any },
        "well-known": { "any": known, "inner": {}, "at": "0001-01-01T00:00:00Z" },
        "texts": { "data": "", "name": "texts", "text": "\u{0}\u{1f600}\"\\", "color": 7 },
    })
}

/// A server with the cases, each with its name as a field; `None`, after a message, if grpcio is not installed.
fn server(cases: &mut Value) -> Option<Server> {
    for (name, case) in cases.as_object_mut().expect("an object") {
        case["name"] = name.as_str().into();
    }
    let library = library("grpc_tools")?;
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), cases.to_string()).expect("written");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", library)
        .arg(folder().join("typed.py"))
        .arg(folder())
        .arg(file.path());
    // It has read the file when it listens.
    Some(Server::start(command))
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn messages_of_another_library_are_read_and_written_in_the_same_way() {
    let mut cases = cases();
    let Some(server) = server(&mut cases) else { return };
    for (name, case) in cases.as_object().expect("an object") {
        let json = case.to_string();
        // `Turned` has another order of fields and entries in each reply.
        for method in ["Check", "Turned"] {
            let args =
                ["--proto", &proto(), "--message", &json, "--expect", &json, "-n", "50", "-c", "2"];
            eprintln!("{method} {name}");
            assert_right(&load(&server, &format!("/typed.Items/{method}"), &args), 50);
        }
    }
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn wrong_messages_are_found_with_the_first_field_that_differs() {
    let mut cases = json!({ "a": { "sizes": [1, 2], "parts": { "x": { "price": 2.5 } } } });
    let Some(server) = server(&mut cases) else { return };
    for (method, expected, reason) in [
        (
            "Check",
            r#"{"name": "b"}"#,
            r#"a message typed.Item in which `name` is "a"; expected "b""#,
        ),
        ("Check", r#"{"name": "a", "sizes": [1, 3]}"#, "`sizes[1]` is 2; expected 3"),
        (
            "Turned",
            r#"{"name": "a", "sizes": [1, 2]}"#,
            r#"`parts["x"]` is a typed.Item; expected not set"#,
        ),
        (
            "Turned",
            r#"{"name": "a", "sizes": [1, 2], "parts": {"x": {"price": 2}}}"#,
            r#"`parts["x"].price` is 2.5; expected 2"#,
        ),
        (
            "Newer",
            r#"{"name": "a", "sizes": [1, 2], "parts": {"x": {"price": 2.5}}}"#,
            "the field 99, which typed.Item does not have",
        ),
        ("Late", "{}", "grpc-status 4 (DEADLINE_EXCEEDED): too late"),
    ] {
        let message = cases["a"].to_string();
        let args = [
            "--proto",
            &proto(),
            "--message",
            &message,
            "--expect",
            expected,
            "-n",
            "5",
            "-c",
            "1",
        ];
        assert_wrong(&load(&server, &format!("/typed.Items/{method}"), &args), reason);
    }
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn the_timeout_is_announced_to_the_server() {
    let Some(server) = server(&mut json!({})) else { return };
    for (timeout, seconds) in [("7s", 7), ("1500ms", 2), ("2m", 120)] {
        let expected = format!(r#"{{"longId": {seconds}}}"#);
        let args = [
            "--proto",
            &proto(),
            "--expect",
            &expected,
            "--timeout",
            timeout,
            "-n",
            "20",
            "-c",
            "1",
        ];
        assert_right(&load(&server, "/typed.Items/Remaining", &args), 20);
    }
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn a_workload_file_with_json_arrives_in_load_processes() {
    let mut cases = cases();
    let Some(server) = server(&mut cases) else { return };
    let temporary = tempfile::tempdir().expect("a folder");
    fs::create_dir(temporary.path().join("protos")).expect("created");
    for name in ["items.proto", "old.proto"] {
        fs::copy(folder().join(name), temporary.path().join("protos").join(name)).expect("copied");
    }
    let calls: String = cases
        .as_object()
        .expect("an object")
        .values()
        .map(|case| {
            format!("[[request]]\npath = \"/typed.Items/Turned\"\nmessage = '''{case}'''\nexpect = '''{case}'''\n")
        })
        .collect();
    let path = temporary.path().join("mine.toml");
    fs::write(&path, format!("protocol = \"grpc\"\nproto = \"protos/items.proto\"\n{calls}"))
        .expect("written");
    let args = ["--workload", path.to_str().expect("a path"), "-c", "2", "-p", "8", "-n", "200"];
    assert_right(&load(&server, "", &args), 200);
    assert_right(&load(&server, "", &[&args[..], &["--processes", "2"]].concat()), 200);
}

/// A number in every kind of place. The library leaves out the defaults of the first message.
const EACH: &str = r#"{
    "name": "item {n}", "longId": {n}, "price": {n-1}, "weight": {n}, "stock": {n-1}, "text": "{n}-{n-1}",
    "sizes": [{n}, -1, {n+100}], "items": [{ "big": {n+100} }, {}, { "inner": { "name": "{n}" } }],
    "maybe": {n-1}, "small": {n}, "old": { "id": {n-1}, "sizes": [1, {n}], "[old.note]": "n{n}" },
    "color": "RED", "parts": { "x": { "price": 2.5 } }, "at": "2024-01-31T12:00:00Z"
}"#;

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn streams_of_another_library_are_compared_with_the_numbers_of_their_messages() {
    let Some(server) = server(&mut json!({ "numbers": { "each": EACH } })) else { return };
    let message = r#"{"name": "numbers", "small": 140}"#;
    let args = [
        "--proto",
        &proto(),
        "--message",
        message,
        "--stream",
        "-c",
        "2",
        "-p",
        "4",
        "-n",
        "40",
        "--timeout",
        "120s",
    ];
    let of = |method: &str, each: &str, more: &[&str]| {
        let args = [&args[..], &["--expect", each], more].concat();
        load(&server, &format!("/typed.Items/{method}"), &args)
    };
    for more in [&["--messages", "140"][..], &[], &["--processes", "2"]] {
        assert_right(&of("Count", EACH, more), 40);
    }
    // Each message has another order of fields.
    assert_right(&of("CountTurned", EACH, &["--messages", "140"]), 40);
    let other = |from: &str, to: &str| EACH.replacen(from, to, 1);
    for (method, each, messages, reason) in [
        (
            "Count",
            other("{n}", "{n-1}"),
            "140",
            r#"message 1: a message typed.Item in which `name` is "item 1"; expected "item 0""#,
        ),
        (
            "CountTurned",
            other(r#"{ "id": {n-1}"#, r#"{ "id": {n}"#),
            "140",
            "message 1: a message typed.Item in which `old.id` is 0; expected 1",
        ),
        (
            "Count",
            other("RED", "NONE"),
            "140",
            "message 1: a message typed.Item in which `color` is RED; expected NONE",
        ),
        ("Count", EACH.into(), "141", "no message 141: the stream ended after 140 of 141 messages"),
        ("CountTurned", EACH.into(), "139", "bytes of message 140; expected 139 messages"),
    ] {
        assert_wrong(&of(method, &each, &["--messages", messages]), reason);
    }
}

#[test]
fn wrong_files_and_messages_are_refused() {
    let url = "grpc://127.0.0.1:1/typed.Items/Check";
    let proto = proto();
    assert_refused(&[url, "--message", "{}"], "--proto");
    assert_refused(&[url, "--expect", "{}"], "--proto");
    assert_refused(
        &[url, "--proto", "/nowhere.proto"],
        "--proto /nowhere.proto: cannot read /nowhere.proto",
    );
    assert_refused(&[url, "--proto", "/dev/zero"], "expected a file of at most 4 MiB");
    assert_refused(
        &["grpc://127.0.0.1:1/typed.Items/None", "--proto", &proto],
        "it has Check, Turned,",
    );
    assert_refused(
        &["grpc://127.0.0.1:1/typed.None/None", "--proto", &proto],
        "which have typed.Items",
    );
    assert_refused(
        &[url, "--proto", &proto, "--message", r#"{"nam": ""}"#],
        "--message: typed.Item has no field \"nam\"; it has name,",
    );
    assert_refused(
        &[url, "--proto", &proto, "--expect", r#"{"name": "", "name": ""}"#],
        "--expect: \"name\" is given twice",
    );
    assert_refused(
        &[url, "--proto", &proto, "--message", "{}", "--message-hex", "08"],
        "cannot be used with",
    );
    assert_refused(
        &[url, "--proto", &proto, "--expect", "{}", "--expect-hex", "08"],
        "cannot be used with",
    );
    assert_refused(
        &["http://127.0.0.1:1/", "--proto", &proto],
        "--proto applies only to URLs of gRPC",
    );
    let stream = ["grpc://127.0.0.1:1/typed.Items/Count", "--proto", &proto];
    let refused = |more: &[&str], part| assert_refused(&[&stream[..], more].concat(), part);
    refused(&[], "returns a stream of messages; expected a unary method, or `--stream`");
    refused(
        &["--stream", "--expect", r#"{"longId": {m}}"#],
        "--expect: no JSON: key must be a string",
    );
    refused(
        &["--stream", "--expect", r#"{"longId": {n+x}}"#],
        "--expect: {n+x} is unknown; expected {n}",
    );
    refused(
        &["--stream", "--expect", r#"{"color": {n}}"#],
        "--expect: `color`: a placeholder in a field",
    );
    refused(&["--expect", "{}", "--messages", "1"], "--stream");
    assert_refused(&[url, "--proto", &proto, "--stream", "--expect", "{}"], "returns one message");
    assert_refused(&[url, "--proto", &proto, "--expect", r#"{"longId": {n}}"#], "needs `--stream`");
}
