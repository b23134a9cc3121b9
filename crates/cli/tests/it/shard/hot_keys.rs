//! The page with hot keys, and `regatta shard status` with it.

use crate::support::{
    Server,
    hub::{page, with_metrics},
    on_models, regatta, run,
    shard::{client, client::Client, nodes::Node, on_shard_models},
    until,
};
use regatta_proto::resp::write_command;
use serde_json::Value;
use std::net::SocketAddr;

/// A proxy in front of these nodes that serves hot keys, and the address of its pages.
fn proxy(model: &str, nodes: &[Node], more: &[&str]) -> (Server, SocketAddr) {
    let addresses: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
    with_metrics(
        regatta!(
            "shard --model {model} --cores 2 --metrics 127.0.0.1:0 --nodes {}",
            addresses.join(",")
        )
        .args(more),
    )
}

/// The page with hot keys.
fn hot(pages: SocketAddr) -> Value {
    let (status, text) = page(pages, "/hot");
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).expect(&text)
}

/// Sends requests, of which every second one is for the hot key and the others are for keys of their own.
fn busy(client: &mut Client, hot: &[u8], requests: usize) {
    let mut bytes = Vec::new();
    for number in 0..requests {
        let other = format!("key:{number}");
        let key = if number % 2 == 0 { hot } else { other.as_bytes() };
        write_command([&b"GET"[..], key], &mut bytes);
    }
    client.raw(&bytes);
    for _ in 0..requests {
        client.next().expect("a reply");
    }
}

on_shard_models!(a_key_with_half_of_the_requests_is_the_hottest: sharing);

fn a_key_with_half_of_the_requests_is_the_hottest(model: &str) {
    let nodes = [Node::start(&[]), Node::start(&[])];
    let (proxy, pages) = proxy(model, &nodes, &["--hot-keys"]);
    let mut clients: Vec<Client> = (0..4).map(|_| client(&proxy)).collect();
    let key = b"hot \"\xff\n key";
    // The page has the last ten seconds at least.
    clients.iter_mut().for_each(|client| busy(client, key, 4_000));
    let page = hot(pages);
    assert_eq!(page["sampled_one_in"], 64, "{page}");
    // One of each 64 requests of each core; the last ones of a core may be none.
    let samples = page["samples"].as_u64().unwrap();
    assert!((246..=252).contains(&samples), "{model}: {page}");
    let first = &page["keys"][0];
    assert_eq!(first["key"], r#"hot \"\xff\n key"#, "{model}: {page}");
    let count = first["samples"].as_u64().unwrap();
    // 125 are expected, with a standard deviation of 8.
    assert!((75..=175).contains(&count), "{model}: {page}");
    let second = page["keys"][1]["samples"].as_u64().unwrap();
    assert!(second <= samples / 128 + 4, "{model}: {page}");
    let text = run(regatta!("shard status {pages}")).stdout;
    let line = text.lines().find(|line| line.ends_with(r#"  hot \"\xff\n key"#)).expect(&text);
    let share: f64 = line.split('%').next().unwrap().trim().parse().expect(line);
    assert!((30.0..70.0).contains(&share), "{model}: {line}");
}

on_shard_models!(requests_of_clients_that_have_not_authenticated_do_not_count: epoll);

fn requests_of_clients_that_have_not_authenticated_do_not_count(model: &str) {
    let nodes = [Node::start(&["--requirepass", "secret"])];
    let (proxy, pages) = proxy(model, &nodes, &["--hot-keys", "--auth", "nodes"]);
    let mut client = client(&proxy);
    busy(&mut client, b"hot", 4_000);
    let page = hot(pages);
    assert_eq!(page["samples"], 0, "{model}: {page}");
    assert_eq!(client.say("AUTH secret"), "+OK\r\n", "{model}");
    busy(&mut client, b"hot", 4_000);
    let page = hot(pages);
    assert_eq!(page["keys"][0]["key"], "hot", "{model}: {page}");
}

on_shard_models!(keys_of_each_kind_of_request_are_counted: epoll);

fn keys_of_each_kind_of_request_are_counted(model: &str) {
    let nodes = [Node::start(&[]), Node::start(&[])];
    let (proxy, pages) = proxy(model, &nodes, &["--hot-keys"]);
    let mut client = client(&proxy);
    let counted = |of: &str| {
        let page = hot(pages);
        let keys = page["keys"].as_array().unwrap();
        let found = keys.iter().find(|key| key["key"] == of);
        found.map_or(0, |key| key["samples"].as_u64().unwrap())
    };
    for (request, key) in [
        ("MGET split:1 split:2 split:3 split:4", "split:3"),
        ("LPUSH list x", "list"),
        ("EVAL return(1) 1 script", "script"),
        ("BLPOP list 1", "list"),
    ] {
        let before = counted(key);
        (0..128).for_each(|_| drop(client.say(request)));
        assert!(counted(key) > before, "{request}");
    }
    // What the proxy answers or refuses does not count, and neither does a request whose key is unknown.
    let before = hot(pages)["samples"].as_u64();
    for request in ["PING", "GET", "NONSENSE a", "MSET a", "CLIENT ID"] {
        (0..128).for_each(|_| drop(client.say(request)));
    }
    assert_eq!(hot(pages)["samples"].as_u64(), before);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_reload_starts_and_ends_the_sampling() {
    let node = Node::start(&[]);
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("shard.toml");
    let write = |hot: bool| {
        let nodes = node.addr();
        let text = format!("nodes = \"{nodes}\"\nmetrics = \"127.0.0.1:0\"\nhot_keys = {hot}\n");
        std::fs::write(&path, text).unwrap();
    };
    write(false);
    let (proxy, pages) = with_metrics(regatta!("shard --cores 1 --config").arg(&path));
    let mut client = client(&proxy);
    busy(&mut client, b"hot", 1_000);
    assert_eq!(page(pages, "/hot").0, 404);
    write(true);
    proxy.signal("-HUP");
    until("the page is there", || page(pages, "/hot").0 == 200);
    busy(&mut client, b"hot", 1_000);
    assert_eq!(hot(pages)["keys"][0]["key"], "hot");
    write(false);
    proxy.signal("-HUP");
    until("the page is gone", || page(pages, "/hot").0 == 404);
    busy(&mut client, b"hot", 1_000);
}

on_models!(without_the_option_there_is_no_page: epoll);

fn without_the_option_there_is_no_page(model: &str) {
    let (_proxy, pages) =
        with_metrics(regatta!("shard --model {model} --nodes 127.0.0.1:1 --metrics 127.0.0.1:0"));
    assert_eq!(page(pages, "/hot").0, 404);
    assert_eq!(page(pages, "/metrics").0, 200);
}
