//! The hub as a running server, on every model that supports it, with a client from another crate.

mod access;
mod api;
mod begun;
mod broker;
mod broker_cluster;
mod broker_history;
mod broker_mended;
mod broker_presence;
mod broker_reached;
mod broker_sentinels;
mod centrifuge;
mod cluster;
mod drain;
mod history;
mod killed;
mod last_delivery;
mod leaving;
mod limits;
mod load_on_nodes;
mod malformed;
mod memory;
mod page;
mod passing;
mod presence;
mod rates;
mod recovering;
mod reload;
mod rights;
mod rooms;
mod sealed;
mod slow;
mod stop;
mod talk;
mod vanishing;

use crate::support::{
    Server,
    hub::{ALONE, Socket, closed, hear, member, member_of, members, on_hub_models, send},
    refused, regatta,
};
use serde_json::json;
use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};
use tungstenite::{Message, protocol::frame::coding::CloseCode};

on_hub_models!(an_echo_goes_to_its_sender_and_a_broadcast_to_all);

fn an_echo_goes_to_its_sender_and_a_broadcast_to_all(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2"]);
    let mut members = members(&server, 5);
    let payload = json!({"a": [1, "ü\u{1F600}", null], "b": ""});
    send(&mut members[1], &json!({"type": "echo", "payload": payload}));
    assert_eq!(hear(&mut members[1]), json!({"type": "echo", "payload": payload}), "{model}");
    send(&mut members[0], &json!({"type": "broadcast", "payload": payload}));
    for socket in &mut members {
        assert_eq!(hear(socket), json!({"type": "broadcast", "payload": payload}), "{model}");
    }
    let result = json!({"type": "broadcastResult", "payload": payload, "listenerCount": 5});
    assert_eq!(hear(&mut members[0]), result, "{model}");
}

on_hub_models!(every_member_receives_every_message_once_and_in_each_senders_order);

/// Members on all cores send at the same time.
fn every_member_receives_every_message_once_and_in_each_senders_order(model: &str) {
    const MEMBERS: usize = 6;
    const EACH: u64 = 200;
    let server = Server::of("hub", model, &["--cores", "2"]);
    let mut members = members(&server, MEMBERS);
    for n in 0..EACH {
        for (sender, socket) in members.iter_mut().enumerate() {
            send(socket, &json!({"type": "broadcast", "payload": [sender, n]}));
        }
    }
    for (own, socket) in members.iter_mut().enumerate() {
        let (mut next, mut results) = ([0; MEMBERS], 0);
        while next != [EACH; MEMBERS] || results < EACH {
            let heard = hear(socket);
            let sender = heard["payload"][0].as_u64().unwrap() as usize;
            let n = heard["payload"][1].as_u64().unwrap();
            match heard["type"].as_str().unwrap() {
                "broadcast" => {
                    assert_eq!(next[sender], n, "{model}");
                    next[sender] += 1;
                }
                "broadcastResult" => {
                    assert_eq!(
                        (sender, heard["listenerCount"].as_u64()),
                        (own, Some(6)),
                        "{model}"
                    );
                    assert!(next[own] > n, "{model}: after its own copy");
                    results += 1;
                }
                other => panic!("{model}: {other}"),
            }
        }
    }
}

on_hub_models!(a_broadcast_reaches_only_the_members_of_its_room);

fn a_broadcast_reaches_only_the_members_of_its_room(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2"]);
    let mut lobby = member(&server);
    let mut red: Vec<Socket> = (0..3).map(|_| member_of(&server, "/ws/red")).collect();
    let mut blue = member_of(&server, "/ws/blue");
    // A member whose echo is answered has joined.
    for socket in red.iter_mut().chain([&mut lobby, &mut blue]) {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo", "{model}");
    }
    for (sender, members) in [(&mut lobby, 1), (&mut blue, 1)] {
        send(sender, &json!({"type": "broadcast", "payload": "alone"}));
        assert_eq!(hear(sender)["type"], "broadcast", "{model}");
        assert_eq!(hear(sender)["listenerCount"], members, "{model}");
    }
    send(&mut red[0], &json!({"type": "broadcast", "payload": "red"}));
    red.iter_mut().for_each(|socket| assert_eq!(hear(socket)["payload"], "red", "{model}"));
    assert_eq!(hear(&mut red[0])["listenerCount"], 3, "{model}");
}

on_hub_models!(an_invalid_message_gets_an_error_and_an_invalid_frame_closes);

