//! `regatta shard status`.

use crate::support::{
    hub::{hub, with_metrics},
    regatta, run,
    shard::{client, nodes::Node},
    until,
};
use regatta_testkit::port;

/// The exit status, and what is printed to stdout and stderr.
fn status(arguments: &[&str]) -> (Option<i32>, String, String) {
    let ended = run(regatta!("shard status").args(arguments));
    (ended.status.code(), ended.stdout, ended.stderr)
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn the_state_of_a_running_proxy_is_shown() {
    let mut nodes = [Node::start(&[]), Node::start(&[])];
    let addresses = nodes.each_ref().map(|node| node.addr().to_string());
    let (proxy, page) =
        with_metrics(regatta!("shard --nodes {} --metrics 127.0.0.1:0", addresses.join(",")));
    let page = page.to_string();
    let mut client = client(&proxy);
    client.say("SET a 1");
    client.say("LPUSH a x");
    client.say("SET b 1");
    client.say("PING");
    let (code, text, error) = status(&[&page]);
    assert_eq!((code, &error[..]), (Some(0), ""), "{text}");
    for line in ["state     ready", "nodes     2 of 2 up", "clients   1 now, 1 since the start"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(text.contains("requests  4: 1 local, 3 write\nerrors    1 replies"), "{text}");
    // `a` is on the second node.
    let second = text.lines().find(|line| line.starts_with(&addresses[1])).expect(&text);
    let cells: Vec<&str> = second.split_whitespace().collect();
    assert_eq!((&cells[1..5], cells.len()), (&["up", "2", "1", "<="][..], 10), "{text}");
    nodes[0].kill();
    until("the node is down", || {
        client.say("SET b 1");
        status(&[&page]).0 == Some(1)
    });
    let (code, text, _) = status(&[&page, "--json"]);
    assert_eq!(code, Some(1));
    let json: serde_json::Value = serde_json::from_str(&text).expect(&text);
    let is_up = [0, 1].map(|node| json["nodes"][node]["is_up"].as_bool());
    assert_eq!(is_up, [Some(false), Some(true)], "{text}");
    assert_eq!(json["nodes"][1]["replies"], 2, "{text}");
    assert!(json["nodes"][1]["p99_at_most_s"].as_f64().is_some_and(|p99| p99 > 0.0), "{text}");
}

#[test]
fn a_drain_is_shown_and_readiness_is_a_status_of_its_own() {
    // The node does not exist.
    let (proxy, page) = with_metrics(regatta!(
        "shard --nodes 127.0.0.1:1 --metrics 127.0.0.1:0 --drain-delay 2s --drain 1h"
    ));
    let page = page.to_string();
    let mut clients = [client(&proxy), client(&proxy)];
    clients.iter_mut().for_each(|client| drop(client.say("SET a 1")));
    until("it is ready, and the node is down", || {
        status(&[&page, "--ready"]) == (Some(0), "ready\n".into(), String::new())
            && status(&[&page]).0 == Some(1)
    });
    proxy.signal("-TERM");
    until("a stop is requested", || status(&[&page, "--ready"]).0 == Some(1));
    let (_, text, _) = status(&[&page]);
    assert!(text.starts_with("state     "), "{text}");
    until("its clients are drained", || {
        let (code, text, _) = status(&[&page]);
        code == Some(1) && text.starts_with("state     draining for ")
    });
    let (code, text, _) = status(&[&page]);
    assert_eq!(code, Some(1));
    assert!(text.lines().next().unwrap().ends_with(" s, 2 clients are left"), "{text}");
    let (code, text, _) = status(&[&page, "--ready"]);
    assert_eq!((code, &text[..]), (Some(1), "stopping: no more clients are accepted\n"));
    let (_, text, _) = status(&[&page, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect(&text);
    assert!(json["draining_since_unix_s"].as_u64() > Some(1_700_000_000), "{text}");
    assert_eq!((&json["is_ready"], &json["hot_keys"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn a_proxy_that_cannot_be_reached_is_an_error() {
    let nowhere = format!("127.0.0.1:{}", port::free());
    let (_hub, of_hub) = hub("epoll", &[]);
    let of_hub = of_hub.to_string();
    for (arguments, expected) in [
        (&[&nowhere[..]][..], "cannot connect to 127.0.0.1:"),
        (&["127.0.0.1"], "expected HOST:PORT, e.g. 127.0.0.1:9121"),
        (&[&of_hub], "/metrics is not the page of a shard proxy"),
        (&[], "required"),
        (&["127.0.0.1:1", "--nodes", "127.0.0.1:1"], "unexpected argument"),
    ] {
        let (code, text, error) = status(arguments);
        assert_eq!((code, &text[..]), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
