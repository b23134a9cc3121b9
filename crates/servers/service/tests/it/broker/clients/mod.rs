//! Clients of Centrifugo's protocol at a hub with a broker. `dialect` is such a client for the simulation.

pub mod dialect;
mod joining;
mod leaving;
mod seat;
mod tally;
pub mod watcher;

use super::one_hub::{World, keeping};
use regatta_engine::Conn;
use regatta_service::hub::Settings;
use serde_json::{Value, json};

/// A hub that is connected, and whose rooms have so many messages.
fn world(name: &'static str, messages: usize) -> World {
    let presence = messages == 0;
    world_with(name, Settings { presence, ..keeping(messages) })
}

fn world_with(name: &'static str, settings: Settings) -> World {
    let mut world = World::with(name, false, Settings { centrifuge: true, ..settings });
    world.passes(3000);
    world
}

/// A client that is connected, and its name.
fn client(world: &mut World) -> (Conn, String) {
    let conn = world.joins("/connection/websocket");
    let reply = asks(world, conn, json!({"id": 1, "connect": {}}));
    (conn, reply["connect"]["client"].as_str().expect("a name").to_owned())
}

/// A client in this room.
fn subscribed(world: &mut World, channel: &str) -> Conn {
    let (conn, _) = client(world);
    let reply = asks(world, conn, json!({"id": 2, "subscribe": {"channel": channel}}));
    assert!(reply["subscribe"].is_object(), "{reply}");
    conn
}

fn sends(world: &mut World, conn: Conn, command: Value) {
    world.sends(conn, &command.to_string());
}

/// What a client has got.
fn lines(world: &mut World, conn: Conn) -> Vec<Value> {
    read(&world.texts_of(conn))
}