fn an_invalid_message_gets_an_error_and_an_invalid_frame_closes(model: &str) {
    let server = Server::of("hub", model, &[]);
    let mut socket = member(&server);
    for bad in ["", "[]", r#"{"type":"x","payload":1}"#, r#"{"type":"echo"}"#] {
        socket.send(Message::text(bad)).unwrap();
        let printed = hear(&mut socket);
        assert_eq!(printed["type"], "error", "{model}: {printed}");
        assert!(printed["error"].as_str().is_some_and(|why| !why.is_empty()), "{model}: {printed}");
    }
    send(&mut socket, &json!({"type": "echo", "payload": "still there"}));
    assert_eq!(hear(&mut socket)["payload"], "still there", "{model}");
    let long = json!({"type": "echo", "payload": "x".repeat(1 << 20)}).to_string();
    socket.send(Message::text(long)).unwrap();
    assert_eq!(closed(&mut socket), Some(CloseCode::Size), "{model}");
    let mut socket = member(&server);
    // Not masked.
    socket.get_mut().write_all(&[0x81, 0]).unwrap();
    assert_eq!(closed(&mut socket), Some(CloseCode::Protocol), "{model}");
}

on_hub_models!(a_close_is_answered_and_the_member_is_no_longer_counted);

fn a_close_is_answered_and_the_member_is_no_longer_counted(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2"]);
    let mut members = members(&server, 4);
    let mut gone = members.pop().unwrap();
    gone.close(None).unwrap();
    assert_eq!(closed(&mut gone), Some(CloseCode::Normal), "{model}");
    send(&mut members[0], &json!({"type": "broadcast", "payload": 0}));
    assert_eq!(hear(&mut members[0])["type"], "broadcast", "{model}");
    assert_eq!(hear(&mut members[0])["listenerCount"], 3, "{model}");
}

on_hub_models!(other_requests_are_answered_over_http);

fn other_requests_are_answered_over_http(model: &str) {
    let server = Server::of("hub", model, &[]);
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"),
        ("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "426"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{model}: {reply}");
    }
}

#[test]
fn models_with_separate_processes_refuse_the_hub_with_a_reason() {
    for model in ALONE {
        let printed = refused(regatta!("serve hub --model {model}"));
        assert!(printed.contains(model) && printed.contains("hub"), "{printed}");
        assert!(printed.contains("use "), "{printed}: says what to do");
    }
}

on_hub_models!(a_silent_member_is_pinged_and_closed_if_it_does_not_answer);

/// Pongs keep a silent member connected. A member that sends none times out.
fn a_silent_member_is_pinged_and_closed_if_it_does_not_answer(model: &str) {
    let patient = ["--ping-after", "400ms", "--idle-timeout", "2s"];
    let server = Server::of("hub", model, &patient);
    let mut socket = member(&server);
    let mut dead = member(&server);
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        // Reading sends the pong.
        let heard = socket.read();
        assert!(matches!(heard, Ok(Message::Ping(_))), "{model}: {heard:?}");
        socket.flush().unwrap();
    }
    send(&mut socket, &json!({"type": "echo", "payload": 1}));
    let echoed = (0..9).find_map(|_| match socket.read().unwrap() {
        Message::Text(text) => Some(text),
        _ => None,
    });
    assert!(echoed.is_some(), "{model}");
    // Pings, and then a Close frame: an acknowledgement by the client's kernel is not an answer.
    let mut rest = Vec::new();
    let _ = dead.get_mut().read_to_end(&mut rest);
    assert!(rest.starts_with(&[0x89, 0]), "{model}: {rest:?}");
    let close = rest.windows(4).position(|four| four[0] == 0x88 && four[2..] == [0x03, 0xE9]);
    assert!(close.is_some(), "{model}: {rest:?}");
}

on_hub_models!(a_stop_delivers_pending_messages_and_closes_all_members_with_1001);

/// Every member receives its pending messages, and then a Close frame with 1001 (going away).
fn a_stop_delivers_pending_messages_and_closes_all_members_with_1001(model: &str) {
    let mut server = Server::of("hub", model, &["--cores", "2"]);
    let mut members = members(&server, 3);
    send(&mut members[0], &json!({"type": "broadcast", "payload": "last"}));
    assert_eq!(hear(&mut members[0])["type"], "broadcast", "{model}");
    assert_eq!(hear(&mut members[0])["listenerCount"], 3, "{model}");
    server.signal("-TERM");
    for (n, socket) in members.iter_mut().enumerate() {
        if n > 0 {
            assert_eq!(hear(socket)["payload"], "last", "{model}");
        }
        assert_eq!(closed(socket), Some(CloseCode::Away), "{model}");
    }
    assert!(server.ended().success(), "{model}");
}
