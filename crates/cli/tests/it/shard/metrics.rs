//! The page with the metrics of the proxy: each request and each reply counts once.

use crate::support::{
    hub::{metric, with_metrics},
    refused, regatta,
    shard::{client, client::Client, nodes::Node, on_shard_models},
    until,
};
use std::net::SocketAddr;

/// A proxy in front of these nodes, and the address of its page.
fn proxy(model: &str, nodes: &[Node]) -> (crate::support::Server, SocketAddr) {
    let addresses: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
    with_metrics(regatta!(
        "shard --model {model} --cores 2 --metrics 127.0.0.1:0 --nodes {}",
        addresses.join(",")
    ))
}

/// The requests of each kind.
fn requests(page: SocketAddr) -> [u64; 6] {
    ["read", "write", "other", "several_nodes", "local", "refused"]
        .map(|kind| metric(page, &format!("regatta_shard_requests_total{{kind=\"{kind}\"}}")))
}

on_shard_models!(each_request_and_each_reply_counts_once: sharing);

fn each_request_and_each_reply_counts_once(model: &str) {
    let nodes = [Node::start(&[]), Node::start(&[])];
    let (proxy, page) = proxy(model, &nodes);
    let mut clients: Vec<Client> = (0..6).map(|_| client(&proxy)).collect();
    for client in &mut clients {
        for request in
            ["SET a 1", "SET b 2", "GET a", "LPUSH a x", "TIME", "PING", "nonsense", "GET"]
        {
            client.say(request);
        }
        assert_eq!(client.say("MSET a 1 b 2 c 3 d 4"), "+OK\r\n", "{model}");
        assert_eq!(client.say("DBSIZE"), ":4\r\n", "{model}");
        client.raw(b"GET a\r\nGET b\r\nGET c\r\nLPUSH a x\r\n");
        for _ in 0..4 {
            client.next();
        }
        assert_eq!(client.say("MULTI"), "+OK\r\n", "{model}");
        assert_eq!(client.say("GET a"), "+QUEUED\r\n", "{model}");
        assert_eq!(client.say("EXEC"), "*1\r\n$1\r\n1\r\n", "{model}");
        assert_eq!(client.say("CLIENT SETINFO LIB-NAME x"), "+OK\r\n", "{model}");
    }
    // Reads: GET a, three in the pipeline, one in the transaction. Others: TIME, MULTI and EXEC.
    assert_eq!(requests(page), [5, 4, 3, 2, 2, 2].map(|each| 6 * each), "{model}");
    assert_eq!(metric(page, "regatta_shard_error_replies_total"), 6 * 4, "{model}");
    let of_nodes = |name: &str| -> u64 {
        let of = |node: &Node| {
            metric(page, &format!("regatta_shard_{name}{{node=\"{}\"}}", node.addr()))
        };
        nodes.iter().map(of).sum()
    };
    assert_eq!(of_nodes("node_error_replies_total"), 6 * 2, "{model}");
    // Two for MSET and for DBSIZE; one for the 10 others that go to a node, counting those of the transaction.
    assert_eq!(of_nodes("node_replies_total"), 6 * (5 + 2 + 2 + 4 + 2), "{model}");
    assert_eq!((metric(page, "regatta_shard_clients"), of_nodes("node_up")), (6, 2), "{model}");
}

on_shard_models!(a_node_that_is_down_is_shown: epoll, percore);

fn a_node_that_is_down_is_shown(model: &str) {
    let mut nodes = [Node::start(&[]), Node::start(&[])];
    let (proxy, page) = proxy(model, &nodes);
    let mut client = client(&proxy);
    let up =
        |node: &Node| metric(page, &format!("regatta_shard_node_up{{node=\"{}\"}}", node.addr()));
    assert_eq!(client.say("DBSIZE"), ":0\r\n", "{model}");
    nodes[0].kill();
    until("the node is down", || {
        client.say("DBSIZE");
        up(&nodes[0]) == 0
    });
    assert_eq!(up(&nodes[1]), 1, "{model}");
    assert!(metric(page, "regatta_shard_node_connections_lost_total") > 0, "{model}");
    nodes[0].revive();
    until("the node is up", || up(&nodes[0]) == 1);
}

#[test]
fn models_that_do_not_count_refuse_it() {
    for model in ["threads", "fork"] {
        let error =
            refused(regatta!("shard --model {model} --nodes 127.0.0.1:1 --metrics 127.0.0.1:0"));
        assert!(
            error.contains("only without --metrics: requests are counted only where"),
            "{error}"
        );
    }
}
