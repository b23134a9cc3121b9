//! Limits of rates: of one member's messages, of a room's broadcasts, and of members that join.

use crate::support::{
    Server,
    hub::{Patient, hear, hub, member_of, metric, send},
};
use serde_json::json;
use tungstenite::{Error, HandshakeError, client::client};

/// One per second.
const ONE: &str = "1";

#[test]
fn a_member_that_sends_too_fast_gets_errors_and_the_others_do_not() {
    let (server, page) = hub("epoll", &["--member-rate", "3"]);
    let (mut fast, mut other) = (member_of(&server, "/ws"), member_of(&server, "/ws"));
    for n in 0..30 {
        send(&mut fast, &json!({"type": "echo", "payload": n}));
    }
    let heard: Vec<_> = (0..30).map(|_| hear(&mut fast)).collect();
    assert!((0..3).all(|n| heard[n]["payload"] == n), "{heard:?}");
    let refused = heard.iter().filter(|one| one["type"] == "error").count();
    // A slow machine admits three more per second.
    assert!(refused > 0 && heard[3..].iter().any(|one| one["type"] == "error"), "{heard:?}");
    let echoes = metric(page, "regatta_hub_messages_total{type=\"echo\"}");
    assert_eq!(echoes as usize + refused, 30);
    send(&mut other, &json!({"type": "echo", "payload": 1}));
    assert_eq!(hear(&mut other)["payload"], 1);
}

#[test]
fn a_room_with_too_many_broadcasts_refuses_those_of_all_its_members() {
    let (server, _) = hub("percore", &["--cores", "2", "--room-rate", ONE]);
    let [mut first, mut second, mut elsewhere] =
        ["/ws/red", "/ws/red", "/ws/blue"].map(|path| member_of(&server, path));
    // A member whose echo is answered has joined; echoes are not limited.
    for socket in [&mut first, &mut second, &mut elsewhere] {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo");
    }
    let broadcast = |n: u64| json!({"type": "broadcast", "payload": n});
    for n in 0..20 {
        send(&mut first, &broadcast(n));
        send(&mut second, &broadcast(n));
    }
    for socket in [&mut first, &mut second] {
        let own = ["broadcastResult", "error"];
        let heard = std::iter::repeat_with(|| hear(socket));
        let outcomes: Vec<_> =
            heard.filter(|one| own.iter().any(|kind| one["type"] == *kind)).take(20).collect();
        let refused = outcomes.iter().filter(|one| one["type"] == "error").count();
        // A slow machine admits one more per second.
        assert!(refused >= 10, "{outcomes:?}");
    }
    send(&mut elsewhere, &broadcast(3));
    assert_eq!(hear(&mut elsewhere)["payload"], 3);
}

#[test]
fn members_beyond_the_rate_are_asked_to_return_later() {
    let server = Server::of("hub", "epoll", &["--join-rate", ONE]);
    let url = format!("ws://{}/ws", server.addr);
    // A slow machine admits one more per second.
    let mut refused = (0..20).filter_map(|_| client(&*url, Patient(server.connect())).err());
    let refused = refused.next().expect("one is refused");
    let HandshakeError::Failure(Error::Http(reply)) = refused else { panic!("{refused}") };
    assert_eq!(reply.status(), 503);
    let after = reply.headers()["Retry-After"].to_str().unwrap();
    assert!((1..=10).contains(&after.parse::<u64>().unwrap()), "{after}");
}
