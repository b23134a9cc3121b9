//! Tokens of connections and of subscriptions: what they allow, and until when; and orders of backends.

use super::{Cores, Socket, opening, settings};
use jsonwebtoken::{EncodingKey, Header, encode};
use regatta_engine::Next;
use regatta_service::hub::{Access, Api, Jwt, Settings};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const SECRET: [u8; 32] = [7; 32];
const KEY: &str = "a-key-of-a-backend";
/// What the clock of the tests shows at first.
const NOW: u64 = 1_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

fn cores() -> Cores {
    let keys = Arc::new(Jwt::hs256(&SECRET));
    let access = Access::Jwt(Arc::new(move || Arc::clone(&keys)));
    Cores::new(Settings { access, api: Some(Arc::new(Api::new(KEY))), ..settings() })
}

fn token(claims: &Value) -> String {
    encode(&Header::default(), claims, &EncodingKey::from_secret(&SECRET)).unwrap()
}

fn connect(cores: &mut Cores, claims: &Value) -> (Socket, Value) {
    let mut socket = cores.opens(0, "/connection/websocket");
    let reply = cores.asks_all(&mut socket, json!({"connect": {"token": token(claims)}}));
    (socket, reply.into_iter().next().unwrap_or_default())
}

fn connected(cores: &mut Cores, claims: &Value) -> Socket {
    let (socket, reply) = connect(cores, claims);
    assert!(reply["connect"].is_object(), "{reply}");
    socket
}

/// Subscribes, and returns the code of the error, if any.
fn subscribe(cores: &mut Cores, socket: &mut Socket, channel: &str, claims: &Value) -> Option<u64> {
    let token = if claims.is_null() { String::new() } else { token(claims) };
    let reply = cores.asks(socket, json!({"subscribe": {"channel": channel, "token": token}}));
    reply["error"]["code"].as_u64()
}

#[test]
fn a_token_is_checked_when_a_client_connects() {
    let mut cores = cores();
    let (_, reply) = connect(&mut cores, &json!({"sub": "ann", "exp": NOW + 60}));
    assert_eq!(
        (&reply["connect"]["expires"], &reply["connect"]["ttl"]),
        (&json!(true), &json!(60))
    );
    let (_, reply) = connect(&mut cores, &json!({"sub": "ann"}));
    assert_eq!(
        (&reply["connect"]["expires"], &reply["connect"]["ttl"]),
        (&Value::Null, &Value::Null)
    );
    let (socket, reply) = connect(&mut cores, &json!({"exp": NOW - 60}));
    assert_eq!((&reply["error"]["code"], socket.closed), (&json!(109), None), "it gets a new one");
    for connect in [json!({}), json!({"token": "x"}), json!({"token": token(&json!({"exp": "x"}))})]
    {
        let mut socket = cores.opens(0, "/connection/websocket");
        cores.asks_all(&mut socket, json!({"connect": connect}));
        assert_eq!(socket.closed, Some((3500, "invalid token".into())));
    }
}

#[test]
fn a_token_allows_what_it_names() {
    let mut cores = cores();
    let caps = json!([{"channels": ["chat:*"], "allow": ["sub", "pub"]}, {"channels": ["news"], "allow": ["sub", "prs"]}]);
    let mut ann = connected(&mut cores, &json!({"sub": "ann", "caps": caps}));
    for (channel, code) in [("chat:1", None), ("news", None), ("other", Some(103))] {
        assert_eq!(subscribe(&mut cores, &mut ann, channel, &Value::Null), code, "{channel}");
    }
    for (command, channel, code) in [
        ("publish", "chat:1", None),
        ("publish", "chat:2", None),
        ("publish", "news", Some(103)),
        ("publish", "other", Some(103)),
        ("presence", "news", None),
        ("presence", "chat:1", Some(103)),
        ("presence", "other", Some(103)),
        ("history", "news", Some(103)),
    ] {
        let reply = cores.asks(&mut ann, json!({command: {"channel": channel, "data": 1}}));
        assert_eq!(reply["error"]["code"].as_u64(), code, "{command} {channel}");
    }
}

