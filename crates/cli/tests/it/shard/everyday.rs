//! redis-py, with its default settings and with RESP3, gets the same results from the proxy as from one
//! server.

use crate::support::shard::{client, nodes::Node, on_shard_models, sharded};
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

on_shard_models!(client_libraries_find_their_user_and_the_fields_of_info_that_they_read: all);

// The test suite of redis-py reads these fields of INFO before its first test, and asks for the rest.
fn client_libraries_find_their_user_and_the_fields_of_info_that_they_read(model: &str) {
    let (_nodes, proxy) = sharded(model, 2, &[]);
    let mut client = client(&proxy);
    let info = client.say("INFO");
    let bits = format!("arch_bits:{}", usize::BITS);
    for field in ["redis_version:7.0.15", &bits, "cluster_enabled:0"] {
        assert!(info.lines().any(|line| line == field), "{model}: {field}: {info}");
    }
    assert_eq!(client.say("ACL WHOAMI"), "$7\r\ndefault\r\n", "{model}");
    assert!(client.say("ACL GENPASS 8").starts_with("$2\r\n"), "{model}");
    assert!(client.say("ACL CAT").contains("\r\nkeyspace\r\n"), "{model}");
    let refused = client.say("ACL LIST");
    assert!(
        refused.starts_with("-ERR the proxy does not support 'acl|list'"),
        "{model}: {refused}"
    );
}
