//! Histories at a broker: members that recover at another hub, and what servers do that restart, refuse or change.

use crate::{
    hub::{
        api::{call, files},
        recovering::Client,
    },
    support::{
        hub::{Socket, closed, hear, hub, member_of, metric, page, send, with_metrics},
        hubs::joined,
        on_models, regatta,
        shard::nodes::Node,
        until,
    },
};
use serde_json::{Value, json};

const UP: &str = "regatta_hub_broker_up";
const LOST: &str = "regatta_hub_broker_lost_total";
const DOES_KEEP: &str = "regatta_hub_broker_keeps";
pub const KEEPS: [&str; 2] = ["--history", "100"];

on_models! { a_member_recovers_at_another_hub: epoll, percore, uring }

fn a_member_recovers_at_another_hub(model: &str) {
    let broker = Node::start(&[]);
    let hubs: Vec<_> = (0..3).map(|_| joined(model, &broker, &KEEPS).0).collect();
    let (mut speaker, first) = Client::joins(&hubs[0], None);
    assert_eq!(first["type"], "position", "{model}");
    let (mut other, _) = Client::joins(&hubs[1], None);
    assert_eq!((&other.epoch, other.offset), (&speaker.epoch, 0), "{model}");
    for n in 1..=300 {
        speaker.says(&json!(n));
        assert_eq!(speaker.takes(), n, "{model}");
        if n <= 250 {
            assert_eq!(other.takes(), n, "{model}");
        }
    }
    // The third hub has no copy yet.
    other.comes_back(&hubs[2]);
    (251..=300).for_each(|n| assert_eq!(other.takes(), n, "{model}"));
    other.says(&json!("new"));
    assert_eq!((other.takes(), speaker.takes()), (json!("new"), json!("new")), "{model}");
    other.comes_back(&hubs[0]);
    // More than 100 are missing.
    let (mut late, first) = Client::joins(&hubs[1], Some((&other.epoch, 200)));
    assert_eq!(first["type"], "gap", "{model}: {first}");
    speaker.says(&json!("late"));
    while late.takes() != "late" {}
}

#[test]
fn long_messages_are_fetched_in_parts() {
    let broker = Node::start(&[]);
    let (one, _) = joined("percore", &broker, &KEEPS);
    let (other, _) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    let (mut reader, _) = Client::joins(&one, None);
    let padding = "x".repeat(200_000);
    for n in 1..=30 {
        speaker.says(&json!([n, padding]));
        speaker.takes();
    }
    reader.offset = 0;
    reader.comes_back(&other);
    (1..=30).for_each(|n| assert_eq!(reader.takes()[0], n));
    // At most two of them are in an answer.
    let calls = scripts_of(&broker);
    assert!(calls > 30 + 15, "{calls}");
}