#[test]
fn a_token_for_a_channel_admits_its_user_there_and_only_there() {
    let mut cores = cores();
    let mut ann = connected(&mut cores, &json!({"sub": "ann", "channels": ["own"]}));
    for (channel, claims, code) in [
        ("a", json!({"sub": "ann", "channel": "b"}), Some(103)),
        ("a", json!({"sub": "bob", "channel": "a"}), Some(103)),
        ("a", json!({"channel": "a"}), Some(103)),
        ("a", json!({"sub": "ann"}), Some(103)),
        ("a", json!({"sub": "ann", "channel": "a", "exp": NOW - 60}), Some(109)),
        ("a", json!({"sub": "ann", "channel": "a"}), None),
        ("own", Value::Null, None),
    ] {
        assert_eq!(subscribe(&mut cores, &mut ann, channel, &claims), code, "{channel} {claims}");
    }
    assert!(
        cores.asks(&mut ann, json!({"publish": {"channel": "a", "data": 1}}))["publish"]
            .is_object()
    );
    // As the token of a connection, it is for this channel, too.
    let mut bob = connected(&mut cores, &json!({"channel": "a"}));
    for (channel, code) in [("a", None), ("b", Some(103))] {
        assert_eq!(subscribe(&mut cores, &mut bob, channel, &Value::Null), code);
    }
    let of_a = token(&json!({"channel": "a"}));
    for (path, status) in [("/ws/a", "101"), ("/ws/b", "403"), ("/ws", "403")] {
        let conn = cores.cores[0].accept();
        cores.cores[0].received(conn, &mut opening(&format!("{path}?access_token={of_a}")));
        assert!(matches!(cores.cores[0].next(conn, &()), Next::Write { .. }));
        let reply = String::from_utf8_lossy(cores.cores[0].output(conn)).into_owned();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {reply}");
    }
}

#[test]
fn a_connection_ends_with_its_token_unless_that_is_renewed() {
    let mut cores = cores();
    let claims = |exp| json!({"sub": "ann", "exp": exp});
    let (mut ends, mut stays) =
        (connected(&mut cores, &claims(NOW + 10)), connected(&mut cores, &claims(NOW + 10)));
    cores.passes(20 * SECOND);
    let renewed = json!({"refresh": {"token": token(&claims(NOW + 100))}});
    let reply = cores.asks(&mut stays, renewed);
    assert_eq!(
        (&reply["refresh"]["expires"], &reply["refresh"]["ttl"]),
        (&json!(true), &json!(80))
    );
    // With the leeway of 30 s.
    cores.passes(19 * SECOND);
    cores.hears(&mut ends);
    assert_eq!(ends.code(), None);
    cores.passes(2 * SECOND);
    cores.hears(&mut ends);
    cores.hears(&mut stays);
    assert_eq!((ends.code(), stays.code()), (Some(3005), None));
    for (claims, code) in [
        (json!({"sub": "bob"}), 3500),
        (json!({"exp": NOW + 100}), 3500),
        (json!({"sub": "ann", "exp": NOW - 100}), 3005),
    ] {
        let mut socket = connected(&mut cores, &json!({"sub": "ann"}));
        cores.asks_all(&mut socket, json!({"refresh": {"token": token(&claims)}}));
        assert_eq!(socket.code(), Some(code), "{claims}");
    }
}

#[test]
fn a_subscription_ends_with_its_token_unless_that_is_renewed() {
    let mut cores = cores();
    let mut ann = connected(&mut cores, &json!({"sub": "ann", "channels": []}));
    let of = |channel: &str, exp| json!({"sub": "ann", "channel": channel, "exp": exp});
    for channel in ["a", "b"] {
        assert_eq!(subscribe(&mut cores, &mut ann, channel, &of(channel, NOW + 10)), None);
    }
    let renewed = |claims: &Value| json!({"sub_refresh": {"channel": "b", "token": token(claims)}});
    let reply = cores.asks(&mut ann, renewed(&of("b", NOW + 100)));
    assert_eq!(reply["sub_refresh"], json!({"expires": true, "ttl": 100}));
    assert_eq!(cores.asks(&mut ann, renewed(&of("a", NOW + 100)))["error"]["code"], 103);
    assert_eq!(cores.asks(&mut ann, renewed(&of("b", NOW - 100)))["error"]["code"], 109);
    cores.passes(41 * SECOND);
    let end =
        json!({"channel": "a", "unsubscribe": {"code": 2501, "reason": "subscription expired"}});
    assert_eq!(cores.hears(&mut ann), [json!({"push": end})]);
    assert_eq!(subscribe(&mut cores, &mut ann, "a", &of("a", NOW + 100)), None, "it has left");
    cores.passes(90 * SECOND);
    assert_eq!(cores.hears(&mut ann).len(), 2);
}

