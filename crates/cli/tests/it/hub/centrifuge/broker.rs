//! Clients of Centrifugo's protocol at several hubs with one broker.

use super::{PATH, asks, connected, library, subscribes};
use crate::support::{
    Server,
    hub::{Socket, hear, member_of, metric, send},
    hubs::joined,
    on_models,
    shard::nodes::Node,
    until,
};
use regatta_testkit::skip;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

const OPTIONS: [&str; 3] = ["--centrifuge", "--history", "500"];

on_models! { clients_and_members_of_all_hubs_get_one_order: epoll, percore, uring }

fn clients_and_members_of_all_hubs_get_one_order(model: &str) {
    const EACH: u32 = 50;
    let broker = Node::start(&[]);
    let hubs: Vec<_> = (0..3).map(|_| joined(model, &broker, &OPTIONS).0).collect();
    let mut member = member_of(&hubs[2], "/ws/red");
    assert_eq!(hear(&mut member)["type"], "position", "{model}");
    let mut clients: Vec<Socket> = (0..6).map(|at| connected(&hubs[at % 3])).collect();
    clients.iter_mut().for_each(|client| subscribes(client, 2, "red"));
    for n in 0..EACH {
        for (who, client) in clients.iter_mut().enumerate() {
            send(client, &json!({"id": n + 10, "publish": {"channel": "red", "data": [who, n]}}));
        }
    }
    let all = 6 * EACH as usize;
    let mut orders: Vec<Vec<Value>> = Vec::new();
    for (who, client) in clients.iter_mut().enumerate() {
        let (mut order, mut replies) = (Vec::new(), 0);
        while replies < EACH || order.len() < all {
            let heard = hear(client);
            if let Some(id) = heard["id"].as_u64() {
                assert_eq!(heard["publish"], json!({}), "{model}");
                assert!(order.contains(&json!([who, id - 10])), "{model}: the copy comes first");
                replies += 1;
                continue;
            }
            order.push(heard["push"]["pub"]["data"].clone());
            assert_eq!(heard["push"]["pub"]["offset"], order.len(), "{model}: {heard}");
        }
        orders.push(order);
    }
    assert!(orders.iter().all(|one| *one == orders[0]), "{model}: one order");
    let distinct: BTreeSet<_> = orders[0].iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), all, "{model}");
    let of_member: Vec<Value> = (0..all).map(|_| hear(&mut member)["payload"].clone()).collect();
    assert_eq!(of_member, orders[0], "{model}");
}

#[test]
fn a_client_recovers_at_another_hub_and_sees_who_is_at_all_hubs() {
    let broker = Node::start(&[]);
    let options = [&OPTIONS[..], &["--presence"]].concat();
    let hubs: Vec<_> = (0..2).map(|_| joined("percore", &broker, &options).0).collect();
    let (mut ann, mut bob) = (connected(&hubs[0]), connected(&hubs[1]));
    let first = asks(&mut ann, 2, &json!({"subscribe": {"channel": "red"}}));
    let epoch = first["subscribe"]["epoch"].clone();
    subscribes(&mut bob, 2, "red");
    let presence = json!({"presence": {"channel": "red"}});
    until("both are known", || {
        let all = asks(&mut bob, 3, &presence)["presence"]["presence"].clone();
        all.as_object().is_some_and(|all| all.len() == 2)
    });
    let stats = json!({"presence_stats": {"channel": "red"}});
    until("the other hub knows it, too", || {
        asks(&mut ann, 3, &stats)["presence_stats"]["num_clients"] == 2
    });
    drop(ann);
    for n in 1..4 {
        asks(&mut bob, n + 3, &json!({"publish": {"channel": "red", "data": n}}));
    }
    let mut ann = connected(&hubs[1]);
    let recover = |epoch: &Value| json!({"subscribe": {"channel": "red", "recover": true, "offset": 0, "epoch": epoch}});
    let reply = asks(&mut ann, 2, &recover(&epoch));
    let got = reply["subscribe"]["publications"].as_array().expect("publications");
    let got: Vec<_> = got.iter().map(|one| one["data"].as_u64().unwrap()).collect();
    assert_eq!((got, &reply["subscribe"]["recovered"]), (vec![1, 2, 3], &json!(true)));
    let mut other = connected(&hubs[0]);
    let reply = asks(&mut other, 2, &recover(&json!("0123456789abcdef")));
    assert_eq!(reply["subscribe"]["recovered"], Value::Null);
    assert_eq!((&reply["subscribe"]["offset"], &reply["subscribe"]["epoch"]), (&json!(3), &epoch));
    let history = json!({"history": {"channel": "red", "limit": 2, "reverse": true}});
    let kept = asks(&mut other, 3, &history)["history"]["publications"].clone();
    assert_eq!(kept, json!([{"offset": 3, "data": 3}, {"offset": 2, "data": 2}]));
}

/// The next push about a member: what has happened, and who it is.
fn notified(client: &mut Socket) -> (&'static str, Value) {
    loop {
        let push = hear(client)["push"].clone();
        for kind in ["join", "leave"] {
            if push[kind]["info"].is_object() {
                return (kind, push[kind]["info"].clone());
            }
        }
    }
}

on_models! { a_client_is_notified_of_the_members_of_all_hubs_and_a_killed_hub_is_noticed: epoll, percore, uring }