/// How many scripts the broker has run.
fn scripts_of(broker: &Node) -> u32 {
    let calls = broker.client().say("INFO commandstats");
    let calls = calls.split("cmdstat_evalsha:calls=").nth(1).expect("scripts were run");
    calls.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn members_recover_at_a_hub_in_any_order_of_their_positions() {
    let broker = Node::start(&[]);
    let (one, _) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    let mut away: Vec<Client> = [49, 30, 45, 10, 0]
        .into_iter()
        .map(|offset| {
            let (mut client, _) = Client::joins(&one, None);
            client.offset = offset;
            client
        })
        .collect();
    for n in 1..=50 {
        speaker.insists(&json!(n));
    }
    // The newest position first: each later one needs older messages than the hub has.
    let (other, _) = joined("percore", &broker, &KEEPS);
    for client in &mut away {
        client.comes_back(&other);
        (client.offset + 1..=50).for_each(|n| assert_eq!(client.takes(), n));
    }
}

#[test]
fn a_restart_is_a_gap_for_all_also_if_nothing_is_lost() {
    let mut broker = Node::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    (1..=3).for_each(|n| speaker.insists(&json!(n)));
    let before = (speaker.epoch.clone(), speaker.offset);
    broker.kill();
    until("the loss is noticed", || metric(pages, UP) == 0);
    broker.revive();
    speaker.misses();
    assert_eq!(speaker.offset, 3);
    assert_ne!(speaker.epoch, before.0);
    speaker.insists(&json!(4));
    let (mut late, first) = Client::joins(&one, Some((&before.0, before.1)));
    assert_eq!(first["type"], "gap", "{first}");
    speaker.insists(&json!("end"));
    while late.takes() != "end" {}
    late.comes_back(&one);
}

#[test]
fn a_restart_from_an_old_copy_is_a_gap_also_if_the_server_refuses_to_write() {
    let mut broker = Node::start(&[]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    (1..=3).for_each(|n| speaker.insists(&json!(n)));
    broker.client().say("SAVE");
    (4..=6).for_each(|n| speaker.insists(&json!(n)));
    let before = (speaker.epoch.clone(), speaker.offset);
    broker.restart(&["--min-replicas-to-write", "1"]);
    until("it is up, and refuses", || metric(pages, UP) == 1 && metric(pages, DOES_KEEP) == 0);
    // It cannot note that its epochs have ended, so nobody recovers.
    let mut late = member_of(&one, &format!("/ws/red?epoch={}&offset={}", before.0, before.1));
    broker.client().say("CONFIG SET min-replicas-to-write 0");
    assert_eq!(hear(&mut late)["type"], "gap");
    speaker.misses();
    assert_eq!(speaker.offset, 3);
    assert_ne!(speaker.epoch, before.0);
    until("it keeps messages again", || metric(pages, DOES_KEEP) == 1);
    assert_eq!(page(pages, "/ready").0, 200);
}

#[test]
fn a_restart_that_loses_messages_is_a_gap_for_all() {
    let mut broker = Node::start(&[]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    (1..=3).for_each(|n| speaker.says(&json!(n)));
    (1..=3).for_each(|n| assert_eq!(speaker.takes(), n));
    // An old copy: the messages after it are lost, and their offsets are given again.
    broker.client().say("SAVE");
    (4..=6).for_each(|n| speaker.says(&json!(n)));
    (4..=6).for_each(|n| assert_eq!(speaker.takes(), n));
    let before = (speaker.epoch.clone(), speaker.offset);
    broker.kill();
    until("the loss is noticed", || metric(pages, UP) == 0);
    broker.revive();
    speaker.misses();
    assert_eq!(speaker.offset, 3);
    speaker.insists(&json!("new"));
    let (mut late, first) = Client::joins(&one, Some((&before.0, 3)));
    assert_eq!(first["type"], "gap", "somebody has what came behind it: {first}");
    speaker.insists(&json!("end"));
    while late.takes() != "end" {}
}

#[test]
fn a_first_replica_is_no_gap_and_a_promotion_is_one() {
    let (broker, other) = (Node::start(&[]), Node::start(&[]));
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    speaker.insists(&json!(1));
    let id = |node: &Node| {
        let info = node.client().say("INFO replication");
        let id = info.split("master_replid:").nth(1).expect("it has one");
        id.split_whitespace().next().unwrap().to_owned()
    };
    let before = id(&broker);
    other.client().say(&format!("REPLICAOF 127.0.0.1 {}", broker.addr().port()));
    until("the replica is attached", || {
        other.client().say("INFO replication").contains("link_status:up")
    });
    assert_ne!(id(&broker), before);
    speaker.insists(&json!(2));
    speaker.insists(&json!(3));
    other.client().say("REPLICAOF NO ONE");
    broker.client().say(&format!("REPLICAOF 127.0.0.1 {}", other.addr().port()));
    until("it is a replica", || metric(pages, UP) == 0);
    broker.client().say("REPLICAOF NO ONE");
    speaker.misses();
    speaker.insists(&json!(4));
}

#[test]
fn a_broker_that_refuses_to_write_keeps_its_members_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let broker = Node::start(&["--dir", folder.path().to_str().unwrap()]);
    // Once it has looked for its file, a folder is where that should be.
    assert_eq!(broker.client().say("PING"), "+PONG\r\n");
    std::fs::create_dir(folder.path().join("dump.rdb")).unwrap();
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    speaker.insists(&json!(1));
    let mut client = broker.client();
    let mut say = |command: &str| assert!(client.say(command).contains("OK"), "{command}");
    let refusals = [
        ("NOREPLICAS", "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
        ("OOM", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("NOPERM", "ACL SETUSER default -xadd", "ACL SETUSER default +xadd"),
    ];
    for (number, (code, on, off)) in refusals.into_iter().enumerate() {
        say(on);
        speaker.says(&json!("refused"));
        let why = speaker.error();
        assert!(why.starts_with("not published: ") && why.contains(code), "{on}: {why}");
        say(off);
        speaker.insists(&json!(number));
    }
    client.ask(&["CONFIG", "SET", "save", "3600 1"]);
    client.say("BGSAVE");
    until("it cannot save", || {
        broker.client().say("INFO persistence").contains("rdb_last_bgsave_status:err")
    });
    speaker.says(&json!("refused"));
    assert!(speaker.error().contains("MISCONF"));
    // What is kept can be read.
    let position = (speaker.epoch.clone(), 1);
    let (mut late, _) = Client::joins(&one, Some((&position.0, position.1)));
    (0..3).for_each(|n| assert_eq!(late.takes(), n));
    broker.client().ask(&["CONFIG", "SET", "save", ""]);
    speaker.insists(&json!("end"));
    assert_eq!(late.takes(), "end");
    assert_eq!(metric(pages, LOST), 0);
}

#[test]
fn a_connection_that_is_lost_while_the_server_refuses_to_write_ends_no_epoch() {
    let broker = Node::start(&[]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    speaker.insists(&json!(1));
    speaker.insists(&json!(2));
    broker.client().say("CONFIG SET min-replicas-to-write 1");
    until("it refuses", || metric(pages, DOES_KEEP) == 0);
    for lost in 1..=2 {
        broker.client().say("CLIENT KILL TYPE pubsub");
        until("it is up again", || metric(pages, LOST) == lost && metric(pages, UP) == 1);
        // What is kept can be recovered.
        let (mut late, first) = Client::joins(&one, Some((&speaker.epoch, 1)));
        assert_eq!((&first["type"], late.takes()), (&json!("position"), json!(2)));
    }
    broker.client().say("CONFIG SET min-replicas-to-write 0");
    speaker.insists(&json!(3));
}

#[test]
fn a_user_who_may_let_no_key_expire_leaves_none() {
    let broker = Node::start(&[]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    broker.client().say("ACL SETUSER default -expire");
    until("it refuses", || metric(pages, DOES_KEEP) == 0);
    let _green = member_of(&one, "/ws/green");
    let before = scripts_of(&broker);
    until("it has looked", || scripts_of(&broker) >= before + 3);
    assert_eq!(broker.client().say("KEYS *:green:*"), "*0\r\n");
}

#[test]
fn what_is_no_history_of_a_hub_is_another_epoch() {
    let broker = Node::start(&[]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    speaker.insists(&json!(0));
    for change in ["HSET epoch x", "HSET top -1", "HSET top 99999999999999999999", "HDEL kept"] {
        let (command, field) = change.split_once(' ').unwrap();
        broker.client().say(&format!("{command} regatta:red:3:history {field}"));
        let before = speaker.epoch.clone();
        speaker.says(&json!("missed"));
        speaker.misses();
        assert!(speaker.epoch != before && speaker.offset == 1, "{change}");
        speaker.insists(&json!(change));
        speaker.comes_back(&one);
    }
    assert_eq!((metric(pages, LOST), metric(pages, DOES_KEEP)), (0, 1));
}

#[test]
fn a_right_that_comes_back_is_noticed_without_a_message() {
    let broker = Node::start(&[]);
    let (_one, pages) = joined("percore", &broker, &KEEPS);
    for right in ["xadd", "evalsha", "xrevrange", "info", "time", "hset", "expire"] {
        broker.client().say(&format!("ACL SETUSER default -{right}"));
        until(right, || metric(pages, DOES_KEEP) == 0);
        broker.client().say(&format!("ACL SETUSER default +{right}"));
        until(right, || metric(pages, DOES_KEEP) == 1);
    }
    assert_eq!(metric(pages, LOST), 0);
}

#[test]
fn a_key_of_another_type_concerns_its_room_alone() {
    let broker = Node::start(&[]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut red, _) = Client::joins(&one, None);
    red.insists(&json!(1));
    let wrong = |kind: &str| {
        broker.client().say(&format!("SET regatta:{kind}:{}:{kind} x", kind.len()));
    };
    wrong("history");
    for kind in ["history", "messages"] {
        let mut socket = member_of(&one, &format!("/ws/{kind}"));
        if kind == "messages" {
            assert_eq!(hear(&mut socket)["type"], "position");
            wrong(kind);
        }
        send(&mut socket, &json!({"type": "broadcast", "payload": 1}));
        let error = hear(&mut socket);
        let why = error["error"].as_str().unwrap_or_default();
        assert!(why.starts_with("not published: ") && why.contains("WRONGTYPE"), "{error}");
        red.insists(&json!(kind));
        if kind == "history" {
            // Its position cannot be had.
            assert_eq!(closed(&mut socket).map(u16::from), Some(1013));
        }
    }
    assert_eq!((metric(pages, DOES_KEEP), metric(pages, LOST)), (1, 0));
    assert_eq!(page(pages, "/ready").0, 200);
}

#[test]
fn a_room_to_which_nobody_has_published_leaves_nothing_at_the_broker() {
    let broker = Node::start(&[]);
    let (one, _) = joined("percore", &broker, &KEEPS);
    let (mut red, _) = Client::joins(&one, None);
    let mut client = broker.client();
    let keys = client.say("KEYS *:red:*");
    assert_eq!(keys, "*1\r\n$21\r\nregatta:red:3:history\r\n");
    let mut ttl = || {
        let ttl = client.say("TTL regatta:red:3:history");
        ttl.trim().trim_start_matches(':').parse::<i64>().unwrap()
    };
    assert!((61..=300).contains(&ttl()));
    // As long as there is a member, it stays.
    client_expire(&broker, 25);
    until("it is prolonged", || ttl() > 25);
    red.insists(&json!(1));
    assert!(ttl() > 7_200);
}

/// Lets what is known of the room end in so many seconds.
fn client_expire(broker: &Node, seconds: u32) {
    broker.client().say(&format!("EXPIRE regatta:red:3:history {seconds}"));
}

#[test]
fn a_message_that_is_too_long_for_the_broker_is_not_fetched_for_ever() {
    let broker = Node::start(&["--client-output-buffer-limit", "pubsub 1mb 0 0"]);
    let options = [&KEEPS[..], &["--longest-message", "3000000"]].concat();
    let (one, pages) = joined("percore", &broker, &options);
    let (other, others) = joined("percore", &broker, &options);
    let (mut speaker, _) = Client::joins(&one, None);
    let (mut reader, _) = Client::joins(&other, None);
    speaker.insists(&json!(1));
    assert_eq!(reader.takes(), 1);
    let before = (speaker.epoch.clone(), speaker.offset);
    speaker.says(&json!("x".repeat(2_000_000)));
    reader.misses();
    assert_eq!(reader.offset, 2);
    speaker.insists_after_a_gap(&json!(3));
    assert_eq!(reader.takes(), 3);
    // It is older than what this hub has.
    let (third, thirds) = joined("percore", &broker, &options);
    let (mut late, first) = Client::joins(&third, Some((&before.0, before.1)));
    assert_eq!(first["type"], "gap", "{first}");
    speaker.insists(&json!(4));
    while late.takes() != 4 {}
    for page in [pages, others, thirds] {
        assert!((1..=4).contains(&metric(page, LOST)), "{}", metric(page, LOST));
    }
}

#[test]
fn a_hub_without_a_history_continues_that_of_others_or_members_get_a_gap() {
    let broker = Node::start(&[]);
    let (one, _) = joined("percore", &broker, &KEEPS);
    let (mut reader, _) = Client::joins(&one, None);
    let (plain, _) = joined("percore", &broker, &[]);
    let mut speaker = member_of(&plain, "/ws/red");
    send(&mut speaker, &json!({"type": "broadcast", "payload": 1}));
    assert_eq!(reader.takes(), 1);
    assert_eq!(hear(&mut speaker), json!({"type": "broadcast", "payload": 1}), "without an offset");
    // It may not ask whether others have histories.
    broker.client().say("ACL SETUSER default -exists");
    let (plain, _) = joined("percore", &broker, &[]);
    let mut speaker = member_of(&plain, "/ws/red");
    send(&mut speaker, &json!({"type": "broadcast", "payload": 2}));
    let before = (reader.epoch.clone(), reader.offset);
    reader.misses();
    let (_, first) = Client::joins(&one, Some((&before.0, before.1)));
    assert_eq!(first["type"], "gap", "{first}");
    reader.insists(&json!(3));
}

#[test]
fn a_hub_without_a_history_needs_no_other_rights_because_others_have_one() {
    let broker = Node::start(&[]);
    let rights = "on >s3cret resetkeys ~regatta:* resetchannels &regatta:* -@all +hello +subscribe +publish +exists";
    assert_eq!(broker.client().say(&format!("ACL SETUSER plain {rights}")), "+OK\r\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "s3cret").unwrap();
    let user = ["--broker-user", "plain", "--broker-password-file", file.to_str().unwrap()];
    let (plain, pages) = joined("percore", &broker, &user);
    let mut speaker = member_of(&plain, "/ws/red");
    let says = |speaker: &mut Socket, payload: u64| {
        send(speaker, &json!({"type": "broadcast", "payload": payload}));
        assert_eq!(hear(speaker), json!({"type": "broadcast", "payload": payload}));
        assert_eq!(hear(speaker)["type"], "broadcastResult");
    };
    says(&mut speaker, 1);
    let (one, _) = joined("percore", &broker, &KEEPS);
    let (mut reader, _) = Client::joins(&one, None);
    reader.insists(&json!("kept"));
    let errors = || broker.client().say("INFO errorstats");
    until("it may run no script", || errors().contains("errorstat_NOPERM"));
    assert_eq!(hear(&mut speaker)["payload"], "kept");
    says(&mut speaker, 2);
    reader.misses();
    assert_eq!(
        (page(pages, "/ready").0, metric(pages, DOES_KEEP), metric(pages, LOST)),
        (200, 1, 0)
    );
    // With all rights its messages are in the history.
    assert_eq!(broker.client().say("ACL SETUSER plain +@all"), "+OK\r\n");
    until("it keeps its messages", || {
        says(&mut speaker, 3);
        let offset = broker.client().say("HGET regatta:red:3:history top");
        offset.lines().nth(1).is_some_and(|top| top > "1")
    });
}

#[test]
fn a_hub_whose_members_are_older_than_its_histories_ends_an_epoch_with_a_hole() {
    let broker = Node::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hub.toml");
    std::fs::write(&file, "").unwrap();
    let url = format!("redis://{}", broker.addr());
    let (old, pages) =
        with_metrics(regatta!("hub --broker {url} --metrics 127.0.0.1:0 --config").arg(&file));
    until("the hub is connected", || page(pages, "/ready").0 == 200);
    let mut member = member_of(&old, "/ws/red");
    std::fs::write(&file, "history = 100\n").unwrap();
    old.signal("-HUP");
    until("it keeps histories", || broker.client().say("EXISTS regatta::0:reign") == ":1\r\n");
    let (other, _) = joined("percore", &broker, &KEEPS);
    let (mut client, _) = Client::joins(&other, None);
    client.insists(&json!(1));
    assert_eq!(hear(&mut member)["payload"], 1);
    drop(other);
    // One without histories, which may not ask whether others have some.
    broker.client().say("ACL SETUSER default -exists");
    let (plain, _) = joined("percore", &broker, &[]);
    let mut speaker = member_of(&plain, "/ws/red");
    send(&mut speaker, &json!({"type": "broadcast", "payload": 2}));
    assert_eq!(hear(&mut member)["payload"], 2);
    until("the epoch has ended", || {
        !broker.client().say("HGET regatta:red:3:history epoch").contains(&client.epoch)
    });
    let (late, _) = joined("percore", &broker, &KEEPS);
    let (_, first) = Client::joins(&late, Some((&client.epoch, 1)));
    assert_eq!(first["type"], "gap", "{first}");
}

#[test]
fn backends_get_offsets_and_read_histories_at_any_hub() {
    let mut broker = Node::start(&[]);
    let (_folder, options) = files();
    let options: Vec<&str> = options[..2].iter().map(String::as_str).chain(KEEPS).collect();
    let (one, _) = joined("percore", &broker, &options);
    let (other, pages) = joined("percore", &broker, &options);
    let first = call(&one, "publish", &json!({"channel": "red", "data": 1}))["result"].clone();
    assert_eq!(first["offset"], 1, "{first}");
    let many = json!({"channels": ["red", "blue"], "data": 2});
    let responses = call(&one, "broadcast", &many)["result"]["responses"].clone();
    assert_eq!(responses[0]["result"]["offset"], 2, "{responses}");
    assert_eq!(responses[1]["result"]["offset"], 1, "{responses}");
    let history = |asked: Value| call(&other, "history", &asked);
    let all = history(json!({"channel": "red", "limit": -1}))["result"].clone();
    assert_eq!((&all["epoch"], &all["offset"]), (&first["epoch"], &json!(2)), "{all}");
    assert_eq!(all["publications"], json!([{"offset": 1, "data": 1}, {"offset": 2, "data": 2}]));
    let since = json!({"epoch": first["epoch"], "offset": 1});
    let some = history(json!({"channel": "red", "limit": -1, "since": since}))["result"].clone();
    assert_eq!(some["publications"], json!([{"offset": 2, "data": 2}]));
    call(&one, "publish", &json!({"channel": "red", "data": 3}));
    let last = history(json!({"channel": "red", "limit": 1, "reverse": true}))["result"].clone();
    assert_eq!(last["publications"], json!([{"offset": 3, "data": 3}]));
    let wrong = json!({"epoch": "00000000000000ff", "offset": 1});
    assert_eq!(history(json!({"channel": "red", "since": wrong}))["error"]["code"], 112);
    broker.kill();
    until("the loss is noticed", || metric(pages, UP) == 0);
    let error = history(json!({"channel": "red", "limit": 1}))["error"].clone();
    assert_eq!(error["code"], 100, "{error}");
}

#[test]
fn a_backend_gets_an_answer_while_the_broker_refuses_everything() {
    let mut broker = Node::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (_folder, options) = files();
    let options: Vec<&str> = options[..2].iter().map(String::as_str).chain(KEEPS).collect();
    let (one, pages) = joined("percore", &broker, &options);
    let (mut red, _) = Client::joins(&one, None);
    red.insists(&json!(1));
    let history = |channel: &str| call(&one, "history", &json!({"channel": channel, "limit": 1}));
    broker.client().say("CONFIG SET min-replicas-to-write 1");
    until("it refuses", || metric(pages, DOES_KEEP) == 0);
    // A member waits there.
    let _green = member_of(&one, "/ws/green");
    let answer = history("green");
    assert_eq!(answer["error"]["code"], 100, "{answer}");
    assert_eq!(history("red")["result"]["offset"], 1, "it is known");
    broker.restart(&["--min-replicas-to-write", "1"]);
    until("it is up, and refuses", || metric(pages, UP) == 1 && metric(pages, DOES_KEEP) == 0);
    let answer = history("red");
    assert_eq!(answer["error"]["code"], 100, "its epoch must end: {answer}");
}

#[test]
fn members_that_join_while_the_broker_is_away_get_an_answer_later() {
    let mut broker = Node::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (one, pages) = joined("percore", &broker, &KEEPS);
    let (mut speaker, _) = Client::joins(&one, None);
    speaker.insists(&json!(1));
    speaker.insists(&json!(2));
    broker.kill();
    until("the loss is noticed", || metric(pages, UP) == 0);
    let path = format!("/ws/red?epoch={}&offset=1", speaker.epoch);
    let mut socket = member_of(&one, &path);
    send(&mut socket, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut socket)["type"], "echo");
    broker.revive();
    let first = hear(&mut socket);
    assert_eq!((&first["type"], &first["offset"]), (&json!("gap"), &json!(2)), "{first}");
    speaker.misses();
    speaker.insists(&json!(3));
    assert_eq!(hear(&mut socket)["payload"], 3);
    // A hub that starts while it refuses to write.
    broker.client().say("CONFIG SET min-replicas-to-write 1");
    let url = format!("redis://{}", broker.addr());
    let (late, pages) = hub("percore", &["--broker", &url, "--history", "5"]);
    until("it is connected", || page(pages, "/ready").0 == 200);
    let (_, first) = Client::joins(&late, Some((&speaker.epoch, 2)));
    assert_eq!(first["type"], "position", "{first}");
}
