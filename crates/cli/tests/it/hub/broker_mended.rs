//! Hubs at one broker when it refuses, is demoted or is slower than the members, and when a hub stops.

use crate::{
    hub::{
        api::{call, files},
        broker::member,
    },
    support::{
        hub::{hear, hub, metric, page, send},
        hubs::joined,
        shard::nodes::Node,
        until,
    },
};
use serde_json::{Value, json};
use tungstenite::Message;

const UP: &str = "regatta_hub_broker_up";

#[test]
fn a_broadcast_of_a_backend_without_channels_is_answered() {
    let broker = Node::start(&[]);
    let (_folder, options) = files();
    let options: Vec<&str> = options[..2].iter().map(String::as_str).collect();
    let (hub, _) = joined("percore", &broker, &options);
    let none = json!({"channels": [], "data": 1});
    assert_eq!(call(&hub, "broadcast", &none), json!({"result": {"responses": []}}));
    let publish = json!({"channel": "red", "data": 1});
    let batch = json!({"commands": [{"broadcast": none}, {"publish": publish}]});
    let replies = json!([{"broadcast": {"responses": []}}, {"publish": {}}]);
    assert_eq!(call(&hub, "batch", &batch), json!({"replies": replies}));
}

#[test]
fn a_large_batch_is_published_as_room_becomes_free() {
    let broker = Node::start(&[]);
    let (_folder, options) = files();
    let options: Vec<&str> = options[..2].iter().map(String::as_str).collect();
    let (hub, operators) = joined("percore", &broker, &options);
    let channels: Vec<String> = (0..1000).map(|number| format!("c{number}")).collect();
    let all = json!({"channels": channels, "data": "x".repeat(40_000)});
    let responses = call(&hub, "broadcast", &all)["result"]["responses"].clone();
    let done = json!({"result": {}});
    let published = responses.as_array().unwrap().iter().filter(|one| **one == done).count();
    assert_eq!(published, 1000);
    assert_eq!(metric(operators, "regatta_hub_broker_lost_total"), 0);
    // More than one request may have is refused before any is sent.
    let before = metric(operators, "regatta_hub_broker_received_total");
    let small = json!({"broadcast": {"channels": vec!["c"; 1000], "data": 1}});
    let replies = call(&hub, "batch", &json!({"commands": vec![small; 11]}))["replies"].clone();
    assert_eq!(replies[9]["broadcast"]["responses"].as_array().unwrap().len(), 1000);
    assert_eq!(replies[10]["error"]["code"], 107, "{}", replies[10]);
    let after = metric(operators, "regatta_hub_broker_received_total");
    assert_eq!(after - before, 10_000);
}

#[test]
fn a_hub_that_may_not_publish_is_not_up() {
    let broker = Node::start(&[]);
    let (one, operators) = joined("percore", &broker, &[]);
    let mut socket = member(&one, "/red");
    let answer = broker.client().say("ACL SETUSER default -publish");
    assert!(answer.contains("OK"), "{answer}");
    until("the refused heartbeat is noticed", || metric(operators, UP) == 0);
    send(&mut socket, &json!({"type": "broadcast", "payload": 1}));
    let error = hear(&mut socket)["error"].clone();
    assert!(error.as_str().unwrap().starts_with("not published: "), "{error}");
    // A hub that starts then is never ready.
    let url = format!("redis://{}", broker.addr());
    let (_other, pages) = hub("percore", &["--broker", &url]);
    until("it has tried", || metric(pages, "regatta_hub_broker_failed_total") > 1);
    let (status, why) = page(pages, "/ready");
    assert_eq!(status, 503);
    assert!(why.contains("refuses to publish"), "{why}");
    broker.client().say("ACL SETUSER default +publish");
    until("both are up", || metric(operators, UP) == 1 && metric(pages, UP) == 1);
}

#[test]
fn a_server_that_becomes_a_replica_is_noticed() {
    let (broker, other) = (Node::start(&[]), Node::start(&[]));
    let (_server, operators) = joined("percore", &broker, &[]);
    let command = format!("REPLICAOF 127.0.0.1 {}", other.addr().port());
    broker.client().say(&command);
    until("it is noticed", || metric(operators, UP) == 0);
    broker.client().say("REPLICAOF NO ONE");
    until("it is a master again", || metric(operators, UP) == 1);
}

#[test]
fn what_others_publish_in_the_channel_of_heartbeats_is_ignored() {
    let broker = Node::start(&[]);
    let (_server, operators) = joined("percore", &broker, &[]);
    let mut client = broker.client();
    let channels = client.say("PUBSUB CHANNELS *:beat:*");
    let name = channels.split_whitespace().find(|word| word.contains(":beat:")).unwrap().to_owned();
    for text in ["hello", "7", "0:7"] {
        client.say(&format!("PUBLISH {name} {text}"));
    }
    until("they have come", || metric(operators, "regatta_hub_broker_ignored_total") == 3);
    assert_eq!(metric(operators, "regatta_hub_broker_lost_total"), 0);
}

/// Hears all until the connection is closed: the types of the messages.
fn hears_out(socket: &mut crate::support::hub::Socket) -> Vec<String> {
    let mut heard = Vec::new();
    while let Ok(message) = socket.read() {
        if let Message::Text(text) = message {
            let value: Value = serde_json::from_str(&text).unwrap();
            heard.push(value["type"].as_str().unwrap().to_owned());
        }
    }
    heard
}

#[test]
fn a_stop_delivers_what_was_published_before_it() {
    const EACH: usize = 40;
    let broker = Node::start(&[]);
    let (server, _) = joined("percore", &broker, &["--grace", "9s"]);
    let (mut sender, mut neighbour) = (member(&server, "/red"), member(&server, "/red"));
    for number in 0..EACH {
        send(&mut sender, &json!({"type": "broadcast", "payload": number}));
    }
    // The first copy shows that the hub reads them.
    assert_eq!(hear(&mut neighbour)["type"], "broadcast");
    server.signal("-TERM");
    let heard = hears_out(&mut sender);
    let count = |what: &str| heard.iter().filter(|one| *one == what).count();
    assert_eq!((count("broadcast"), count("broadcastResult")), (EACH, EACH), "{heard:?}");
    assert_eq!(hears_out(&mut neighbour).len(), EACH - 1);
}

#[test]
fn a_member_gets_its_outcome_at_a_stop_while_the_broker_hangs() {
    let broker = Node::start(&[]);
    let (server, _) = joined("percore", &broker, &["--grace", "9s"]);
    let mut sender = member(&server, "/red");
    broker.signal("STOP");
    send(&mut sender, &json!({"type": "broadcast", "payload": 1}));
    send(&mut sender, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut sender)["type"], "echo");
    server.signal("-TERM");
    let heard = hears_out(&mut sender);
    broker.signal("CONT");
    assert_eq!(heard, ["error"]);
}
