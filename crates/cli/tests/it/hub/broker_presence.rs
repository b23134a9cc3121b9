//! Presence of hubs at one broker: members are notified of those of all hubs, whatever happens to a hub or to the broker.

use crate::{
    hub::api::{call, files},
    support::{
        Server,
        hub::{Socket, hear, member_of, metric, send},
        hubs::joined,
        on_models,
        shard::nodes::Node,
        until,
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// How soon everything is right after something has happened.
const SOON: Duration = Duration::from_secs(15);

/// The next message about presence: its kind, who it is about, and the count.
fn notice(socket: &mut Socket) -> (String, Value, u64) {
    loop {
        let notice = hear(socket);
        if notice["type"] != "presence" {
            assert_eq!(notice["type"], "gap", "{notice}");
            continue;
        }
        let event = notice["event"].as_str().unwrap().to_owned();
        let who = if event == "here" { &notice["members"] } else { &notice["member"] };
        return (event, who.clone(), notice["count"].as_u64().unwrap());
    }
}

fn join(server: &Server, name: &str) -> Socket {
    member_of(server, &format!("/ws/red?name={name}"))
}

/// A hub with presence, and with an API.
fn with_api(broker: &Node) -> (tempfile::TempDir, Server, std::net::SocketAddr) {
    with_api_and(broker, &[])
}

/// The same with further options.
fn with_api_and(broker: &Node, more: &[&str]) -> (tempfile::TempDir, Server, std::net::SocketAddr) {
    let (folder, options) = files();
    let options = options[..2].iter().map(String::as_str).chain(["--presence"]);
    let options: Vec<&str> = options.chain(more.iter().copied()).collect();
    let (server, operators) = joined("percore", broker, &options);
    (folder, server, operators)
}

/// Who is in the room, as a backend sees it.
fn names(server: &Server) -> Vec<String> {
    let all = call(server, "presence", &json!({"channel": "red"}))["result"]["presence"].clone();
    let all = all.as_object().cloned().unwrap_or_default();
    let mut names: Vec<String> = all
        .values()
        .map(|who| who["chan_info"]["name"].as_str().unwrap_or("-").to_owned())
        .collect();
    names.sort();
    names
}

fn count(server: &Server) -> Value {
    call(server, "presence_stats", &json!({"channel": "red"}))["result"]["num_clients"].clone()
}

on_models! { the_members_of_all_hubs_are_notified_and_a_killed_hub_is_noticed: epoll, percore, uring }

fn the_members_of_all_hubs_are_notified_and_a_killed_hub_is_noticed(model: &str) {
    let broker = Node::start(&[]);
    let mut hubs: Vec<_> = (0..3).map(|_| joined(model, &broker, &["--presence"])).collect();
    let mut ann = join(&hubs[0].0, "ann");
    assert_eq!(notice(&mut ann), ("here".into(), json!(["ann"]), 1), "{model}");
    let mut bob = join(&hubs[1].0, "bob");
    assert_eq!(notice(&mut ann), ("join".into(), json!("bob"), 2), "{model}");
    assert_eq!(notice(&mut bob), ("here".into(), json!(["bob", "ann"]), 2), "{model}");
    let mut carl = join(&hubs[0].0, "carl");
    assert_eq!(notice(&mut carl).2, 3, "{model}: one of the same hub");
    assert_eq!(notice(&mut ann), ("join".into(), json!("carl"), 3), "{model}");
    assert_eq!(notice(&mut bob), ("join".into(), json!("carl"), 3), "{model}");
    let (mut dave, mut eve) = (join(&hubs[2].0, "dave"), join(&hubs[2].0, "eve"));
    for socket in [&mut dave, &mut eve] {
        while notice(socket).2 != 5 {}
    }
    for socket in [&mut ann, &mut bob, &mut carl] {
        let [one, other] = [(); 2].map(|()| notice(socket));
        let mut names = [one.1.clone(), other.1.clone()];
        names.sort_by_key(Value::to_string);
        assert_eq!((names, one.2, other.2), ([json!("dave"), json!("eve")], 4, 5), "{model}");
    }
    drop(carl);
    for socket in [&mut ann, &mut bob, &mut dave] {
        assert_eq!(notice(socket), ("leave".into(), json!("carl"), 4), "{model}");
    }
    let (killed, _) = hubs.remove(2);
    let start = Instant::now();
    killed.signal("-KILL");
    for socket in [&mut ann, &mut bob] {
        let [one, other] = [(); 2].map(|()| notice(socket));
        assert_eq!(one, ("leave".into(), json!("dave"), 3), "{model}");
        assert_eq!(other, ("leave".into(), json!("eve"), 2), "{model}");
    }
    assert!(start.elapsed() < SOON, "{model}: {:?}", start.elapsed());
    // Its members are gone for those who join from now on, too.
    let mut late = join(&hubs[1].0, "late");
    assert_eq!(notice(&mut late).2, 3, "{model}");
}

#[test]
fn a_backend_sees_the_members_of_all_hubs_at_each_of_them() {
    let mut broker = Node::start(&[]);
    let (_one_folder, one, _) = with_api(&broker);
    let (_other_folder, other, operators) = with_api(&broker);
    let (_ann, _bob, _nobody) =
        (join(&one, "ann"), join(&one, "bob"), member_of(&other, "/ws/red"));
    for server in [&one, &other] {
        until("it knows all", || names(server) == ["-", "ann", "bob"]);
        let all =
            call(server, "presence", &json!({"channel": "red"}))["result"]["presence"].clone();
        let all = all.as_object().unwrap().clone();
        assert!(all.iter().all(|(id, who)| who["client"] == **id), "{all:?}");
        assert_eq!(count(server), 3);
    }
    // A hub without a member of the room knows it, too.
    let (_third_folder, third, _) = with_api(&broker);
    assert_eq!(count(&third), 3);
    let batch = json!({"commands": [
        {"presence_stats": {"channel": "red"}}, {"presence_stats": {"channel": "blue"}}, {"channels": {}},
    ]});
    let replies = call(&third, "batch", &batch)["replies"].clone();
    assert_eq!(replies[0]["presence_stats"]["num_clients"], 3, "{replies}");
    assert_eq!(replies[1]["presence_stats"], json!({"num_clients": 0, "num_users": 0}));
    assert_eq!(replies[2]["error"]["code"], 108, "{replies}");
    broker.kill();
    until("the loss is noticed", || metric(operators, "regatta_hub_broker_up") == 0);
    let error = call(&other, "presence", &json!({"channel": "red"}))["error"].clone();
    assert_eq!(error["code"], 100, "{error}");
}

#[test]
fn a_broker_that_has_lost_everything_learns_it_again() {
    let mut broker = Node::start(&[]);
    let (_one_folder, one, operators) = with_api(&broker);
    let (_other_folder, other, _) = with_api(&broker);
    let mut ann = join(&one, "ann");
    let bob = join(&other, "bob");
    until("both know", || count(&one) == 2 && count(&other) == 2);
    broker.restart(&[]);
    until("it is up again", || metric(operators, "regatta_hub_broker_up") == 1);
    drop(bob);
    let carl = join(&other, "carl");
    let (_third_folder, third, _) = with_api(&broker);
    let start = Instant::now();
    until("all know", || [&one, &other, &third].iter().all(|hub| names(hub) == ["ann", "carl"]));
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    // Without a lost connection.
    broker.client().say("FLUSHALL");
    let start = Instant::now();
    let (_fourth_folder, fourth, _) = with_api(&broker);
    until("a new hub knows", || names(&fourth) == ["ann", "carl"]);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    drop(carl);
    let left = ("leave".to_owned(), json!("carl"), 1);
    while notice(&mut ann) != left {}
    until("all know", || [&one, &third, &fourth].iter().all(|hub| names(hub) == ["ann"]));
    assert_eq!(metric(operators, "regatta_hub_broker_presence_refused_total"), 0);
}

#[test]
fn only_hubs_with_presence_use_keys_and_rights_for_it() {
    let broker = Node::start(&[]);
    let (without, operators) = joined("percore", &broker, &[]);
    let _member = join(&without, "ann");
    let page = crate::support::hub::metrics(operators);
    assert!(!page.contains("presence"), "{page}");
    let mut client = broker.client();
    assert_eq!(client.say("DBSIZE").trim(), ":0");
    assert!(!client.say("PUBSUB CHANNELS").contains("presence"));
    let (_folder, file) = user_of_documentation(&broker);
    let options = ["--presence", "--broker-user", "hub", "--broker-password-file", &file];
    let hubs: Vec<_> = (0..2).map(|_| joined("percore", &broker, &options)).collect();
    let mut bob = join(&hubs[0].0, "bob");
    assert_eq!(notice(&mut bob).2, 1);
    let carl = join(&hubs[1].0, "carl");
    assert_eq!(notice(&mut bob), ("join".into(), json!("carl"), 2));
    drop(carl);
    assert_eq!(notice(&mut bob), ("leave".into(), json!("carl"), 1));
    for (_, operators) in &hubs {
        assert_eq!(metric(*operators, "regatta_hub_broker_presence_refused_total"), 0);
        assert_eq!(metric(*operators, "regatta_hub_broker_ignored_total"), 0);
    }
    client.say("ACL SETUSER hub -hset");
    let _dave = join(&hubs[1].0, "dave");
    until("it is refused", || metric(hubs[1].1, "regatta_hub_broker_presence_refused_total") > 0);
    assert_eq!(metric(hubs[1].1, "regatta_hub_broker_up"), 1, "messages are not concerned");
}

/// Makes a user with the rights of the documentation. Returns the file with its password, and the folder of that.
fn user_of_documentation(broker: &Node) -> (tempfile::TempDir, String) {
    let user = "ACL SETUSER hub on >secret resetchannels &regatta:* ~regatta:* -@all +hello +subscribe +publish \
                +set +pexpire +mget +hset +hdel +hget +hgetall";
    assert!(broker.client().say(user).contains("OK"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "secret").unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

#[test]
fn what_the_broker_refuses_concerns_one_room_and_backends_do_not_wait() {
    let broker = Node::start(&[]);
    let mut client = broker.client();
    let (_folder, file) = user_of_documentation(&broker);
    let more = ["--broker-user", "hub", "--broker-password-file", &file];
    let (_one_folder, one, operators) = with_api_and(&broker, &more);
    let (_other_folder, other, _) = with_api_and(&broker, &more);
    let _ann = join(&one, "ann");
    until("both know", || count(&one) == 1 && count(&other) == 1);
    let lives = || {
        let reply = broker.client().say("KEYS regatta:alive:*");
        let keys: BTreeSet<String> = reply.lines().map(str::to_owned).collect();
        keys
    };
    let before = lives();
    // Somebody else uses the key of a room.
    assert!(client.say("SET regatta:blue:4:members x").contains("OK"));
    let _bob = member_of(&one, "/ws/blue?name=bob");
    until("it is refused", || metric(operators, "regatta_hub_broker_presence_refused_total") > 1);
    let start = Instant::now();
    let of_blue = call(&other, "presence_stats", &json!({"channel": "blue"}));
    assert_eq!(of_blue["error"]["code"], 100, "{of_blue}");
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
    assert_eq!((count(&one), count(&other)), (json!(1), json!(1)));
    client.say("DEL regatta:blue:4:members");
    until("it is tried again", || {
        call(&other, "presence_stats", &json!({"channel": "blue"}))["result"]["num_clients"] == 1
    });
    assert_eq!(lives(), before, "no hub has begun anew");
    // A hub that has died, and one that may not ask which live.
    other.signal("-KILL");
    let _late = join(&one, "late");
    client.say("ACL SETUSER hub -mget");
    let (_third_folder, third, _) = with_api_and(&broker, &more);
    let reply = client.say(
        "HSET regatta:red:3:members 0000000000000009.1 \
                {\"version\":1,\"count\":1,\"next\":1,\"members\":[]}",
    );
    assert_eq!(reply.trim(), ":1");
    let start = Instant::now();
    let of_red = call(&third, "presence", &json!({"channel": "red"}));
    assert_eq!(of_red["error"]["code"], 100, "{of_red}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

/// What a member gets until it has a list, a position, and so many messages: that position, the count of members, and the
/// offsets of the messages.
fn begins(socket: &mut Socket, messages: usize) -> (Value, u64, Vec<u64>) {
    let (mut position, mut count, mut offsets) = (None, None, Vec::new());
    while position.is_none() || count.is_none() || offsets.len() < messages {
        let heard = hear(socket);
        match (heard["type"].as_str().unwrap(), heard["event"].as_str()) {
            ("position", _) => position = Some(heard),
            ("presence", Some("here")) => count = heard["count"].as_u64(),
            ("broadcast", _) => offsets.push(heard["offset"].as_u64().unwrap()),
            _ => panic!("{heard}"),
        }
    }
    (position.unwrap(), count.unwrap(), offsets)
}

/// The next message to a room.
fn payload(socket: &mut Socket) -> Value {
    loop {
        let heard = hear(socket);
        match heard["type"].as_str().unwrap() {
            "broadcast" => return heard["payload"].clone(),
            "broadcastResult" => {}
            _ => panic!("{heard}"),
        }
    }
}

#[test]
fn members_of_rooms_with_a_history_are_notified_too() {
    let broker = Node::start(&[]);
    // The rights of the documentation.
    let user = "ACL SETUSER hub on >secret resetchannels &regatta:* ~regatta:* -@all +hello +subscribe +publish \
                +evalsha +script|load +info +time +exists +hmget +hset +expire +del +xadd +xrange +xrevrange \
                +set +pexpire +mget +hdel +hget +hgetall";
    assert!(broker.client().say(user).contains("OK"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "secret").unwrap();
    let file = file.to_str().unwrap();
    let more = ["--history", "100", "--broker-user", "hub", "--broker-password-file", file];
    let hubs: Vec<_> = (0..3).map(|_| with_api_and(&broker, &more)).collect();
    let [one, other, third] = [0, 1, 2].map(|at| &hubs[at].1);
    let mut ann = join(one, "ann");
    assert_eq!(begins(&mut ann, 0).1, 1);
    let mut bob = join(other, "bob");
    let (position, count, _) = begins(&mut bob, 0);
    assert_eq!((count, &position["offset"]), (2, &json!(0)));
    assert_eq!(notice(&mut ann), ("join".into(), json!("bob"), 2));
    for n in 1..=3 {
        send(&mut ann, &json!({"type": "broadcast", "payload": n}));
        assert_eq!((payload(&mut ann), payload(&mut bob)), (json!(n), json!(n)));
    }
    // Somebody comes back, at a hub that has no copy yet.
    let epoch = position["epoch"].as_str().unwrap();
    let mut carl = member_of(third, &format!("/ws/red?name=carl&epoch={epoch}&offset=1"));
    let (position, count, offsets) = begins(&mut carl, 2);
    assert_eq!((&position["recovered"], count, offsets), (&json!(true), 3, vec![2, 3]));
    for server in [one, other, third] {
        until("it knows all members", || self::count(server) == 3);
        let batch = json!({"commands": [
            {"history": {"channel": "red", "limit": 10}}, {"presence_stats": {"channel": "red"}},
        ]});
        let replies = call(server, "batch", &batch)["replies"].clone();
        assert_eq!(replies[0]["history"]["offset"], 3, "{replies}");
        assert_eq!(replies[1]["presence_stats"]["num_clients"], 3, "{replies}");
    }
    // Names of rooms that look like the end of a key.
    let mut mac = member_of(one, "/ws/p:x?name=mac");
    begins(&mut mac, 0);
    send(&mut mac, &json!({"type": "broadcast", "payload": 1}));
    assert_eq!(payload(&mut mac), 1);
    let mut moe = member_of(one, "/ws/x:3:messages?name=moe");
    assert_eq!(begins(&mut moe, 0).1, 1);
    let _nan = member_of(other, "/ws/x:3:messages?name=nan");
    assert_eq!(notice(&mut moe), ("join".into(), json!("nan"), 2));
    for (_, _, operators) in &hubs {
        assert_eq!(metric(*operators, "regatta_hub_broker_presence_refused_total"), 0);
        assert_eq!(metric(*operators, "regatta_hub_broker_keeps"), 1);
        assert_eq!(metric(*operators, "regatta_hub_broker_lost_total"), 0);
    }
}
