//! `regatta load --http2` as the client, on every model: it checks every reply.

use crate::support::{Server, on_every_shared};
use serde_json::Value;
use std::process::Command;

/// Runs `regatta load` and returns its result.
fn load(server: &Server, path: &str, more: &[&str]) -> Value {
    let url = format!("http://{}{path}", server.addr);
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(["load", &url, "--http2", "--json", "-"]).args(more);
    let output = command.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{more:?}: {printed}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Checks that all requests were answered right.
fn check(result: &Value, least: u64) {
    assert_eq!(result["errors"]["total"].as_u64().or(result["errors"].as_u64()), Some(0));
    assert!(result["requests"].as_u64().is_some_and(|requests| requests >= least), "{result:#}");
}

#[test]
fn hello_is_right_on_1_and_128_streams_of_every_model() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--http2"]);
        for streams in ["1", "128"] {
            let result = load(&server, "/", &["-c", "4", "-p", streams, "-d", "300ms"]);
            check(&result, 100);
        }
    });
}
