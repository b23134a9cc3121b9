//! A stop that is announced: `/ready` turns to 503 at the signal, and new clients are accepted until the drain delay is
//! over.

use crate::support::{
    Server,
    hub::{closed, hear, member, on_hub_models, page, send, with_metrics},
    on_models, regatta, run,
    shard::client,
    until,
};
use serde_json::json;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tungstenite::protocol::frame::coding::CloseCode;

/// Starts `regatta` with these arguments, and with pages for operators.
fn started(arguments: &[&str]) -> (Server, SocketAddr) {
    with_metrics(regatta!("").args(arguments).args(["--metrics", "127.0.0.1:0"]))
}

/// Runs `regatta hub status`. Returns its exit status, and what it prints.
fn status(pages: SocketAddr) -> (Option<i32>, String) {
    let ended = run(regatta!("hub status {pages}"));
    (ended.status.code(), ended.stdout + &ended.stderr)
}

/// Sends SIGTERM to a server that is ready, and waits until it announces the stop.
fn announced(server: &Server, pages: SocketAddr, model: &str) {
    until("it is ready", || page(pages, "/ready") == (200, "ready\n".into()));
    assert_eq!(page(pages, "/live"), (200, "live\n".into()), "{model}");
    server.signal("-TERM");
    let mut why = String::new();
    until("the stop is announced", || {
        let (status, text) = page(pages, "/ready");
        why = text;
        status == 503
    });
    assert!(why.starts_with("stopping: clients are accepted"), "{model}: {why}");
    assert_eq!(page(pages, "/live"), (200, "live\n".into()), "{model}");
}

on_hub_models!(a_hub_admits_members_during_its_drain_delay);

fn a_hub_admits_members_during_its_drain_delay(model: &str) {
    let (mut server, pages) = started(&["hub", "--model", model, "--drain-delay", "1h"]);
    let mut before = member(&server);
    announced(&server, pages, model);
    let mut during = member(&server);
    let (code, text) = status(pages);
    assert_eq!(code, Some(1), "{model}: {text}");
    assert!(text.starts_with("state      stopping: clients are"), "{model}: {text}");
    for socket in [&mut before, &mut during] {
        let echo = json!({"type": "echo", "payload": 1});
        send(socket, &echo);
        assert_eq!(hear(socket), echo, "{model}");
    }
    // A second signal ends it at once.
    server.signal("-TERM");
    assert_eq!(server.ended().code(), Some(143), "{model}");
}

on_hub_models!(a_hub_stops_after_its_drain_delay);

fn a_hub_stops_after_its_drain_delay(model: &str) {
    const DELAY: Duration = Duration::from_millis(700);
    let (mut server, pages) = started(&["hub", "--model", model, "--drain-delay", "700ms"]);
    let mut socket = member(&server);
    until("it is ready", || page(pages, "/ready").0 == 200);
    let start = Instant::now();
    server.signal("-TERM");
    assert_eq!(closed(&mut socket), Some(CloseCode::Away), "{model}");
    assert!(start.elapsed() >= DELAY, "{model}: {:?}", start.elapsed());
    drop(socket);
    assert!(server.ended().success(), "{model}");
}

on_models!(a_proxy_answers_new_clients_during_its_drain_delay: select, poll, epoll, percore, uring);

fn a_proxy_answers_new_clients_during_its_drain_delay(model: &str) {
    // PING needs no node.
    let arguments = ["shard", "--model", model, "--nodes", "127.0.0.1:1", "--drain-delay", "1h"];
    let (mut server, pages) = started(&arguments);
    let mut before = client(&server);
    assert_eq!(before.say("PING"), "+PONG\r\n", "{model}");
    announced(&server, pages, model);
    let mut during = client(&server);
    for client in [&mut before, &mut during] {
        assert_eq!(client.say("PING"), "+PONG\r\n", "{model}");
    }
    server.signal("-INT");
    assert_eq!(server.ended().code(), Some(130), "{model}");
}

#[test]
fn the_status_of_a_hub_shows_its_members() {
    let (server, pages) = started(&["hub"]);
    let _members = [(); 3].map(|()| member(&server));
    until("the hub is ready, with its members", || {
        let (code, text) = status(pages);
        code == Some(0)
            && text.starts_with("state      ready\n")
            && text.contains("\nmembers    3 in 1 rooms, 3 since the start\n")
    });
    drop(server);
    let (code, text) = status(pages);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(&format!("cannot connect to {pages}")), "{text}");
    // A proxy has other metrics.
    let (_proxy, pages) = started(&["shard", "--nodes", "127.0.0.1:1"]);
    let (code, text) = status(pages);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("does not have the metrics of a hub"), "{text}");
}
