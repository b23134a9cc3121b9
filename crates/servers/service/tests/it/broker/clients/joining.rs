//! Clients that are notified who joins and leaves, at all hubs.

use super::{client, keeping, lines, read, sends, world, world_with};
use crate::broker::one_hub::World;
use regatta_engine::Conn;
use regatta_service::hub::Settings;
use serde_json::{Value, json};

/// The number of another hub.
const OTHER: u64 = 9;

/// Subscribes to a room with a command that has this number, and returns all that comes within 200 ms.
fn subscribes(world: &mut World, conn: Conn, id: u32) -> Vec<Value> {
    let subscribe = json!({"channel": "red", "join_leave": true});
    sends(world, conn, json!({"id": id, "subscribe": subscribe}));
    world.passes(200);
    lines(world, conn)
}

/// The pushes about members: what has happened, the client, and its name.
fn events(all: &[Value]) -> Vec<(&'static str, String, Value)> {
    let one = |line: &Value| {
        ["join", "leave"].into_iter().find_map(|kind| {
            let info = &line["push"][kind]["info"];
            let client = info["client"].as_str()?.to_owned();
            Some((kind, client, info["chan_info"]["name"].clone()))
        })
    };
    all.iter().filter_map(one).collect()
}

/// What another hub has stored of its members in the room.
fn stores(world: &mut World, state: &Value) {
    let field = format!("{OTHER:016x}.1");
    let (alive, state) = (format!("x:alive:{field}"), state.to_string());
    for command in
        [&["SET", &alive, "1", "PX", "99000"][..], &["HSET", "x:red:3:members", &field, &state]]
    {
        let command: Vec<&[u8]> = command.iter().map(|part| part.as_bytes()).collect();
        world.servers[0].keys.carries_out(&command, world.now.instant, &mut Vec::new());
    }
}

/// Another hub says what has changed.
fn says(world: &mut World, number: u64, change: Value) {
    let note = json!({"node": OTHER, "life": 1, "number": number, "change": change});
    world.publishes_in(0, "x:presence", note.to_string().as_bytes());
}

/// A hub with a member of its own protocol, which has got its list.
fn world_with_eve(name: &'static str) -> (World, Conn) {
    let mut world = world(name, 0);
    let conn = world.joins("/ws/red?name=eve");
    world.passes(200);
    world.texts_of(conn);
    (world, conn)
}

#[test]
fn a_client_gets_its_own_join_once_and_then_what_members_of_its_hub_get() {
    let (mut world, conn) = world_with_eve("joins");
    let ((ann, one), (bob, other)) = (client(&mut world), client(&mut world));
    let all = subscribes(&mut world, ann, 2);
    assert_eq!(all[0], json!({"id": 2, "subscribe": {}}));
    assert_eq!(events(&all), [("join", one.clone(), Value::Null)], "{all:?}");
    assert_eq!(all.len(), 2, "eve was there: {all:?}");
    sends(&mut world, bob, json!({"id": 2, "subscribe": {"channel": "red"}}));
    let late = world.joins("/ws/red?name=late");
    world.passes(200);
    let came = json!([[3, "far", null, null], [4, null, null, {"a": 1}, 281474976710657_u64]]);
    let change =
        json!({"room": "red", "from": 0, "to": 1, "count": 2, "next": 5, "came": came, "went": []});
    says(&mut world, 1, change);
    world.passes(20);
    world.leaves(late);
    world.passes(200);
    let change =
        json!({"room": "red", "from": 1, "to": 2, "count": 1, "next": 5, "came": [], "went": [4]});
    says(&mut world, 2, change.clone());
    says(&mut world, 2, change);
    world.passes(20);
    let all = lines(&mut world, ann);
    let of_other = |number: u64| format!("{OTHER:016x}-{number}");
    let got = events(&all);
    assert_eq!(got.len(), all.len(), "{all:?}");
    let clients: Vec<&str> = got.iter().map(|(_, client, _)| &**client).collect();
    assert_eq!((clients[0], clients[1], clients[4]), (&*other, clients[4], clients[1]));
    assert_eq!(clients[2..4], [of_other(3), of_other(281_474_976_710_657)]);
    assert_eq!((got.len(), clients[5]), (6, clients[3]));
    let info = &all
        .iter()
        .find(|line| line["push"]["join"]["info"]["client"] == clients[3])
        .unwrap()["push"];
    assert_eq!(info["join"]["info"]["conn_info"], json!({"a": 1}));
    // The same, in the same order.
    let of_member = read(&world.texts_of(conn));
    let of_member: Vec<_> =
        of_member.iter().skip(1).map(|one| (one["event"].clone(), one["member"].clone())).collect();
    let got: Vec<_> = got.iter().map(|(kind, _, name)| (json!(kind), name.clone())).collect();
    assert_eq!(of_member, got, "the first one was the join of ann");
    assert!(events(&lines(&mut world, bob)).is_empty(), "it has not asked");
}

