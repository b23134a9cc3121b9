//! Hubs at one broker: real hubs, a real redis-server, and clients from another crate.

use crate::{
    hub::{
        api::{call, files},
        talk::{Sender, all_talk, check_all},
    },
    support::{
        Server,
        hub::{Socket, hear, hub, member_of, metric, page, send},
        hubs::joined,
        on_models, refused, regatta,
        shard::nodes::Node,
        until,
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, thread, time::Duration};

/// A member that has joined: its echo was answered.
pub fn member(server: &Server, room: &str) -> Socket {
    let mut socket = member_of(server, &format!("/ws{room}"));
    send(&mut socket, &json!({"type": "echo", "payload": 0}));
    while hear(&mut socket)["type"] != "echo" {}
    socket
}

on_models! { members_of_all_hubs_get_all_messages_in_one_order: epoll, percore, uring }

fn members_of_all_hubs_get_all_messages_in_one_order(model: &str) {
    const EACH: u64 = 100;
    let broker = Node::start(&[]);
    let hubs: Vec<_> = (0..3).map(|_| joined(model, &broker, &[])).collect();
    let mut members: Vec<_> = hubs
        .iter()
        .flat_map(|(server, _)| [member(server, "/red"), member(server, "/red")])
        .collect();
    let mut other = member(&hubs[0].0, "/blue");
    let all = EACH * members.len() as u64;
    for n in 0..EACH {
        for (own, socket) in members.iter_mut().enumerate() {
            send(socket, &json!({"type": "broadcast", "payload": [own, n]}));
        }
    }
    let mut orders = Vec::new();
    for (own, socket) in members.iter_mut().enumerate() {
        let (mut order, mut results) = (Vec::new(), 0);
        while (order.len() as u64) < all || results < EACH {
            let heard = hear(socket);
            match heard["type"].as_str().unwrap() {
                "broadcast" => order.push(heard["payload"].clone()),
                "broadcastResult" => {
                    let result = json!({"type": "broadcastResult", "payload": [own, results]});
                    assert_eq!(heard, result, "{model}: without a count of members");
                    assert!(order.contains(&heard["payload"]), "{model}: the copy comes first");
                    results += 1;
                }
                _ => panic!("{model}: {heard}"),
            }
        }
        orders.push(order);
    }
    let different = orders.iter().filter(|order| **order != orders[0]).count();
    assert_eq!(different, 0, "{model}");
    let distinct: BTreeSet<_> = orders[0].iter().map(Value::to_string).collect();
    assert_eq!(distinct.len() as u64, all, "{model}");
    // Another room has heard nothing of it.
    send(&mut other, &json!({"type": "broadcast", "payload": "b"}));
    assert_eq!(hear(&mut other), json!({"type": "broadcast", "payload": "b"}), "{model}");
    let published = "regatta_hub_broker_messages_total{outcome=\"published\"}";
    assert_eq!(metric(hubs[1].1, published), 2 * EACH, "{model}");
    assert_eq!(metric(hubs[2].1, "regatta_hub_deliveries_total"), 2 * all, "{model}");
}

#[test]
fn hubs_with_another_prefix_have_other_rooms() {
    let broker = Node::start(&[]);
    let (one, _) = joined("percore", &broker, &[]);
    let (other, _) = joined("percore", &broker, &["--broker-prefix", "other"]);
    let (mut here, mut there) = (member(&one, "/red"), member(&other, "/red"));
    for (socket, payload) in [(&mut here, "here"), (&mut there, "there")] {
        send(socket, &json!({"type": "broadcast", "payload": payload}));
        assert_eq!(hear(socket), json!({"type": "broadcast", "payload": payload}));
        assert_eq!(hear(socket), json!({"type": "broadcastResult", "payload": payload}));
    }
}

#[test]
fn a_hub_authenticates_and_reports_why_it_cannot() {
    let broker = Node::start(&["--requirepass", "a-secret"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "a-secret\n").unwrap();
    let options = ["--broker-password-file", file.to_str().unwrap()];
    let (server, _) = joined("percore", &broker, &options);
    let mut socket = member(&server, "/red");
    send(&mut socket, &json!({"type": "broadcast", "payload": 1}));
    assert_eq!(hear(&mut socket)["type"], "broadcast");
    let url = format!("redis://{}", broker.addr());
    let (server, operators) = hub("percore", &["--broker", &url]);
    until("an attempt has failed", || metric(operators, "regatta_hub_broker_failed_total") > 0);
    let (status, why) = page(operators, "/ready");
    assert_eq!((status, why.trim()), (503, "waiting: the broker has not been connected yet"));
    let mut socket = member(&server, "/red");
    send(&mut socket, &json!({"type": "broadcast", "payload": 1}));
    let error = hear(&mut socket);
    assert_eq!((&error["type"], &error["payload"]), (&json!("error"), &json!(1)));
    assert!(error["error"].as_str().unwrap().starts_with("not published: "), "{error}");
}

#[test]
fn a_backend_learns_whether_its_messages_are_published() {
    let mut broker = Node::start(&[]);
    let (_folder, options) = files();
    let options: Vec<&str> = options[..2].iter().map(String::as_str).collect();
    let (one, operators) = joined("percore", &broker, &options);
    let (other, _) = joined("percore", &broker, &[]);
    let (mut red, mut blue) = (member(&other, "/red"), member(&other, "/blue"));
    let publish = json!({"channel": "red", "data": {"a": [1, 2]}});
    assert_eq!(call(&one, "publish", &publish), json!({"result": {}}));
    assert_eq!(hear(&mut red), json!({"type": "broadcast", "payload": {"a": [1, 2]}}));
    let both = json!({"channels": ["red", "blue"], "data": 2});
    let batch = json!({"commands": [{"broadcast": both}, {"info": {}}, {"publish": publish}]});
    let done = json!({"result": {}});
    let replies = call(&one, "batch", &batch)["replies"].clone();
    assert_eq!(replies[0], json!({"broadcast": {"responses": [done, done]}}));
    assert_eq!(replies[1]["error"]["code"], 108, "a hub knows only its own members: {replies}");
    assert_eq!(replies[2], json!({"publish": {}}));
    assert_eq!(hear(&mut blue)["payload"], 2);
    broker.kill();
    until("the loss is noticed", || metric(operators, "regatta_hub_broker_up") == 0);
    let failed = call(&one, "broadcast", &both)["result"]["responses"].clone();
    for error in [&failed[0]["error"], &failed[1]["error"]] {
        assert_eq!(error["code"], 100, "{failed}");
        assert!(error["message"].as_str().unwrap().starts_with("not published: "), "{failed}");
    }
    broker.revive();
    until("it is up again", || call(&one, "publish", &publish) == done);
}

/// The broker is killed, restarted and stopped while members of three hubs send all the time.
#[test]
fn nothing_is_lost_without_a_gap_and_nothing_comes_twice_whatever_the_broker_does() {
    let mut broker = Node::start(&[]);
    let hubs: Vec<_> = (0..3).map(|_| joined("percore", &broker, &[])).collect();
    let mut senders: Vec<Sender> =
        (0..6).map(|own| Sender::new(own, member(&hubs[own % 3].0, "/red"))).collect();
    let are_up = |expected: u64| {
        until("all hubs see it", || {
            hubs.iter().all(|(_, page)| metric(*page, "regatta_hub_broker_up") == expected)
        });
    };
    all_talk(&mut senders, || {
        let a_while = || thread::sleep(Duration::from_millis(500));
        a_while();
        broker.kill();
        are_up(0);
        broker.revive();
        are_up(1);
        a_while();
        broker.signal("STOP");
        are_up(0);
        broker.signal("CONT");
        are_up(1);
        a_while();
        broker.restart(&[]);
        are_up(1);
        a_while();
    });
    check_all(&senders, 2);
    let outcomes: Vec<u64> =
        (0..3).map(|of| senders.iter().map(|one| one.outcomes[of]).sum()).collect();
    assert!(outcomes[0] > 100 && outcomes[1] > 10 && outcomes[2] > 0, "{outcomes:?}");
}

#[test]
fn options_that_need_one_hub_are_refused_with_a_broker() {
    for (options, why) in [
        (&["--history", "9", "--longest-message", "4194305"][..], "may have at most 4194304 bytes"),
        (&["--model", "green"], "only without --broker"),
        (&["--model", "cluster"], "only without --broker"),
    ] {
        let error = refused(regatta!("hub --check --broker redis://127.0.0.1:1").args(options));
        assert!(error.contains(why), "{options:?}: {error}");
    }
}
