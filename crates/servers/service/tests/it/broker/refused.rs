//! What a broker refuses to hubs that keep histories, and to others.

use super::{
    one_hub::{World, keeping},
    stored::Stored,
};
use regatta_service::hub::Settings;
use serde_json::json;
use std::ops::Range;

const NOPERM: &str = "NOPERM this user has no permissions to run the command";
const WITHOUT: &str = "other hubs keep histories, in which this hub may not publish";

/// Another hub keeps histories at the first server.
fn others_keep(world: &mut World) {
    let process = world.servers[0].process;
    world.servers[0].stored.beats(&process, "0000000000000009", None);
}

/// The member of the world says this, which must be published. Returns whether it has a place in a history, or needs none.
fn is_placed(world: &mut World, payload: &str) -> bool {
    world.texts();
    world.says(world.member, payload);
    world.passes(5);
    let texts = world.texts().concat();
    let result = format!(r#"{{"type":"broadcastResult","payload":{payload}}}"#);
    assert!(texts.contains(&result), "{texts}");
    !world.servers[0].unplaced.contains(payload)
}

fn is_ready(world: &World) -> bool {
    world.broker.health.readiness(world.now.instant).is_ok()
}

/// The hub may use no command in a script, or the keys are at another node while their slot is moved.
#[test]
fn a_hub_without_histories_publishes_without_a_script_whose_commands_are_refused() {
    for (name, why) in [
        (
            "6",
            "ERR Error running script (call to f_1): @user_script:12: @user_script: 12: The user executing the script",
        ),
        (
            "7.0",
            "ERR The user executing the script can't run this command or subcommand script: f1",
        ),
        ("7.2", "ERR ACL failure in script: User x has no permissions to run the 'info' command"),
        ("slot", "TRYAGAIN Multiple keys request during rehashing of slot"),
    ] {
        let mut world = World::new(name);
        others_keep(&mut world);
        world.servers[0].refused.insert("EVALSHA", why);
        world.passes(1500);
        assert!(!is_placed(&mut world, "1"), "{name}");
        world.passes(20_000);
        assert_eq!((is_ready(&world), world.lines(WITHOUT)), (true, 1), "{name}");
        world.servers[0].refused.clear();
        world.passes(3000);
        assert!(is_placed(&mut world, "2"), "{name}");
    }
}

/// A cluster is down, or the first key has moved, and sharded channels work.
#[test]
fn a_hub_without_histories_publishes_without_a_script_while_its_keys_cannot_be_had() {
    for why in ["CLUSTERDOWN The cluster is down", "ASK 7000 127.0.0.1:6379"] {
        let mut world = World::new("keys");
        others_keep(&mut world);
        world.passes(1500);
        assert!(is_placed(&mut world, "1"));
        world.servers[0].refused.extend([("EXISTS", why), ("EVALSHA", why)]);
        world.passes(1500);
        assert!(!is_placed(&mut world, "2") && is_ready(&world), "{why}");
        world.servers[0].refused.clear();
        world.passes(3000);
        assert!(is_placed(&mut world, "3"), "{why}");
    }
}

#[test]
fn messages_without_a_place_in_any_number_of_rooms_are_bounded() {
    let mut world = World::with("rooms", false, keeping(5));
    world.passes(3000);
    let gaps = |world: &mut World| world.texts().iter().filter(|text| text.contains("gap")).count();
    gaps(&mut world);
    world.servers[0].process.refuses = true;
    world.passes(1500);
    let publishes = |world: &mut World, rooms: Range<u64>| {
        for room in rooms {
            let name = room.to_string();
            let mut message = vec![1, 0, 8, 0, 0, 0, 0, 0, 0, 0];
            message.extend(room.to_le_bytes());
            message.push(name.len() as u8);
            message.extend(name.as_bytes());
            message.extend(b"[8]");
            world.publishes_in(0, &format!("x:room:{}", partition(&name)), &message);
        }
        world.passes(1);
    };
    publishes(&mut world, 0..5000);
    world.servers[0].process.refuses = false;
    world.passes(3000);
    let rooms = world.servers[0].stored.rooms();
    assert!((4096..4200).contains(&rooms), "{rooms}");
    assert_eq!(gaps(&mut world), 1, "all epochs have ended, because of the others");
    // They go on, more than that each second, and each heartbeat has some before its answer.
    (1000..4000).for_each(|n| publishes(&mut world, 5 * n..5 * n + 5));
    let gaps = gaps(&mut world);
    assert!((1..=4).contains(&gaps), "{gaps}");
    world.says(world.member, "7");
    publishes(&mut world, 50_000..50_005);
    let texts = world.texts().concat();
    assert!(texts.contains(r#""payload":7,"offset""#), "{texts}");
}

/// The partition of a room, as documented.
fn partition(room: &str) -> u64 {
    let hash = room.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash % 128
}

/// How often the hub has sent this command.
fn sent(world: &World, command: &str) -> usize {
    String::from_utf8_lossy(&world.written).matches(command).count()
}

#[test]
fn a_hub_without_histories_that_may_not_run_scripts_is_ready_and_publishes_without_them() {
    let mut world = World::new("no scripts");
    others_keep(&mut world);
    world.servers[0].refused.extend([("EVALSHA", NOPERM), ("SCRIPT", NOPERM)]);
    world.passes(1500);
    for payload in ["1", "2"] {
        assert!(!is_placed(&mut world, payload));
        world.passes(20_000);
        assert!(is_ready(&world));
        world.cuts();
        world.passes(1500);
    }
    assert_eq!(world.lines(WITHOUT), 1, "once");
    world.servers[0].refused.clear();
    world.passes(3000);
    assert!(is_placed(&mut world, "3"));
    // It may run scripts, but not load them, and the broker does not know them.
    world.servers[0].refused.insert("SCRIPT", NOPERM);
    world.servers[0].restarts(7, true);
    world.cuts();
    world.passes(3000);
    assert!(!is_placed(&mut world, "4") && is_ready(&world));
    assert_eq!(world.lines(WITHOUT), 2);
}

#[test]
fn a_hub_without_histories_is_ready_while_the_broker_refuses_to_write() {
    let mut world = World::new("no writes");
    others_keep(&mut world);
    world.servers[0].process.refuses = true;
    world.passes(20_000);
    assert!(is_ready(&world));
    assert!(is_placed(&mut world, "1"), "nobody keeps the history of this room");
}

#[test]
fn a_hub_whose_histories_were_taken_back_is_ready_again() {
    let mut world = World::new("taken back");
    world.hub.reload(keeping(5));
    let member = world.joins("/ws/red");
    world.passes(1500);
    world.servers[0].process.refuses = true;
    world.passes(20_000);
    assert!(!is_ready(&world));
    world.hub.reload(keeping(0));
    world.passes(1500);
    assert!(!is_ready(&world), "a member still has one");
    world.leaves(member);
    world.servers[0].stored = Stored::default();
    world.passes(1500);
    assert!(is_ready(&world));
}

#[test]
fn a_broker_that_loads_its_data_is_asked_again_whether_others_keep_histories() {
    let mut world = World::with("loads", false, Settings::default());
    others_keep(&mut world);
    world.servers[0].refused.insert("EXISTS", "LOADING Redis is loading the dataset in memory");
    world.passes(3000);
    world.servers[0].refused.clear();
    world.passes(2000);
    assert!(is_placed(&mut world, "1"));
    // Who may not ask is not a nuisance.
    world.servers[0].refused.insert("EXISTS", NOPERM);
    world.cuts();
    world.passes(1000);
    let before = sent(&world, "EXISTS");
    world.passes(5000);
    assert_eq!(sent(&world, "EXISTS"), before);
    assert!(!is_placed(&mut world, "2") && is_ready(&world));
}

#[test]
fn a_backend_gets_an_answer_while_the_broker_refuses_everything() {
    let mut world = World::with("backends", false, keeping(5));
    world.passes(3000);
    assert!(is_placed(&mut world, "1"));
    let ask = |world: &mut World, channel: &str| {
        let backend = world.calls("history", &json!({"channel": channel, "limit": 1}));
        world.passes(1500);
        world.answer(backend).expect("it does not wait")
    };
    world.servers[0].process.refuses = true;
    world.passes(1500);
    // A member waits there.
    let member = world.joins("/ws/green");
    world.passes(5);
    assert_eq!(ask(&mut world, "green")["error"]["code"], 100);
    assert_eq!(world.texts_of(member).len(), 0, "it still waits");
    // The epochs of the server must end, and cannot.
    world.servers[0].restarts(7, true);
    world.cuts();
    world.passes(3000);
    assert_eq!(ask(&mut world, "blue")["error"]["code"], 100);
    world.servers[0].process.refuses = false;
    world.passes(1500);
    assert_eq!(world.texts_of(member).len(), 1);
    assert_eq!(ask(&mut world, "blue")["result"]["offset"], 0);
}

/// The user of a hub with presence has not all rights for it, or lost them.
#[test]
fn backends_learn_soon_that_the_members_at_other_hubs_are_not_known() {
    // What is refused, and after how many milliseconds a backend gets an answer.
    for (refused, at_most) in [
        (&["HGETALL"][..], 5),
        (&["SET", "PEXPIRE", "MGET", "HSET", "HDEL", "HGET", "HGETALL"][..], 5),
        (&["MGET"][..], 2_200),
    ] {
        let name = refused[0];
        let settings = Settings { presence: true, ..keeping(0) };
        let mut world = World::with(name, false, settings);
        world.passes(100);
        world.servers[0].refused.extend(refused.iter().map(|command| (*command, NOPERM)));
        world.passes(4000);
        // What a hub has left that has died.
        let field = "0000000000000009.1";
        let value = r#"{"version":1,"count":1,"next":1,"members":[]}"#;
        let command = ["HSET", "x:red:3:members", field, value].map(str::as_bytes);
        let now = world.now.instant;
        world.servers[0].keys.carries_out(&command, now, &mut Vec::new());
        for method in ["presence_stats", "presence"] {
            let backend = world.calls(method, &json!({"channel": "red"}));
            let mut waited = 0;
            let answer = loop {
                if let Some(answer) = world.answer(backend) {
                    break answer;
                }
                assert!(waited < at_most, "{name}, {method}: no answer after {waited} ms");
                world.passes(1);
                waited += 1;
            };
            assert_eq!(answer["error"]["code"], 100, "{name}, {method}: {answer}");
        }
        assert!(is_ready(&world) && world.lines("connected") == 1, "{name}");
        // The rights are given.
        world.servers[0].refused.clear();
        world.passes(50_000);
        let backend = world.calls("presence_stats", &json!({"channel": "red"}));
        world.passes(100);
        let answer = world.answer(backend).expect("it is known");
        assert_eq!(answer["result"]["num_clients"], 0, "{name}: {answer}");
    }
}
