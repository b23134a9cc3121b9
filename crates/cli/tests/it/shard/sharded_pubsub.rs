//! Sharded publish/subscribe in front of a real Redis Cluster.

use super::cluster::clustered;
use crate::support::{
    Server, refused, regatta,
    shard::{
        client,
        client::Client,
        cluster::{Cluster, migrate},
        nodes::Node,
        on_shard_models, proxy_to,
    },
    until,
};

fn sharded(model: &str, cluster: &Cluster) -> Server {
    let options = ["--map", "cluster", "--cores", "2", "--pubsub", "sharded"];
    proxy_to(model, [cluster.masters[0].addr()].into_iter(), &options)
}

fn next(client: &mut Client) -> String {
    String::from_utf8(client.next().expect("a reply")).expect("text")
}

/// Three words as RESP2.
fn three(kind: &str, channel: &str, last: &str) -> String {
    let bulk = |word: &str| format!("${}\r\n{word}\r\n", word.len());
    format!("*3\r\n{}{}{last}", bulk(kind), bulk(channel))
}

on_shard_models!(messages_are_published_at_the_owner_of_the_slot: epoll, percore);

fn messages_are_published_at_the_owner_of_the_slot(model: &str) {
    let cluster = Cluster::start(3, 0);
    let proxy = sharded(model, &cluster);
    let (mut one, mut both, mut publisher) = (client(&proxy), client(&proxy), client(&proxy));
    for (count, channel) in ["a", "b", "c"].iter().enumerate() {
        let confirmed = three("subscribe", channel, &format!(":{}\r\n", count + 1));
        assert_eq!(one.say(&format!("SUBSCRIBE {channel}")), confirmed);
    }
    assert_eq!(both.say("SUBSCRIBE a"), three("subscribe", "a", ":1\r\n"));
    assert_eq!(both.say("SSUBSCRIBE a"), three("ssubscribe", "a", ":1\r\n"));
    for channel in ["a", "b", "c"] {
        let count = if channel == "a" { ":2\r\n" } else { ":1\r\n" };
        assert_eq!(publisher.say(&format!("PUBLISH {channel} hello")), count);
        assert_eq!(next(&mut one), three("message", channel, "$5\r\nhello\r\n"));
        let classic = cluster.master(channel).client().say(&format!("PUBSUB NUMSUB {channel}"));
        assert!(classic.ends_with(":0\r\n"), "{classic}");
    }
    assert_eq!(next(&mut both), three("message", "a", "$5\r\nhello\r\n"));
    assert_eq!(next(&mut both), three("smessage", "a", "$5\r\nhello\r\n"));
    assert_eq!(publisher.say("SPUBLISH b again"), ":1\r\n");
    assert_eq!(next(&mut one), three("message", "b", "$5\r\nagain\r\n"));
    assert_eq!(publisher.say("PUBSUB NUMSUB c"), "*2\r\n$1\r\nc\r\n:1\r\n");
    // The other kind stays.
    assert_eq!(both.say("SUNSUBSCRIBE a"), three("sunsubscribe", "a", ":0\r\n"));
    publisher.say("PUBLISH a last");
    assert_eq!(next(&mut both), three("message", "a", "$4\r\nlast\r\n"));
    assert_eq!(both.say("UNSUBSCRIBE a"), three("unsubscribe", "a", ":0\r\n"));
    assert_eq!(next(&mut one), three("message", "a", "$4\r\nlast\r\n"));
    assert_eq!(publisher.say("PUBLISH a x"), ":1\r\n");
    assert!(publisher.say("PSUBSCRIBE a*").starts_with("-ERR the proxy does not support"));
}

/// A subscriber of `{tag}`. While the proxy learns that the slot has moved, it may refuse the subscription, or end the client.
fn subscribed(proxy: &Server) -> Client {
    let mut subscriber = client(proxy);
    until("it is subscribed", || {
        let is_sent = subscriber.try_send(&["SSUBSCRIBE", "{tag}"]).is_ok();
        let reply = is_sent
            .then(|| subscriber.next())
            .flatten()
            .map(|reply| String::from_utf8(reply).expect("text"));
        let reply = reply.unwrap_or_else(|| "-SHARDMOVED: closed".to_owned());
        if reply.starts_with("-SHARDMOVED") {
            subscriber = client(proxy);
            return false;
        }
        assert!(!reply.starts_with('-') || reply.contains("not applied, send it again"), "{reply}");
        reply == three("ssubscribe", "{tag}", ":1\r\n")
    });
    subscriber
}

on_shard_models!(a_subscriber_whose_slot_moves_is_ended_with_the_reason: epoll);

fn a_subscriber_whose_slot_moves_is_ended_with_the_reason(model: &str) {
    let cluster = Cluster::start(3, 1);
    for proxy in [sharded(model, &cluster), clustered(model, &cluster)] {
        let mut subscriber = subscribed(&proxy);
        let mut other = client(&proxy);
        assert_eq!(other.say("SSUBSCRIBE other"), three("ssubscribe", "other", ":1\r\n"));
        let (mut from, mut to) = (cluster.master("{tag}"), &cluster.others[0]);
        if from.client().say("GET {tag}").starts_with("-MOVED") {
            (from, to) = (to, from);
        }
        let is_other = |node: &&Node| node.addr() != from.addr() && node.addr() != to.addr();
        let others: Vec<&Node> = cluster.masters.iter().filter(is_other).collect();
        migrate(from, to, "{tag}", &others);
        let text = next(&mut subscriber);
        assert!(text.starts_with("-SHARDMOVED "), "{text}");
        assert!(text.ends_with("; messages may be missing, subscribe again\r\n"), "{text}");
        assert_eq!(subscriber.next(), None);
        // It can subscribe again, and the others stay.
        let mut again = subscribed(&proxy);
        assert_eq!(client(&proxy).say("SPUBLISH {tag} x"), ":1\r\n");
        assert_eq!(next(&mut again), three("smessage", "{tag}", "$1\r\nx\r\n"));
        client(&proxy).say("SPUBLISH other x");
        assert_eq!(next(&mut other), three("smessage", "other", "$1\r\nx\r\n"));
    }
}

on_shard_models!(sharded_publish_subscribe_needs_a_cluster: epoll);

fn sharded_publish_subscribe_needs_a_cluster(model: &str) {
    let text = refused(regatta!("shard --model {model} --nodes 127.0.0.1:1 --pubsub sharded"));
    assert!(text.contains("applies only to --map cluster"), "{text}");
}
