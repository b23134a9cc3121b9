//! `regatta load grpc://…` against a server with grpcio, and its options.

mod streams;
mod thresholds;
mod typed;

use crate::support::{Server, json, refused, regatta, run};
use regatta_testkit::{child::Ended, skip};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of grpcio, which must have this package; `None`, after a message, if it is not installed.
fn library(package: &str) -> Option<PathBuf> {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/grpcio");
    if !library.join(package).is_dir() {
        skip("grpcio is not installed (scripts/setup)");
        return None;
    }
    Some(library)
}

/// A server with grpcio; `None`, after a message, if that is not installed.
fn server() -> Option<Server> {
    let library = library("grpc")?;
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", library).arg(home.join("tests/it/grpc/server.py"));
    Some(Server::start(command))
}

/// Loads a method.
fn load(server: &Server, path: &str, more: &[&str]) -> Ended {
    run(regatta!("load grpc://{}{path} --json -", server.addr).args(more))
}

/// Checks that so many calls were right, and none was wrong.
#[track_caller]
fn assert_right(output: &Ended, calls: u64) {
    assert_eq!(output.code(), 0, "{}", output.stderr);
    let result = json(output);
    let errors = result["errors"].as_object().expect("errors by kind");
    assert!(errors.values().all(|count| count.as_u64() == Some(0)), "{errors:?}");
    assert_eq!(result["requests"], calls, "{result:#}");
}

/// Checks that a call was wrong, for this reason.
#[track_caller]
fn assert_wrong(output: &Ended, reason: &str) {
    let result = json(output);
    assert_eq!(output.code(), 1, "{result:#}");
    let received = result["first_wrong"]["received"].as_str().expect("a wrong reply");
    assert!(received.contains(reason), "{reason}: {received}");
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn calls_of_grpcio_are_right() {
    let Some(server) = server() else { return };
    let echo = ["--message-hex", "0807", "--expect-hex", "0807"];
    for load_of in [&["-c", "1", "-n", "200"][..], &["-c", "4", "-p", "16", "-n", "600"]] {
        let calls = load_of[load_of.len() - 1].parse().unwrap();
        assert_right(&load(&server, "/test.Items/Echo", &[load_of, &echo].concat()), calls);
    }
    // A server that wants to compress, and may not.
    assert_right(
        &load(&server, "/test.Items/Compressed", &[&echo[..], &["-n", "50"]].concat()),
        50,
    );
    // The empty message, and any.
    let empty = ["--expect-hex", "", "-n", "50", "-c", "2"];
    assert_right(&load(&server, "/test.Items/Empty", &empty), 50);
    assert_right(&load(&server, "/test.Items/Echo", &["-n", "50", "-c", "2"]), 50);
}

/// Longer than the windows of a stream and of the connection.
#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn long_messages_of_grpcio_are_right() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("message");
    fs::write(&path, vec![b'x'; 300_000]).expect("written");
    let file = path.to_str().expect("a path");
    let sent = ["--message-file", file, "-c", "2", "-p", "4", "-n", "40"];
    assert_right(&load(&server, "/test.Items/Echo", &sent), 40);
    let expected = [&sent[..], &["--expect-hex", "78"]].concat();
    assert_wrong(&load(&server, "/test.Items/Echo", &expected), "a message of 300000 bytes");
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn wrong_calls_of_grpcio_are_found_with_their_cause() {
    let Some(server) = server() else { return };
    let few = ["-c", "1", "-n", "5", "--message-hex", "3f3f"];
    for (path, expected, reason) in [
        ("/test.Items/Fail", "3f3f", "grpc-status 5 (NOT_FOUND): no item ä\\n100%"),
        ("/test.Items/None", "3f3f", "grpc-status 12 (UNIMPLEMENTED)"),
        ("/test.Items/Changing", "3f3f", "a message that differs from byte 1 on: 21"),
        ("/test.Items/Empty", "3f3f", "a message of 0 bytes"),
        ("/test.Items/Echo", "", "a message of 2 bytes"),
    ] {
        let args = [&few[..], &["--expect-hex", expected]].concat();
        assert_wrong(&load(&server, path, &args), reason);
    }
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn a_workload_file_has_several_calls() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items.toml");
    let calls: String = (0..4)
        .map(|i| {
            format!(
                "[[request]]\npath = \"/test.Items/Echo\"\nmessage_hex = \"080{i}\"\n\
                 expect_hex = \"080{i}\"\n"
            )
        })
        .collect();
    fs::write(&path, format!("protocol = \"grpc\"\n{calls}")).expect("written");
    let args = ["--workload", path.to_str().expect("a path"), "-c", "2", "-p", "16", "-n", "400"];
    assert_right(&load(&server, "", &args), 400);
    // Two load processes, which get the workload in a message.
    assert_right(&load(&server, "", &[&args[..], &["--processes", "2"]].concat()), 400);
}

/// A refusal does not need a server.
#[track_caller]
fn assert_refused(args: &[&str], part: &str) {
    let printed = refused(regatta!("load").args(args));
    assert!(printed.contains(part), "{args:?}: {printed}");
}

#[test]
fn wrong_urls_and_options_are_refused() {
    let url = "grpc://127.0.0.1:1/a.B/C";
    assert_refused(&["grpc://127.0.0.1:1"], "expected /PACKAGE.SERVICE/METHOD");
    assert_refused(&["grpc://127.0.0.1:1/a.B"], "expected /PACKAGE.SERVICE/METHOD");
    assert_refused(&["grpc://127.0.0.1/a.B/C"], "has no port");
    assert_refused(&[url, "--message-hex", "08x"], "'x' is not a hex digit");
    assert_refused(&[url, "--message-hex", "080"], "3 hex digits");
    assert_refused(&[url, "--message-file", "/nowhere"], "--message-file /nowhere");
    assert_refused(&[url, "--message-file", "/dev/zero"], "at most 4 MiB");
    assert_refused(&[url, "--message-hex", "08", "--message-file", "a"], "cannot be used with");
    assert_refused(&[url, "--http2"], "--http2 applies only to HTTP URLs");
    let http = ["http://127.0.0.1:1/", "--expect-hex", "08"];
    assert_refused(&http, "--expect-hex applies only to URLs of gRPC");
}
