//! Limits on members and rooms, and the Prometheus metrics.

use crate::support::{
    Server,
    hub::{Patient, Socket, hear, hub, member, member_of, metric, on_hub_models, send},
    on_models, regatta, until,
};
use serde_json::json;
use std::{
    process::Stdio,
    time::{Duration, Instant},
};
use tungstenite::client::client;

fn refused(server: &Server, path: &str) -> bool {
    let url = format!("ws://{}{path}", server.addr);
    match client(url, Patient(server.connect())) {
        Ok(_) => false,
        Err(refused) => {
            assert!(refused.to_string().contains("503"), "{refused}");
            true
        }
    }
}

/// Retries until a member has left and there is a free place.
fn enters_at_last(server: &Server, path: &str) -> Socket {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let url = format!("ws://{}{path}", server.addr);
        match client(url, Patient(server.connect())) {
            Ok((socket, _)) => return socket,
            Err(refused) => assert!(Instant::now() < until, "{refused}"),
        }
    }
}

// On cluster such limits are refused.
on_models!(limits_of_members_and_rooms_apply_until_a_member_leaves: threads, select, poll, epoll, percore, green, on_async, uring);

fn limits_of_members_and_rooms_apply_until_a_member_leaves(model: &str) {
    let limits = ["--max-members", "4", "--max-room-members", "2", "--max-rooms", "2"];
    let (server, page) = hub(model, &[&["--cores", "2"][..], &limits].concat());
    let lobby = [member(&server), member(&server)];
    assert!(refused(&server, "/ws"), "{model}: two are in the lobby");
    let red = [member_of(&server, "/ws/red"), member_of(&server, "/ws/red")];
    assert!(refused(&server, "/ws/blue"), "{model}: four members");
    drop(red);
    let blue = enters_at_last(&server, "/ws/blue");
    assert!(refused(&server, "/ws/green"), "{model}: two rooms");
    assert_eq!(metric(page, "regatta_hub_members"), 3, "{model}");
    assert_eq!(metric(page, "regatta_hub_rooms"), 2, "{model}");
    assert_eq!(metric(page, "regatta_hub_members_total"), 5, "{model}");
    assert!(metric(page, "regatta_hub_refused_total") >= 3, "{model}");
    drop((lobby, blue));
}

on_hub_models!(messages_and_deliveries_are_counted);

fn messages_and_deliveries_are_counted(model: &str) {
    let (server, page) = hub(model, &["--cores", "2"]);
    let mut members = [member(&server), member(&server)];
    for socket in &mut members {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo", "{model}");
    }
    send(&mut members[0], &json!({"type": "nonsense", "payload": 0}));
    assert_eq!(hear(&mut members[0])["type"], "error", "{model}");
    for _ in 0..3 {
        send(&mut members[0], &json!({"type": "broadcast", "payload": 0}));
        assert_eq!(hear(&mut members[0])["type"], "broadcast", "{model}");
        assert_eq!(hear(&mut members[0])["listenerCount"], 2, "{model}");
    }
    for (kind, count) in [("broadcast", 3), ("echo", 2), ("malformed", 1)] {
        let name = format!("regatta_hub_messages_total{{type=\"{kind}\"}}");
        assert_eq!(metric(page, &name), count, "{model}: {kind}");
    }
    assert_eq!(metric(page, "regatta_hub_deliveries_total"), 6, "{model}");
}

#[test]
fn a_load_shows_the_close_code_of_a_hub_that_is_stopped() {
    let (server, page) = hub("epoll", &[]);
    let url = format!("ws://{}/ws", server.addr);
    let mut load = regatta!("load {url} -c 4 -d 60s");
    let load = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the load broadcasts", || metric(page, "regatta_hub_deliveries_total") > 0);
    server.signal("-TERM");
    let ended = load.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("no Close frame from the server"), "{said}");
    assert!(said.contains("a Close frame with code 1001"), "{said}");
}

#[test]
fn idle_connections_to_the_metrics_do_not_block_other_readers() {
    let (server, page) = hub("percore", &[]);
    let idle: Vec<_> = (0..30).map(|_| std::net::TcpStream::connect(page).unwrap()).collect();
    let start = Instant::now();
    assert_eq!(metric(page, "regatta_hub_members"), 0);
    // Without room for them, a reader waits until idle connections are closed after a minute.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    drop((idle, server));
}