#[test]
fn a_client_that_asks_at_once_who_is_there_misses_nobody() {
    let mut world = world("asks", 0);
    let member = json!([3, "far", null, null]);
    stores(&mut world, &json!({"version": 1, "count": 1, "next": 5, "members": [member]}));
    // At different moments of the 100 ms between two looks at members.
    for n in 0..5 {
        world.passes(23);
        let (ann, own) = client(&mut world);
        let subscribe = json!({"id": 2, "subscribe": {"channel": "red", "join_leave": true}});
        let presence = json!({"id": 3, "presence": {"channel": "red"}});
        world.sends(ann, &format!("{subscribe}\n{presence}"));
        world.passes(130);
        let all = lines(&mut world, ann);
        assert_eq!(events(&all), [("join", own.clone(), Value::Null)], "{n}: {all:?}");
        let reply = all.iter().find(|line| line["id"] == 3).expect("it is answered");
        let there = reply["presence"]["presence"].as_object().unwrap();
        assert_eq!(there.len(), 2, "{reply}");
        assert!(there.contains_key(&own) && there.contains_key("0000000000000009-3"), "{reply}");
        let (bob, other) = client(&mut world);
        subscribes(&mut world, bob, 2);
        assert_eq!(events(&lines(&mut world, ann)), [("join", other.clone(), Value::Null)]);
        world.leaves(bob);
        world.passes(200);
        assert_eq!(events(&lines(&mut world, ann)), [("leave", other, Value::Null)]);
        world.leaves(ann);
        world.passes(n * 31);
    }
}

#[test]
fn in_a_room_with_a_history_the_own_join_follows_the_reply() {
    let mut world = world_with("kept joins", Settings { presence: true, ..keeping(5) });
    for late in [false, true] {
        let (ann, own) = client(&mut world);
        let subscribe = json!({"channel": "red", "join_leave": true});
        world.is_blocked = late;
        sends(&mut world, ann, json!({"id": 2, "subscribe": subscribe}));
        world.passes(1_200);
        world.is_blocked = false;
        world.passes(200);
        let all = lines(&mut world, ann);
        assert_eq!((&all[0]["id"], all.len()), (&json!(2), 2), "{late}: {all:?}");
        assert_eq!(events(&all), [("join", own, Value::Null)], "{late}");
        world.leaves(ann);
        world.passes(200);
    }
}

#[test]
fn a_client_that_comes_back_to_a_room_is_notified_again() {
    let mut world = world("again", 0);
    let ((ann, own), (bob, other)) = (client(&mut world), client(&mut world));
    let join = |client: &str| ("join", client.to_owned(), Value::Null);
    assert_eq!(events(&subscribes(&mut world, ann, 2)), [join(&own)]);
    assert_eq!(events(&subscribes(&mut world, bob, 2)), [join(&other)]);
    assert_eq!(events(&lines(&mut world, ann)), [join(&other)]);
    sends(&mut world, bob, json!({"id": 3, "unsubscribe": {"channel": "red"}}));
    assert_eq!(events(&subscribes(&mut world, bob, 4)), [join(&other)]);
    let leave = ("leave", other.clone(), Value::Null);
    assert_eq!(events(&lines(&mut world, ann)), [leave, join(&other)], "in this order");
}

