//! Clients that leave and do not read what they still get: it is bounded, and so is the time.

use super::{client, keeping, lines, publishes, read, sends, subscribed, world_with};
use crate::broker::one_hub::World;
use regatta_engine::Conn;
use regatta_proto::websocket::{CloseCode, Frame};
use regatta_service::hub::Settings;
use serde_json::json;

/// Somebody fills the output of all others in the room.
fn fills(world: &mut World, times: u32) {
    let (speaker, _) = client(world);
    for n in 0..times {
        sends(world, speaker, publishes(n + 2, json!("x".repeat(30_000))));
        world.passes(5);
        lines(world, speaker);
    }
    world.leaves(speaker);
}

/// A client and a member of the hub's own protocol in one room.
fn both(world: &mut World) -> (Conn, Conn) {
    let (ann, eve) = (subscribed(world, "red"), world.joins("/ws/red"));
    assert!(lines(world, eve).is_empty());
    (ann, eve)
}

#[test]
fn a_client_that_leaves_and_reads_late_gets_what_was_sent_until_a_second_later() {
    let mut world = world_with("late leave", Settings { presence: false, ..keeping(0) });
    let (ann, eve) = both(&mut world);
    fills(&mut world, 4);
    world.retires(ann);
    world.retires(eve);
    world.passes(500);
    fills(&mut world, 1);
    world.passes(600);
    fills(&mut world, 3);
    for conn in [ann, eve] {
        let (texts, code) = world.last_of(conn);
        let messages = texts.iter().filter(|text| text.contains("xxx")).count();
        assert!(messages == 5 && code.is_some(), "{messages} {code:?}");
    }
}

#[test]
fn a_client_that_sends_a_close_frame_and_does_not_read_is_gone_after_30_s() {
    let mut world = world_with("close", Settings { presence: false, ..keeping(0) });
    let (ann, eve) = both(&mut world);
    let own = r#"{"type":"broadcast","payload":1}"#;
    for (conn, text) in [(ann, publishes(3, json!(1)).to_string()), (eve, own.to_owned())] {
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        CloseCode::NORMAL.write_masked("", [1, 2, 3, 4], &mut bytes);
        world.sends_bytes(conn, bytes);
    }
    // The room goes on, and neither of them reads.
    fills(&mut world, 4);
    [ann, eve].into_iter().for_each(|conn| world.does_not_read(conn));
    world.passes(30_100);
    for conn in [ann, eve] {
        let (texts, code) = world.last_of(conn);
        assert!(read(&texts).is_empty() && code.is_none(), "{} {code:?}", texts.len());
    }
}
