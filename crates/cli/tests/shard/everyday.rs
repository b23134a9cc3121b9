//! redis-py, with its default settings and with RESP3, gets the same results from the proxy as from one
//! server.

use super::{Node, sharded};
use std::{path::Path, process::Command};

fn lines(library: &Path, port: u16, protocol: &str) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shard/everyday.py");
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
fn redis_py_gets_the_same_results_as_from_one_server() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/redis-py");
    if !library.join("redis").is_dir() {
        return eprintln!("skipped: redis-py is not installed; scripts/setup installs it");
    }
    let Some((_nodes, proxy)) = sharded("epoll", 4, &[]) else { return };
    let one = Node::start(&[]).expect("redis-server is installed");
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
