//! Hubs whose broker is the master of a slot of a real Redis Cluster.

use crate::{
    hub::{broker::member, broker_history::KEEPS, recovering::Client, talk::talk_during},
    support::{
        Server,
        hub::{hub, hub_command, metric, printed_through, with_metrics_and_lines},
        hubs::{HubCluster, TAG, hubs_at_node, joined, joined_at},
        shard::{
            cluster::{Cluster, migrate},
            nodes::Node,
        },
        until,
    },
};
use serde_json::json;
use std::{fs, net::SocketAddr};

const UP: &str = "regatta_hub_broker_up";
const FAILED: &str = "regatta_hub_broker_failed_total";
const SWITCHES: &str = "regatta_hub_broker_master_switches_total";
const MASTER_AGE: &str = "regatta_hub_broker_master_age_seconds";

/// Members of two hubs talk while the master of their channels fails. Returns the hubs.
fn talk_while(
    cluster: &mut HubCluster,
    fails: impl FnOnce(&mut HubCluster),
) -> Vec<(Server, SocketAddr)> {
    let hubs = talk_during(&cluster.url(), || {
        assert_eq!((hubs_at_node(cluster.master()), hubs_at_node(cluster.replica())), (2, 0));
        fails(cluster);
        until("all hubs are there", || hubs_at_node(cluster.replica()) == 2);
    });
    for (_, page) in &hubs {
        assert_eq!((metric(*page, SWITCHES), metric(*page, UP)), (1, 1));
        until("the master is confirmed", || metric(*page, MASTER_AGE) < 5);
    }
    hubs
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_master_that_is_killed_is_left_and_not_used_when_it_returns() {
    let mut cluster = HubCluster::start();
    let _hubs = talk_while(&mut cluster, HubCluster::kill_master);
    cluster.master().revive();
    let mut old = cluster.master().client();
    until("it is a replica", || old.say("ROLE").contains("slave"));
    assert_eq!((hubs_at_node(cluster.master()), hubs_at_node(cluster.replica())), (0, 2));
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_master_that_does_not_answer_is_left_also_while_it_does_again() {
    let mut cluster = HubCluster::start();
    let _hubs = talk_while(&mut cluster, |cluster| {
        cluster.stop_master();
        until("all hubs are there", || hubs_at_node(cluster.replica()) == 2);
        // It passes on to its replica what it had not passed on yet.
        cluster.master().signal("CONT");
        let mut old = cluster.master().client();
        until("it is a replica", || old.say("ROLE").contains("slave"));
    });
    assert_eq!(hubs_at_node(cluster.replica()), 2);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_failover_that_an_operator_wants_is_followed() {
    let mut cluster = HubCluster::start();
    talk_while(&mut cluster, |cluster| cluster.replace());
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_slot_that_moves_to_another_master_is_followed() {
    let cluster = Cluster::start(3, 1);
    let (from, to) = (cluster.master(TAG), &cluster.others[0]);
    let is_other = |node: &&Node| node.addr() != from.addr();
    let others: Vec<&Node> = cluster.masters.iter().filter(is_other).collect();
    let hubs = talk_during(&format!("redis+cluster://{}", from.addr()), || {
        migrate(from, to, TAG, &others);
        until("all hubs are at its new master", || hubs_at_node(to) == 2);
        migrate(to, from, TAG, &others);
        until("all hubs are back", || hubs_at_node(from) == 2);
    });
    assert!(hubs.iter().all(|(_, page)| metric(*page, SWITCHES) == 2));
}

/// Two hubs that keep histories, and a member of the first one, which recovers at the second one.
fn hubs_with_histories(url: &str) -> ([Server; 2], Client) {
    let hubs = [0, 1].map(|_| joined_at("percore", url, &KEEPS).0);
    let (mut speaker, _) = Client::joins(&hubs[0], None);
    let (mut reader, _) = Client::joins(&hubs[1], None);
    (1..=5).for_each(|n| speaker.insists(&json!(n)));
    (1..=3).for_each(|n| assert_eq!(reader.takes(), n));
    reader.comes_back(&hubs[0]);
    (4..=5).for_each(|n| assert_eq!(reader.takes(), n));
    speaker.comes_back(&hubs[1]);
    (hubs, speaker)
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn members_recover_at_another_hub_until_the_master_fails() {
    let mut cluster = HubCluster::start();
    let (hubs, mut speaker) = hubs_with_histories(&cluster.url());
    let keys = cluster.master().client().say("KEYS *");
    let keys: Vec<&str> = keys.lines().filter(|line| line.contains(':')).collect();
    assert!(keys.len() > 1 && keys.iter().all(|key| key.starts_with(TAG)), "{keys:?}");
    let before = speaker.epoch.clone();
    // Its replica may lack messages.
    cluster.kill_master();
    until("all hubs are there", || hubs_at_node(cluster.replica()) == 2);
    speaker.misses();
    assert_ne!(speaker.epoch, before);
    speaker.insists(&json!("new"));
    speaker.comes_back(&hubs[0]);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_history_goes_with_its_slot_and_has_another_epoch_there() {
    let cluster = Cluster::start(3, 0);
    let master = cluster.master(TAG);
    let others: Vec<&Node> =
        cluster.masters.iter().filter(|node| node.addr() != master.addr()).collect();
    let (hubs, mut speaker) = hubs_with_histories(&format!("redis+cluster://{}", master.addr()));
    let mut at = (master, others[0]);
    for n in 6..8 {
        let (before, (from, to)) = (speaker.epoch.clone(), at);
        migrate(from, to, TAG, &others[1..]);
        until("all hubs are at its new master", || hubs_at_node(to) == 2);
        speaker.misses();
        assert_ne!(speaker.epoch, before);
        speaker.insists(&json!(n));
        speaker.comes_back(&hubs[n % 2]);
        at = (to, from);
    }
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn hubs_with_other_prefixes_have_other_rooms_and_masters() {
    let cluster = Cluster::start(3, 0);
    let url = format!("redis+cluster://localhost:{}", cluster.masters[0].addr().port());
    // The slots are 5,415 and 15,495: of two masters.
    let hubs = [TAG, "{a}"].map(|tag| {
        let prefix = tag.trim_matches(['{', '}']);
        let at = cluster.master(tag);
        let (server, _) = joined_at("epoll", &url, &["--broker-prefix", prefix]);
        let channel = format!("PUBSUB SHARDNUMSUB {tag}:moved");
        assert!(at.client().say(&channel).ends_with(":1\r\n"), "{tag}");
        member(&server, "/red");
        (server, at.addr())
    });
    assert_ne!(hubs[0].1, hubs[1].1);
}

/// Starts a hub that cannot connect, and returns what it prints up to this text.
fn fails(url: &str, more: &[&str], says: &str) -> String {
    let options = [&["--broker", url], more].concat();
    let (mut server, operators, before) = with_metrics_and_lines(hub_command("percore", &options));
    until("attempts have failed", || metric(operators, FAILED) > 3);
    assert_eq!(metric(operators, UP), 0);
    printed_through(&mut server, before, says)
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn a_cluster_and_a_server_are_not_mixed_up() {
    let (cluster, server) = (Cluster::start(1, 0), Node::start(&[]));
    let node = cluster.masters[0].addr();
    fails(&format!("redis://{node}"), &[], "write --broker redis+cluster://");
    let url = format!("redis+cluster://{}", server.addr());
    let printed = fails(&url, &[], "cluster support disabled");
    // Not each attempt is worth a line.
    assert!(printed.lines().count() < 8, "{printed}");
    fails("redis+cluster://no.name.invalid", &[], "the names of its nodes cannot be resolved");
    let (_right, _) = joined("percore", &server, &[]);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn nodes_may_want_a_password_which_is_not_shown() {
    let cluster = Cluster::start(1, 0);
    let node = &cluster.masters[0];
    assert_eq!(node.client().say("CONFIG SET requirepass s3cret"), "+OK\r\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "wr0ng").unwrap();
    let url = format!("redis+cluster://{}", node.addr());
    let password = ["--broker-password-file", file.to_str().unwrap()];
    let printed = fails(&url, &password, "it refuses the password (--broker-password-file)");
    assert!(!printed.contains("wr0ng"), "{printed}");
    fails(&url, &[], "NOAUTH");
    fs::write(&file, "s3cret").unwrap();
    let options = [&["--broker", &url], &password[..]].concat();
    let (_server, operators) = hub("percore", &options);
    until("it is up", || metric(operators, UP) == 1);
}