fn read(texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Sends a command, and returns the only thing that comes within some milliseconds.
fn asks(world: &mut World, conn: Conn, command: Value) -> Value {
    sends(world, conn, command);
    world.passes(10);
    let mut all = lines(world, conn);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn publishes(id: u32, data: Value) -> Value {
    json!({"id": id, "publish": {"channel": "red", "data": data}})
}

fn published(id: u32) -> Value {
    json!({"id": id, "publish": {}})
}

fn push(data: Value) -> Value {
    json!({"push": {"channel": "red", "pub": {"data": data}}})
}

fn push_at(data: Value, offset: u64) -> Value {
    json!({"push": {"channel": "red", "pub": {"data": data, "offset": offset}}})
}

fn recovers(id: u32, epoch: &Value, offset: u64) -> Value {
    json!({"id": id, "subscribe": {"channel": "red", "recover": true, "epoch": epoch, "offset": offset}})
}

fn ended() -> Value {
    let why = json!({"code": 2500, "reason": "insufficient state"});
    json!({"push": {"channel": "red", "unsubscribe": why}})
}

#[test]
fn the_reply_to_a_publication_waits_for_the_broker_and_follows_the_own_copy() {
    let mut world = world("own copies", 0);
    let (ann, bob) = (subscribed(&mut world, "red"), subscribed(&mut world, "red"));
    sends(&mut world, ann, publishes(3, json!({"n": 1})));
    assert_eq!(lines(&mut world, ann), [Value::Null; 0], "nobody has confirmed it");
    sends(&mut world, ann, publishes(4, json!(2)));
    world.passes(5);
    let (one, other) = (push(json!({"n": 1})), push(json!(2)));
    assert_eq!(lines(&mut world, bob), [one.clone(), other.clone()]);
    assert_eq!(lines(&mut world, ann), [one, published(3), other, published(4)]);
    // It is not in the room, and publishes there.
    let (carl, _) = client(&mut world);
    assert_eq!(asks(&mut world, carl, publishes(2, json!(3))), published(2));
    assert_eq!(lines(&mut world, bob), [push(json!(3))]);
}

#[test]
fn with_a_history_own_copies_have_offsets_and_come_before_the_replies() {
    let mut world = world("kept copies", 5);
    let ann = subscribed(&mut world, "red");
    sends(&mut world, ann, publishes(3, json!(1)));
    sends(&mut world, ann, publishes(4, json!(2)));
    world.passes(5);
    let expected = [push_at(json!(1), 1), published(3), push_at(json!(2), 2), published(4)];
    assert_eq!(lines(&mut world, ann), expected);
    let history = json!({"id": 5, "history": {"channel": "red", "limit": 1, "reverse": true}});
    let kept = asks(&mut world, ann, history)["history"].clone();
    assert_eq!(
        (&kept["offset"], &kept["publications"]),
        (&json!(2), &json!([{"offset": 2, "data": 2}]))
    );
    let since = json!({"epoch": "0123456789abcdef", "offset": 1});
    let history = json!({"id": 6, "history": {"channel": "red", "limit": 9, "since": since}});
    assert_eq!(asks(&mut world, ann, history)["error"]["code"], 112);
}

#[test]
fn commands_fail_at_once_while_the_broker_is_away_and_clients_may_try_again() {
    let mut world = world("away", 5);
    let ann = subscribed(&mut world, "red");
    sends(&mut world, ann, publishes(3, json!(1)));
    world.cuts();
    let unknown = lines(&mut world, ann);
    let why = json!({"code": 100, "message": "unknown whether published: the broker has not confirmed it"});
    assert_eq!(unknown, [json!({"id": 3, "error": why})], "it is not to be sent again at once");
    for command in [
        publishes(4, json!(1)),
        json!({"id": 5, "subscribe": {"channel": "blue"}}),
        json!({"id": 6, "history": {"channel": "red"}}),
    ] {
        sends(&mut world, ann, command);
        let all = lines(&mut world, ann);
        assert_eq!((all.len(), &all[0]["error"]["code"]), (1, &json!(100)), "{all:?}");
        assert_eq!(all[0]["error"]["temporary"], true, "{all:?}");
    }
    world.passes(3000);
    lines(&mut world, ann);
    let reply = asks(&mut world, ann, json!({"id": 7, "subscribe": {"channel": "blue"}}));
    assert_eq!(reply["subscribe"]["recoverable"], true, "it has left the room: {reply}");
}

#[test]
fn a_client_recovers_what_the_broker_keeps_or_learns_that_it_cannot() {
    let mut world = world("recovery", 3);
    let (ann, bob) = (subscribed(&mut world, "red"), subscribed(&mut world, "red"));
    let history = json!({"id": 3, "history": {"channel": "red"}});
    let epoch = asks(&mut world, ann, history)["history"]["epoch"].clone();
    world.leaves(ann);
    for n in 1..4 {
        sends(&mut world, bob, publishes(n + 9, json!(n)));
    }
    world.passes(5);
    lines(&mut world, bob);
    let (ann, _) = client(&mut world);
    let publications: Vec<Value> = (1..4).map(|n| json!({"offset": n, "data": n})).collect();
    let expected = json!({"recoverable": true, "positioned": true, "epoch": epoch, "offset": 3,
        "publications": publications, "recovered": true, "was_recovering": true});
    let reply = asks(&mut world, ann, recovers(2, &epoch, 0));
    assert_eq!(reply["subscribe"], expected);
    // What comes then follows.
    sends(&mut world, bob, publishes(20, json!(4)));
    world.passes(5);
    assert_eq!(lines(&mut world, ann), [push_at(json!(4), 4)]);
    for (named, offset) in
        [(&epoch, 0), (&epoch, 9), (&json!("0123456789abcdef"), 4), (&json!(""), 0)]
    {
        let (carl, _) = client(&mut world);
        let mut strict = recovers(2, named, offset);
        strict["subscribe"]["flag"] = json!(2);
        assert_eq!(asks(&mut world, carl, strict)["error"]["code"], 112);
        let reply = asks(&mut world, carl, recovers(3, named, offset))["subscribe"].clone();
        let expected = json!({"recoverable": true, "positioned": true, "epoch": epoch, "offset": 4,
            "was_recovering": true});
        assert_eq!(reply, expected, "it was not in the room");
    }
}

#[test]
fn a_client_that_publishes_or_leaves_before_its_subscription_has_begun_gets_all_answers() {
    let mut world = world("early", 5);
    let (ann, _) = client(&mut world);
    sends(&mut world, ann, json!({"id": 2, "subscribe": {"channel": "red"}}));
    sends(&mut world, ann, publishes(3, json!(1)));
    assert_eq!(lines(&mut world, ann), [Value::Null; 0]);
    world.passes(5);
    let all = lines(&mut world, ann);
    assert_eq!((&all[0]["id"], &all[0]["subscribe"]["offset"]), (&json!(2), &json!(0)), "{all:?}");
    assert_eq!(all[1..], [push_at(json!(1), 1), published(3)]);
    for command in [
        json!({"id": 4, "subscribe": {"channel": "blue"}}),
        json!({"id": 5, "subscribe": {"channel": "blue"}}),
        json!({"id": 6, "unsubscribe": {"channel": "blue"}}),
        json!({"id": 7, "subscribe": {"channel": "blue"}}),
    ] {
        sends(&mut world, ann, command);
    }
    let all = lines(&mut world, ann);
    let of = |at: usize| (&all[at]["id"], &all[at]["error"]["code"]);
    assert_eq!((of(0), of(1)), ((&json!(5), &json!(105)), (&json!(4), &json!(100))), "{all:?}");
    assert_eq!(all[2..], [json!({"id": 6, "unsubscribe": {}})]);
    world.passes(5);
    let all = lines(&mut world, ann);
    assert_eq!(all.len(), 1, "the first one is answered already: {all:?}");
    assert_eq!((&all[0]["id"], &all[0]["subscribe"]["offset"]), (&json!(7), &json!(0)));
}

#[test]
fn what_a_client_has_published_before_it_subscribes_is_not_new_for_it() {
    let mut world = world("before", 5);
    // The hub has a copy, which is not current.
    let bob = subscribed(&mut world, "red");
    world.leaves(bob);
    let (ann, _) = client(&mut world);
    let subscribe = json!({"id": 3, "subscribe": {"channel": "red"}});
    world.sends(ann, &format!("{}\n{subscribe}", publishes(2, json!(1))));
    world.passes(5);
    let all = lines(&mut world, ann);
    let reply = all.iter().find(|one| one["id"] == 3).expect("a reply");
    assert_eq!(reply["subscribe"]["offset"], 1, "as on one hub: {all:?}");
    assert!(all.len() == 2 && all.contains(&published(2)), "{all:?}");
}

#[test]
fn a_loss_ends_subscriptions_without_a_history_so_that_clients_subscribe_again() {
    let mut world = world("losses", 0);
    let ann = subscribed(&mut world, "red");
    let reply = asks(&mut world, ann, json!({"id": 3, "subscribe": {"channel": "blue"}}));
    assert!(reply["subscribe"].is_object());
    world.cuts();
    world.passes(3000);
    let all = lines(&mut world, ann);
    assert!(all.len() == 2 && all.contains(&ended()), "{all:?}");
    assert_eq!(
        asks(&mut world, ann, publishes(4, json!(1))),
        published(4),
        "it is not in the room"
    );
    let again = json!({"id": 5, "subscribe": {"channel": "red"}});
    assert_eq!(asks(&mut world, ann, again), json!({"id": 5, "subscribe": {}}));
    sends(&mut world, ann, publishes(6, json!(2)));
    world.passes(5);
    assert_eq!(lines(&mut world, ann), [push(json!(2)), published(6)]);
}

#[test]
fn with_a_history_only_another_epoch_ends_subscriptions() {
    let mut world = world("epochs", 5);
    let ann = subscribed(&mut world, "red");
    let epoch = world.asks_epoch(ann);
    world.cuts();
    world.passes(3000);
    assert_eq!(lines(&mut world, ann), [Value::Null; 0], "nothing was missed");
    world.servers[0].restarts(9, true);
    world.cuts();
    world.passes(3000);
    assert_eq!(lines(&mut world, ann), [ended()]);
    let reply = asks(&mut world, ann, recovers(9, &epoch, 0))["subscribe"].clone();
    assert_eq!((&reply["recovered"], &reply["was_recovering"]), (&Value::Null, &json!(true)));
    assert_ne!(reply["epoch"], epoch);
}

#[test]
fn a_client_that_reads_late_hears_of_another_epoch_behind_what_it_has_not_read() {
    let mut world = world("late", 5);
    let (ann, bob) = (subscribed(&mut world, "red"), subscribed(&mut world, "red"));
    let long = "x".repeat(30_000);
    for n in 0..3 {
        sends(&mut world, bob, publishes(n + 3, json!(long)));
        world.passes(5);
        lines(&mut world, bob);
    }
    world.servers[0].restarts(9, true);
    world.cuts();
    world.passes(3000);
    let all = lines(&mut world, ann);
    assert!(all.len() == 4 && all[3] == ended(), "{}", all.len());
}

impl World {
    fn asks_epoch(&mut self, conn: Conn) -> Value {
        let history = json!({"id": 8, "history": {"channel": "red"}});
        asks(self, conn, history)["history"]["epoch"].clone()
    }
}

#[test]
fn clients_are_listed_by_the_names_that_they_have_at_all_hubs() {
    let mut world = world("presence", 0);
    let ((ann, one), (bob, other)) = (client(&mut world), client(&mut world));
    assert!(one.contains('-') && one != other);
    for conn in [ann, bob] {
        let reply = asks(&mut world, conn, json!({"id": 3, "subscribe": {"channel": "red"}}));
        assert_eq!(reply["subscribe"], json!({}));
    }
    world.passes(500);
    assert_eq!(lines(&mut world, ann), [Value::Null; 0], "lists and notes are not for it");
    let all = asks(&mut world, ann, json!({"id": 4, "presence": {"channel": "red"}}));
    let all = all["presence"]["presence"].as_object().unwrap().clone();
    assert_eq!(all.keys().collect::<Vec<_>>(), [&one, &other]);
    assert!(all.iter().all(|(name, info)| info["client"] == **name), "{all:?}");
    let stats = asks(&mut world, bob, json!({"id": 5, "presence_stats": {"channel": "red"}}));
    assert_eq!(stats["presence_stats"], json!({"num_clients": 2, "num_users": 1}));
    // Another hub lives, and does not say who all of its members are.
    let alive = ["SET", "x:alive:0000000000000009.1", "1", "PX", "99000"];
    let some = r#"{"version":1,"count":3,"next":9,"members":[[1,"eve",null,null]]}"#;
    let stored = ["HSET", "x:blue:4:members", "0000000000000009.1", some];
    for command in [&alive[..], &stored] {
        let command: Vec<&[u8]> = command.iter().map(|part| part.as_bytes()).collect();
        world.servers[0].keys.carries_out(&command, world.now.instant, &mut Vec::new());
    }
    let of_blue = json!({"channel": "blue"});
    let stats = asks(&mut world, ann, json!({"id": 7, "presence_stats": of_blue}));
    assert_eq!(stats["presence_stats"], json!({"num_clients": 3, "num_users": 1}));
    let all = asks(&mut world, ann, json!({"id": 8, "presence": of_blue}));
    assert_eq!(all["error"]["code"], 106, "two would be missing: {all}");
    world.cuts();
    let away = json!({"id": 6, "presence": {"channel": "red"}});
    sends(&mut world, bob, away);
    assert_eq!(lines(&mut world, bob)[0]["error"]["code"], 100);
}

#[test]
fn a_client_that_leaves_gets_the_replies_to_what_it_has_published() {
    let mut world = world("leaves", 5);
    let [ann, bob, carl] = [(); 3].map(|()| subscribed(&mut world, "red"));
    for conn in [ann, bob, carl] {
        sends(&mut world, conn, publishes(3, json!(1)));
    }
    world.sends_close(ann);
    world.retires(bob);
    world.ends(carl);
    let all = [(ann, 1000), (bob, 3001), (carl, 3001)];
    world.passes(20);
    let before = all.map(|(conn, _)| lines(&mut world, conn));
    world.passes(2000);
    for ((conn, code), mut all) in all.into_iter().zip(before) {
        let (texts, closed) = world.last_of(conn);
        all.extend(read(&texts));
        assert_eq!(closed, Some(code), "{all:?}");
        assert!(all.contains(&published(3)), "{all:?}");
        let own = all.iter().position(|one| *one == published(3));
        let copy = all.iter().position(|one| one["push"]["pub"].is_object());
        assert!(copy < own, "{all:?}");
    }
}

#[test]
fn a_client_that_does_not_read_is_bounded_and_others_do_not_wait() {
    let mut settings = keeping(0);
    settings.backlog.pushes = 3;
    let mut world = world_with("slow", settings);
    let (slow, fast) = (subscribed(&mut world, "red"), subscribed(&mut world, "red"));
    let long = "x".repeat(40_000);
    for n in 0..6 {
        sends(&mut world, fast, publishes(n + 3, json!(long)));
        world.passes(5);
        assert_eq!(lines(&mut world, fast).len(), 2);
    }
    let (texts, closed) = world.last_of(slow);
    assert_eq!((texts.len(), closed), (2, Some(3008)));
}

#[test]
fn a_client_is_not_read_while_256_of_its_commands_wait_for_the_broker() {
    let mut world = world("flood", 5);
    let ann = subscribed(&mut world, "red");
    // What is kept of these rooms is not known yet.
    let history = |id: u32| json!({"id": id, "history": {"channel": id.to_string(), "limit": 1}});
    (0..255).for_each(|id| sends(&mut world, ann, history(id + 3)));
    assert!(world.is_read(ann));
    sends(&mut world, ann, history(999));
    assert!(!world.is_read(ann));
    world.passes(20);
    assert_eq!(lines(&mut world, ann).len(), 256);
    assert!(world.is_read(ann));
}

#[test]
fn of_a_frame_with_thousands_of_commands_those_beyond_1024_that_wait_are_refused() {
    let mut world = world("one-frame", 5);
    let ann = subscribed(&mut world, "red");
    let history = |id: u32| json!({"id": id, "history": {"channel": id.to_string(), "limit": 1}});
    let mut frame: Vec<String> = (0..2_000).map(|id| history(id + 3).to_string()).collect();
    let unsubscribe = json!({"id": 5_000, "unsubscribe": {"channel": "red"}});
    frame.push(unsubscribe.to_string());
    world.sends(ann, &frame.join("\n"));
    world.passes(50);
    let texts = world.texts_of(ann).join("\n");
    let all: Vec<Value> = texts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = all.iter().filter(|line| line["error"]["code"] == 111).count();
    assert_eq!((all.len(), refused), (2_001, 2_000 - 1_024));
    let done = json!({"id": 5_000, "unsubscribe": {}});
    assert!(all.contains(&done), "it does not wait for the broker");
    assert!(world.is_read(ann));
}

#[test]
fn a_client_that_publishes_is_not_read_while_others_wait_behind_its_messages() {
    let mut world = world("busy", 5);
    let ann = subscribed(&mut world, "red");
    let long = "x".repeat(1_000);
    let mut sent = 0;
    while world.is_read(ann) {
        sent += 1;
        sends(&mut world, ann, publishes(sent + 2, json!(long)));
    }
    assert!(sent > 10 && sent < 256, "{sent}");
    world.passes(50);
    let all = lines(&mut world, ann);
    assert_eq!(all.len(), 2 * sent as usize);
    assert_eq!(all[all.len() - 1], published(sent + 2));
    assert!(world.is_read(ann));
}
