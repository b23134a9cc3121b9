//! redis-py, with its default settings and with RESP3, gets the same results from the proxy as from one
//! server.

use crate::support::shard::{nodes::Node, sharded};
use regatta_testkit::skip;
use std::{path::Path, process::Command};

fn lines(library: &Path, port: u16, protocol: &str) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/shard/everyday.py");
    let run = Command::new("python3")
        .env("PYTHONPATH", library)
        .arg(script)
        .args([&port.to_string(), protocol])
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    String::from_utf8_lossy(&run.stdout).lines().map(str::to_owned).collect()
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn redis_py_gets_the_same_results_as_from_one_server() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/redis-py");
    if !library.join("redis").is_dir() {
        return skip("redis-py is not installed (scripts/setup)");
    }
    let (_nodes, proxy) = sharded("epoll", 4, &[]);
    let one = Node::start(&[]);
    for protocol in ["2", "3"] {
        let expected = lines(&library, one.addr().port(), protocol);
        let found = lines(&library, proxy.addr.port(), protocol);
        assert!(expected.len() > 40, "{expected:#?}");
        assert_eq!(expected.len(), found.len());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(expected, found, "RESP{protocol}");
        }
    }
}