#[test]
fn a_client_gets_each_of_many_changes_and_members_a_list() {
    let mut world = world("many", 0);
    let conn = world.joins("/ws/red?name=eve");
    let (ann, _) = client(&mut world);
    subscribes(&mut world, ann, 2);
    world.texts_of(conn);
    let members: Vec<Value> = (0..150).map(|n| json!([n, format!("n{n}"), null, null])).collect();
    let state = json!({"version": 1, "count": 170, "next": 500, "members": members});
    stores(&mut world, &state);
    let change = json!({"room": "red", "from": null, "to": 1, "count": 170, "next": 500, "came": [], "went": []});
    says(&mut world, 1, change);
    world.passes(50);
    let got = events(&lines(&mut world, ann));
    let expected = |kind, n: u64| (kind, format!("{OTHER:016x}-{n}"), json!(format!("n{n}")));
    assert!(
        got.iter().eq((0..150).map(|n| expected("join", n)).collect::<Vec<_>>().iter()),
        "{got:?}"
    );
    let list = read(&world.texts_of(conn));
    assert_eq!(
        (list.len(), &list[0]["event"], &list[0]["count"]),
        (1, &json!("here"), &json!(172))
    );
    // All of them are gone.
    let change = json!({"room": "red", "from": 1, "to": 2, "count": 0, "next": 500, "came": [], "went": (0..150).collect::<Vec<_>>()});
    says(&mut world, 2, change);
    world.passes(50);
    let got = events(&lines(&mut world, ann));
    assert!(
        got.iter().eq((0..150).map(|n| expected("leave", n)).collect::<Vec<_>>().iter()),
        "{got:?}"
    );
}

#[test]
fn questions_of_many_that_have_just_joined_are_answered_together() {
    let (mut world, conn) = world_with_eve("many ask");
    let clients: Vec<Conn> = (0..150).map(|_| client(&mut world).0).collect();
    let subscribe = json!({"id": 2, "subscribe": {"channel": "red", "join_leave": true}});
    let stats = json!({"id": 3, "presence_stats": {"channel": "red"}});
    for conn in &clients {
        world.sends(*conn, &format!("{subscribe}\n{stats}"));
    }
    world.passes(130);
    for conn in clients {
        let all = lines(&mut world, conn);
        let reply = all.iter().find(|line| line["id"] == 3).expect("it is answered");
        assert_eq!(reply["presence_stats"]["num_clients"], 151);
    }
    assert_eq!(world.texts_of(conn).len(), 1, "a list");
}

#[test]
fn a_client_learns_that_not_all_members_of_its_hub_are_named() {
    let mut world = world("unnamed", 0);
    let name = "n".repeat(120);
    let members: Vec<Conn> =
        (0..500).map(|_| world.joins(&format!("/ws/red?name={name}"))).collect();
    let (ann, _) = client(&mut world);
    subscribes(&mut world, ann, 2);
    let presence = json!({"id": 3, "presence": {"channel": "red"}});
    sends(&mut world, ann, presence.clone());
    assert_eq!(lines(&mut world, ann)[0]["error"]["code"], 106);
    members[..400].iter().for_each(|conn| world.leaves(*conn));
    world.passes(200);
    lines(&mut world, ann);
    sends(&mut world, ann, presence);
    let reply = lines(&mut world, ann).remove(0);
    assert_eq!(reply["presence"]["presence"].as_object().unwrap().len(), 101, "{reply}");
}
