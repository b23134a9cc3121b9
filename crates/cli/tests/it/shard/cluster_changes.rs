//! `--map cluster` in front of a real Redis Cluster that changes without the notice of the proxy.

use super::cluster::clustered;
use crate::support::{
    hub::with_metrics,
    regatta, run,
    shard::{
        client,
        cluster::{Cluster, migrate, slot},
        nodes::Node,
        on_shard_models,
    },
    until,
};
use regatta_testkit::port;

on_shard_models!(a_slot_that_moved_without_notice_is_counted_and_flushed: epoll, percore);

fn a_slot_that_moved_without_notice_is_counted_and_flushed(model: &str) {
    let cluster = Cluster::start(3, 1);
    let proxy = clustered(model, &cluster);
    let mut client = client(&proxy);
    for key in 0..20 {
        assert_eq!(client.say(&format!("SET {key}{{tag}} x")), "+OK\r\n");
    }
    let (from, to) = (cluster.master("{tag}"), &cluster.others[0]);
    let others: Vec<&Node> =
        cluster.masters.iter().filter(|node| node.addr() != from.addr()).collect();
    migrate(from, to, "{tag}", &others);
    assert_eq!(to.client().say("DBSIZE"), ":20\r\n");
    assert_eq!(client.say("DBSIZE"), ":20\r\n");
    // Back, and away again.
    migrate(to, from, "{tag}", &others);
    migrate(from, to, "{tag}", &others);
    assert_eq!(client.say("FLUSHALL"), "+OK\r\n");
    assert_eq!(to.client().say("DBSIZE"), ":0\r\n");
}

on_shard_models!(an_error_that_a_script_makes_is_passed_on: epoll);

fn an_error_that_a_script_makes_is_passed_on(model: &str) {
    let cluster = Cluster::start(3, 0);
    let proxy = clustered(model, &cluster);
    let mut client = client(&proxy);
    let number = slot(&mut cluster.masters[0].client(), "foo");
    let owner = cluster.master("foo").addr();
    for (round, error) in
        [format!("MOVED {number} {owner}"), format!("ASK {number} {owner}"), "TRYAGAIN x".into()]
            .iter()
            .enumerate()
    {
        let script = format!("redis.call('incr',KEYS[1]) return redis.error_reply('{error}')");
        client.send(&["EVAL", &script, "1", "foo"]);
        let reply = String::from_utf8(client.next().unwrap()).unwrap();
        assert_eq!(reply, format!("-{error}\r\n"));
        let count = (round + 1).to_string();
        assert_eq!(client.say("GET foo"), format!("$1\r\n{count}\r\n"), "once each time");
    }
}

on_shard_models!(a_message_in_a_transaction_has_no_slot: epoll);

fn a_message_in_a_transaction_has_no_slot(model: &str) {
    let cluster = Cluster::start(3, 0);
    let proxy = clustered(model, &cluster);
    let mut client = client(&proxy);
    for channels in [["a", "b", "c"], ["d", "e", "f"]] {
        assert_eq!(client.say("MULTI"), "+OK\r\n");
        assert_eq!(client.say("PUBLISH x 1"), "+QUEUED\r\n");
        assert_eq!(client.say("SET w 3"), "+QUEUED\r\n");
        for channel in channels {
            assert_eq!(client.say(&format!("PUBLISH {channel} x")), "+QUEUED\r\n");
        }
        assert_eq!(client.say("EXEC"), "*5\r\n:0\r\n+OK\r\n:0\r\n:0\r\n:0\r\n");
    }
}

on_shard_models!(a_node_of_another_cluster_is_not_followed: epoll);

/// A node of another cluster, whose epoch is higher, takes over the address of a node.
fn a_node_of_another_cluster_is_not_followed(model: &str) {
    let mut cluster = Cluster::start(3, 1);
    let proxy = clustered(model, &cluster);
    let mut client = client(&proxy);
    assert_eq!(client.say("SET who A"), "+OK\r\n");
    let bus = port::free().to_string();
    let options = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-config-file"];
    cluster.others[0].restart(&[&options[..], &["other.conf"]].concat());
    let mut other = cluster.others[0].client();
    assert_eq!(other.say("CLUSTER SET-CONFIG-EPOCH 99"), "+OK\r\n");
    assert_eq!(other.say("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK\r\n");
    until("it works", || other.say("SET who B") == "+OK\r\n");
    let questions = |client: &mut crate::support::shard::client::Client| {
        let info = client.say("INFO commandstats");
        info.contains("cmdstat_cluster|slots")
    };
    until("it was asked for the slots", || {
        // A lost connection is a reason to ask.
        cluster.master("who").client().say("CLIENT KILL TYPE normal SKIPME yes");
        let reply = client.say("GET who");
        assert!(reply == "$1\r\nA\r\n" || reply.starts_with("-SHARDDOWN"), "{reply}");
        questions(&mut other)
    });
    until("the connection is there again", || client.say("GET who") == "$1\r\nA\r\n");
    assert_eq!(client.say("SET who A2"), "+OK\r\n");
    assert_eq!(other.say("GET who"), "$1\r\nB\r\n");
}

/// What `regatta shard status` prints, and its exit status.
fn status(page: &str, more: &[&str]) -> (Option<i32>, String) {
    let ended = run(regatta!("shard status {page}").args(more));
    (ended.status.code(), ended.stdout)
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_proxy_is_not_ready_before_the_first_view_of_its_cluster() {
    // It has no slots yet.
    let node =
        Node::start(&["--cluster-enabled", "yes", "--cluster-port", &port::free().to_string()]);
    let address = node.addr().to_string();
    let (_proxy, page) =
        with_metrics(regatta!("shard --map cluster --nodes {address} --metrics 127.0.0.1:0"));
    let page = page.to_string();
    let why = "starting: no node of the cluster has reported its slots yet\n";
    until("it listens", || status(&page, &["--ready"]) == (Some(1), why.to_owned()));
    let (code, text) = status(&page, &[]);
    assert!(code == Some(1) && text.contains("nodes     0 of 0 up"), "{text}");
    assert_eq!(node.client().say("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK\r\n");
    until("it is ready", || status(&page, &[]).0 == Some(0));
}
