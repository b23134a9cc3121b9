//! When members of a hub begin in the history of their room, and what they get then.

use super::one_hub::{World, keeping, texts_at};
use crate::hub::OPENING;
use regatta_proto::websocket::Frame;
use regatta_service::hub::Settings;
use serde_json::Value;
use std::sync::atomic::Ordering::SeqCst;

/// A hub that keeps histories, and whose member is in one.
fn world(name: &'static str, is_in_cluster: bool) -> World {
    let mut world = World::with(name, is_in_cluster, keeping(5));
    world.passes(3000);
    world
}

fn kinds(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| read(text)["type"].as_str().unwrap().to_owned()).collect()
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The gap reaches other cores when the turn is over. A client that came there at once, because the hub is ready, would
/// get it.
#[test]
fn a_hub_is_ready_in_a_later_turn_than_that_of_the_gap_for_the_time_before() {
    let mut world = World::with("ready", false, Settings::default());
    let is_ready = |world: &World| world.broker.health.readiness(world.now.instant).is_ok();
    let passes_until_gap = |world: &mut World| {
        let turns = (0..3000).take_while(|_| {
            assert!(!is_ready(world));
            world.passes(1);
            world.gaps() == 0
        });
        assert!(turns.count() < 3000, "a gap");
        assert!(!is_ready(world), "the turn of the gap");
    };
    passes_until_gap(&mut world);
    // It is lost before it is reported.
    world.cuts();
    passes_until_gap(&mut world);
    world.passes(1);
    assert!(is_ready(&world));
}

#[test]
fn a_member_that_speaks_before_it_has_its_position_gets_its_own_message() {
    let mut world = world("speaks", false);
    let member = world.joins("/ws/red");
    // The broker answers for the history and publishes the message in the same moment.
    world.says(member, "1");
    world.passes(5);
    let texts = world.texts_of(member);
    assert_eq!(kinds(&texts), ["position", "broadcast", "broadcastResult"], "{texts:?}");
    assert_eq!((&read(&texts[0])["offset"], &read(&texts[1])["offset"]), (&0.into(), &1.into()));
}

/// The room had no members when the second message came, so that was not pushed. Who gets the first one would miss it.
#[test]
fn a_member_gets_no_message_that_came_before_it_and_that_its_core_hears_of_later() {
    for path in ["/ws/red", "/connection/websocket"] {
        let settings = Settings { centrifuge: true, ..Settings::default() };
        let mut world = World::with("cores", false, settings);
        world.passes(3000);
        let mut other = world.other_core();
        let first = world.joins("/ws/red");
        world.says(first, "[1]");
        world.passes(5);
        world.says(first, "[2]");
        world.leaves(first);
        world.passes(5);
        let opening = String::from_utf8(OPENING.to_vec()).unwrap();
        let mut opening = opening.replace("/ws ", &format!("{path} ")).into_bytes();
        if path != "/ws/red" {
            for text in [r#"{"id":1,"connect":{}}"#, r#"{"id":2,"subscribe":{"channel":"red"}}"#] {
                Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut opening);
            }
        }
        let late = other.accept();
        other.received(late, &mut opening);
        world.posted(&mut other);
        let last = world.joins("/ws/red");
        world.says(last, "[3]");
        world.passes(5);
        world.posted(&mut other);
        let texts = texts_at(&mut other, late).concat();
        let are_there = ["[1]", "[2]", "[3]"].map(|payload| texts.contains(payload));
        assert_eq!(are_there, [false, false, true], "{texts}");
    }
}

#[test]
fn a_member_does_not_wait_for_a_second_behind_what_others_say() {
    let mut world = world("much output", false);
    // The next heartbeat is not soon.
    world.passes(500);
    let payload = format!("\"{}\"", "x".repeat(60_000));
    let speaker = world.member;
    (0..9).for_each(|_| world.says(speaker, &payload));
    let member = world.joins("/ws/red");
    world.passes(50);
    assert_eq!(kinds(&world.texts_of(member)), ["position"]);
}

/// A master that was stopped passes on, after a failover, what it had not passed on to its replica.
#[test]
fn in_a_cluster_a_message_of_another_epoch_is_not_delivered() {
    let mut world = world("cluster", true);
    let member = world.member;
    world.says(member, "1");
    world.passes(5);
    let texts = world.texts();
    assert_eq!(kinds(&texts), ["position", "broadcast", "broadcastResult"], "{texts:?}");
    let epoch = read(&texts[0])["epoch"].as_str().unwrap().to_owned();
    let written = String::from_utf8_lossy(&world.written).into_owned();
    assert!(written.contains("{x}::0:reign") && !written.contains("x::0:history"), "{written}");
    world.place.0.store(1, SeqCst);
    world.cuts();
    world.passes(3000);
    assert_eq!(kinds(&world.texts()), ["gap"]);
    let relays = |world: &mut World, number: u8| {
        let mut message = format!("\x02{number} {epoch} 5 300 ").into_bytes();
        message.extend([1, 0, 8, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(b"[8]");
        world.publishes_in(1, "{x}:room:37", &message);
        world.passes(5);
    };
    relays(&mut world, 2);
    assert_eq!(world.texts(), [""; 0]);
    world.says(member, "2");
    world.passes(5);
    relays(&mut world, 1);
    relays(&mut world, 3);
    let texts = world.texts();
    assert_eq!(kinds(&texts), ["broadcast", "broadcastResult"], "{texts:?}");
    assert_eq!(read(&texts[0])["offset"], 1);
}
