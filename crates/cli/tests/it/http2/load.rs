//! `regatta load --http2` as the client, on every model: it checks every reply.

use crate::support::{Server, on_every_shared, regatta, run};
use serde_json::Value;

/// Runs `regatta load` and returns its result.
fn load(server: &Server, path: &str, more: &[&str]) -> Value {
    let url = format!("http://{}{path}", server.addr);
    let ended = run(regatta!("load {url} --http2 --json -").args(more));
    assert_eq!(ended.code(), 0, "{more:?}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Checks that so many requests were answered right.
fn check(model: &str, result: &Value, expected: u64) {
    let errors = result["errors"].as_object().expect("errors by kind");
    assert!(errors.values().all(|count| count.as_u64() == Some(0)), "{model}: {errors:?}");
    assert_eq!(result["requests"], expected, "{model}: {result:#}");
}

#[test]
fn hello_is_right_on_1_and_128_streams_of_every_model() {
    on_every_shared(|model| {
        let server = Server::of("hello", model, &["--http2"]);
        for streams in ["1", "128"] {
            let result = load(&server, "/", &["-c", "4", "-p", streams, "-n", "2000"]);
            check(model, &result, 2_000);
        }
    });
}

/// More streams than replies that may wait for jobs.
#[test]
fn hash_is_right_on_128_streams_of_every_model_also_with_offloading() {
    on_every_shared(|model| {
        let is_alone = matches!(model, "fork" | "prefork" | "threads");
        let offloads: &[&[&str]] = if is_alone { &[&[]] } else { &[&[], &["--offload", "2"]] };
        for offload in offloads {
            let server = Server::of("hash", model, &[&["--http2"], *offload].concat());
            for path in ["/hash?n=1", "/hash?n=9&salt=c0ffee"] {
                let result =
                    load(&server, path, &["-c", "1", "-p", "128", "-n", "200", "--timeout", "60s"]);
                check(model, &result, 200);
            }
            let salted =
                ["--workload", "hash", "-c", "1", "-p", "16", "-n", "64", "--timeout", "60s"];
            check(model, &load(&server, "/hash", &salted), 64);
        }
    });
}
