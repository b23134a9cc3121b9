//! The memory that members may make the hub hold.

use crate::support::{
    hub::{Socket, hear, hub, long_broadcast, member, member_of, metric, on_hub_models, send},
    on_models, refused, regatta, until,
};
use serde_json::json;
use std::{io::Write, net::SocketAddr};
use tungstenite::Message;

/// `--memory` of each process, in bytes.
const LIMIT: u64 = 16 << 20;
/// What each connection may have beyond it, in bytes.
const EACH: u64 = 96 << 10;
const ATTACKERS: u64 = 100;
const OPTIONS: [&str; 4] = ["--cores", "2", "--memory", "16"];

/// Checks that members were closed, that an honest one is served, and that nothing is held once the
/// attackers are gone.
fn is_limited(model: &str, page: SocketAddr, honest: &mut Socket, attackers: Vec<Socket>) {
    until(&format!("{model}: the hub has closed members"), || {
        metric(page, "regatta_hub_memory_closed_total") > 0
    });
    send(honest, &json!({"type": "echo", "payload": "x".repeat(1_000)}));
    assert_eq!(hear(honest)["type"], "echo", "{model}");
    // A process does not know what the others hold.
    if model != "cluster" {
        let held = metric(page, "regatta_hub_memory_bytes");
        assert!(held <= LIMIT + EACH * ATTACKERS, "{model}: {held} bytes");
        assert_eq!(metric(page, "regatta_hub_memory_limit_bytes"), LIMIT, "{model}");
        drop(attackers);
        until(&format!("{model}: all memory is returned"), || {
            metric(page, "regatta_hub_memory_bytes") == 0
        });
    }
}

on_hub_models!(incomplete_messages_use_no_more_memory_than_allowed);

fn incomplete_messages_use_no_more_memory_than_allowed(model: &str) {
    let (server, page) = hub(model, &OPTIONS);
    let mut honest = member(&server);
    // A megabyte, masked with zeros, of which less than half is sent.
    let mut frame = [&[0x81, 0xFF][..], &1_000_000_u64.to_be_bytes(), &[0; 4]].concat();
    frame.resize(400_000, b'x');
    let mut attackers: Vec<Socket> = (0..ATTACKERS).map(|_| member(&server)).collect();
    for socket in &mut attackers {
        // It may be closed while it sends.
        let _ = socket.get_mut().0.write_all(&frame);
    }
    is_limited(model, page, &mut honest, attackers);
}

on_hub_models!(broadcasts_for_members_that_do_not_read_use_no_more_memory_than_allowed);

fn broadcasts_for_members_that_do_not_read_use_no_more_memory_than_allowed(model: &str) {
    let (server, page) = hub(model, &[&OPTIONS[..], &["--backlog", "50000000"]].concat());
    let mut honest = member_of(&server, "/ws/honest");
    let mut sender = member(&server);
    let (mut keen, deaf) = (member(&server), (0..4).map(|_| member(&server)).collect());
    // More than the kernel takes for one that does not read, and the hub may hold for all.
    for _ in 0..700 {
        sender.send(long_broadcast(0, 50_000)).unwrap();
        assert_eq!(hear(&mut sender)["type"], "broadcast", "{model}");
        assert_eq!(hear(&mut sender)["type"], "broadcastResult", "{model}");
        // One that reads in the same room is never closed.
        assert_eq!(hear(&mut keen)["type"], "broadcast", "{model}");
    }
    is_limited(model, page, &mut honest, deaf);
}

on_models! { deaf_members_use_no_more_memory_of_the_process_than_allowed: epoll, uring }

/// The hub's own count may miss something, so this reads the memory of its process.
fn deaf_members_use_no_more_memory_of_the_process_than_allowed(model: &str) {
    let (server, page) = hub(model, &["--cores", "1", "--memory", "16"]);
    let before = server.memory();
    let deaf: Vec<Socket> = (0..25).map(|_| member(&server)).collect();
    let payload = "x".repeat(1_000_000);
    let mut most = 0;
    // More than the kernel takes for one that does not read.
    for _ in 0..12 {
        let mut sender = member(&server);
        send(&mut sender, &json!({"type": "broadcast", "payload": payload}));
        // It may be closed itself.
        while let Ok(Message::Text(text)) = sender.read()
            && !text.starts_with(r#"{"type":"broadcastResult""#)
        {}
        most = most.max(server.memory() - before);
    }
    assert!(metric(page, "regatta_hub_memory_closed_total") > 0, "{model}");
    let limit = LIMIT + EACH * deaf.len() as u64;
    assert!(most <= limit, "{model}: {most} bytes");
}

#[test]
fn a_limit_that_is_too_small_for_messages_is_refused() {
    let said = refused(regatta!("serve hub --memory 7"));
    assert!(
        said.contains("--longest-message 1048576") && said.contains("at least 8 MiB"),
        "{said}"
    );
}