fn a_client_is_notified_of_the_members_of_all_hubs_and_a_killed_hub_is_noticed(model: &str) {
    let broker = Node::start(&[]);
    let options = ["--centrifuge", "--presence"];
    let mut hubs: Vec<_> = (0..2).map(|_| joined(model, &broker, &options).0).collect();
    let (mut ann, mut bob) = (connected(&hubs[0]), connected(&hubs[1]));
    let subscribe = json!({"subscribe": {"channel": "red", "join_leave": true}});
    assert!(asks(&mut ann, 2, &subscribe)["subscribe"].is_object(), "{model}");
    let (kind, own) = notified(&mut ann);
    assert_eq!(kind, "join", "{model}");
    let eve = member_of(&hubs[1], "/ws/red?name=eve");
    let (kind, of_eve) = notified(&mut ann);
    assert_eq!((kind, &of_eve["chan_info"]["name"]), ("join", &json!("eve")), "{model}");
    assert!(asks(&mut bob, 2, &subscribe)["subscribe"].is_object(), "{model}");
    let presence = asks(&mut bob, 3, &json!({"presence": {"channel": "red"}}));
    let there = presence["presence"]["presence"].as_object().unwrap().clone();
    let (_, of_bob) = notified(&mut ann);
    for info in [&own, &of_eve, &of_bob] {
        assert_eq!(&there[info["client"].as_str().unwrap()], info, "{model}");
    }
    assert_eq!(there.len(), 3, "{model}");
    drop(eve);
    for client in [&mut ann, &mut bob] {
        assert_eq!(notified(client), ("leave", of_eve.clone()), "{model}");
    }
    hubs.remove(1).signal("-KILL");
    let start = Instant::now();
    assert_eq!(notified(&mut ann), ("leave", of_bob), "{model}");
    assert!(start.elapsed() < Duration::from_secs(15), "{model}: {:?}", start.elapsed());
}

#[test]
fn a_broker_that_has_lost_everything_ends_subscriptions_and_clients_go_on() {
    let mut broker = Node::start(&[]);
    let hubs: Vec<_> = (0..2).map(|_| joined("percore", &broker, &OPTIONS)).collect();
    let (mut ann, mut bob) = (connected(&hubs[0].0), connected(&hubs[1].0));
    let first = asks(&mut ann, 2, &json!({"subscribe": {"channel": "red"}}));
    let epoch = first["subscribe"]["epoch"].clone();
    subscribes(&mut bob, 2, "red");
    let publish = json!({"publish": {"channel": "red", "data": 1}});
    assert_eq!(asks(&mut ann, 3, &publish)["publish"], json!({}));
    broker.kill();
    until("the loss is noticed", || {
        hubs.iter().all(|(_, page)| metric(*page, "regatta_hub_broker_up") == 0)
    });
    let error = asks(&mut ann, 4, &publish)["error"].clone();
    assert_eq!((&error["code"], &error["temporary"]), (&json!(100), &json!(true)), "{error}");
    assert!(error["message"].as_str().unwrap().starts_with("not published: "), "{error}");
    let error = asks(&mut ann, 5, &json!({"subscribe": {"channel": "blue"}}))["error"].clone();
    assert_eq!((&error["code"], &error["temporary"]), (&json!(100), &json!(true)), "{error}");
    broker.revive();
    for client in [&mut ann, &mut bob] {
        while hear(client)["push"]["unsubscribe"]["code"] != 2500 {}
        let recover = json!({"channel": "red", "recover": true, "offset": 1, "epoch": epoch});
        let reply = asks(client, 6, &json!({"subscribe": recover}));
        assert_eq!(reply["subscribe"]["was_recovering"], true, "{reply}");
        assert_eq!(reply["subscribe"]["recovered"], Value::Null, "{reply}");
        assert_ne!(reply["subscribe"]["epoch"], epoch, "{reply}");
    }
    assert_eq!(asks(&mut ann, 7, &publish)["publish"], json!({}));
    assert_eq!(hear(&mut bob)["push"]["pub"], json!({"data": 1, "offset": 1}));
}

/// Runs a script with a client library: two users at two hubs. When it says so, the broker is restarted and lacks everything.
fn with_hubs(program: &str, script: &str, prepare: impl FnOnce(&mut Command)) {
    let mut broker = Node::start(&[]);
    let options = [&OPTIONS[..], &["--presence"]].concat();
    let hubs: Vec<_> = (0..2).map(|_| joined("percore", &broker, &options).0).collect();
    let url = |server: &Server| format!("ws://{}{PATH}", server.addr);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hub/centrifuge").join(script);
    let mut command = Command::new(program);
    command.arg(script).args(hubs.iter().map(url)).stdout(Stdio::piped());
    prepare(&mut command);
    let mut ran = command.spawn().expect("it runs");
    let mut lines = BufReader::new(ran.stdout.take().unwrap()).lines();
    if lines.next().is_some_and(|line| line.unwrap() == "restart") {
        broker.restart(&[]);
    }
    assert!(ran.wait().unwrap().success());
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn the_client_library_for_python_works_at_two_hubs() {
    match library("centrifuge-python", "centrifuge") {
        Some(library) => with_hubs("python3", "broker.py", |command| {
            command.env("PYTHONPATH", library);
        }),
        None => skip("centrifuge-python is not installed (scripts/setup)"),
    }
}

#[test]
#[cfg_attr(not(has_node), ignore = "node is not installed")]
fn the_client_library_for_javascript_works_at_two_hubs() {
    match library("centrifuge-js", "node_modules/centrifuge") {
        Some(library) => with_hubs("node", "broker.mjs", |command| {
            command.current_dir(library);
        }),
        None => skip("centrifuge-js is not installed (scripts/setup)"),
    }
}
