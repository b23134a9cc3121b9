//! What a broker refuses to hubs that keep histories, and to others.

use super::{
    one_hub::{World, keeping},
    stored::Stored,
};
use regatta_service::hub::Settings;
use serde_json::json;

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
    world.passes(1500);
    world.servers[0].process.refuses = true;
    world.passes(20_000);
    assert!(!is_ready(&world));
    world.hub.reload(keeping(0));
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