/// A backend calls a method.
fn calls(cores: &mut Cores, method: &str, arguments: &Value) -> Value {
    let (conn, body) = (cores.cores[1].accept(), arguments.to_string());
    let request = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    cores.cores[1].received(conn, &mut request.into_bytes());
    assert!(matches!(cores.cores[1].next(conn, &()), Next::Write { .. }));
    let reply = String::from_utf8_lossy(cores.cores[1].output(conn)).into_owned();
    cores.collects();
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_backend_ends_a_subscription_or_the_connection() {
    let mut cores = cores();
    let mut ann = connected(&mut cores, &json!({"sub": "ann", "info": {"n": 1}}));
    let mut bob = connected(&mut cores, &json!({"sub": "bob"}));
    for socket in [&mut ann, &mut bob] {
        for channel in ["a", "b"] {
            cores.subscribes(socket, channel);
        }
    }
    let there = calls(&mut cores, "presence", &json!({"channel": "a"}));
    let there = there["result"]["presence"].as_object().unwrap();
    let ids: Vec<_> = there.iter().filter(|(_, one)| one["user"] == "ann").collect();
    assert_eq!((there.len(), &ids[0].1["conn_info"]), (2, &json!({"n": 1})));
    let id = ids[0].0.clone();
    cores.hears(&mut bob);
    calls(&mut cores, "unsubscribe", &json!({"channel": "a", "user": "ann"}));
    let end =
        json!({"channel": "a", "unsubscribe": {"code": 2000, "reason": "server unsubscribe"}});
    assert_eq!(cores.hears(&mut ann).last(), Some(&json!({"push": end})));
    cores.passes(SECOND);
    let left = cores.hears(&mut bob);
    assert_eq!((left.len(), &left[0]["push"]["channel"]), (1, &json!("a")), "{left:?}");
    calls(&mut cores, "publish", &json!({"channel": "b", "data": 1}));
    calls(&mut cores, "publish", &json!({"channel": "a", "data": 2}));
    assert_eq!(cores.hears(&mut ann).len(), 1);
    // It may come back, and the old order is not for its new subscription.
    cores.subscribes(&mut ann, "a");
    calls(&mut cores, "publish", &json!({"channel": "a", "data": 3}));
    assert_eq!(cores.hears(&mut ann).len(), 1);
    calls(&mut cores, "disconnect", &json!({"client": id}));
    let stats = calls(&mut cores, "presence_stats", &json!({"channel": "a"}));
    assert_eq!(stats["result"]["num_clients"], 1);
    cores.hears(&mut ann);
    assert_eq!(ann.code(), Some(3503));
    cores.loses(ann);
    assert_eq!(calls(&mut cores, "info", &json!({}))["result"]["nodes"][0]["num_clients"], 2);
    cores.hears(&mut bob);
    assert_eq!(bob.code(), None);
}

#[test]
fn a_client_that_leaves_gets_nothing_more_once_its_token_has_expired() {
    let mut cores = cores();
    let mut slow = connected(&mut cores, &json!({"sub": "ann", "exp": NOW + 60}));
    let mut fast = connected(&mut cores, &json!({"sub": "bob"}));
    assert_eq!(subscribe(&mut cores, &mut slow, "red", &Value::Null), None);
    let long = "x".repeat(30_000);
    for _ in 0..10 {
        cores.publishes(&mut fast, "red", json!(long));
    }
    cores.cores[0].ended(slow.conn);
    // Clocks may differ by 30 s.
    cores.passes(91 * SECOND);
    let got = cores.hears(&mut slow);
    assert_eq!((got.len(), slow.code()), (3, Some(3005)), "what was in its output");
}

#[test]
fn only_who_may_ask_who_is_there_is_notified_who_joins() {
    let mut cores = cores();
    for (allowed, joins) in [(json!(["sub"]), 0), (json!(["sub", "prs"]), 1)] {
        let caps = json!([{"channels": ["red"], "allow": allowed}]);
        let mut one = connected(&mut cores, &json!({"sub": "ann", "caps": caps}));
        let subscribe = json!({"subscribe": {"channel": "red", "join_leave": true}});
        let all = cores.asks_all(&mut one, subscribe);
        let got = all.iter().filter(|line| line["push"]["join"].is_object()).count();
        assert_eq!((all[0]["subscribe"].is_object(), got), (true, joins), "{all:?}");
        cores.loses(one);
    }
}
