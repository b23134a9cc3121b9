//! The HTTP API for backends, on every model, and `cent`, Centrifugo's library for Python.

use crate::support::{
    Server,
    hub::{Socket, closed, hear, hub, member_of, metric, on_hub_models, send},
    until,
};
use jsonwebtoken::{EncodingKey, Header, encode};
use regatta_testkit::skip;
use serde_json::{Value, json, value::RawValue};
use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, SocketAddr},
    path::Path,
    process::Command,
};
use tempfile::TempDir;
use tungstenite::protocol::frame::coding::CloseCode;

const KEY: &str = "a-key-of-a-backend";
pub const SECRET: [u8; 32] = [7; 32];

/// The files with the key and the secret of tokens, and the options that name them.
pub fn files() -> (TempDir, [String; 6]) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (key, secret) = (path("key", format!("{KEY}\n").as_bytes()), path("secret", &SECRET));
    let options = ["--api-key-file", &key, "--jwt-key", &secret, "--jwt-algorithm", "HS256"];
    let options = options.map(str::to_owned);
    (folder, options)
}

/// Sends a request, and returns the status and the content of its reply.
fn posted(server: &Server, method: &str, field: &str, body: &str) -> (u16, String) {
    let mut stream = server.connect();
    let length = body.len();
    let request = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: x\r\n{field}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, content) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply:?}"));
    (head[9..12].parse().unwrap(), content.to_owned())
}

pub fn call(server: &Server, method: &str, arguments: &Value) -> Value {
    let field = format!("X-API-Key: {KEY}");
    let (status, content) = posted(server, method, &field, &arguments.to_string());
    assert_eq!(status, 200, "{content}");
    serde_json::from_str(&content).unwrap()
}

/// A member with a token of this user.
fn member_with(server: &Server, room: &str, claims: &Value) -> Socket {
    let token = encode(&Header::default(), claims, &EncodingKey::from_secret(&SECRET)).unwrap();
    let path = if room.is_empty() { "/ws".to_owned() } else { format!("/ws/{room}") };
    let mut socket = member_of(server, &format!("{path}?access_token={token}"));
    // A member whose echo is answered has joined.
    send(&mut socket, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut socket)["type"], "echo");
    socket
}

fn user(server: &Server, room: &str, user: &str) -> Socket {
    member_with(server, room, &json!({"sub": user}))
}

/// A hub with an API, on two cores.
fn hub_with_api(model: &str) -> (TempDir, Server, SocketAddr) {
    let (folder, options) = files();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--cores", "2"]);
    let (server, page) = hub(model, &options);
    (folder, server, page)
}

on_hub_models!(a_backend_publishes_to_all_members_of_the_rooms_that_it_names);

fn a_backend_publishes_to_all_members_of_the_rooms_that_it_names(model: &str) {
    let (_folder, server, page) = hub_with_api(model);
    let mut red: Vec<_> = (0..4).map(|n| user(&server, "red", &n.to_string())).collect();
    let mut blue = user(&server, "blue", "ann");
    let mut green = user(&server, "green", "ann");
    let data = json!({"a": [1, "ü", null]});
    let result = call(&server, "publish", &json!({"channel": "red", "data": data}));
    assert_eq!(result, json!({"result": {}}), "{model}");
    let channels = json!({"channels": ["red", "blue", "nobody's"], "data": 2, "unknown": true});
    let result = call(&server, "broadcast", &channels);
    let done = json!({"result": {}});
    assert_eq!(result, json!({"result": {"responses": [done, done, done]}}), "{model}");
    for socket in &mut red {
        assert_eq!(hear(socket), json!({"type": "broadcast", "payload": data}), "{model}");
        assert_eq!(hear(socket)["payload"], 2, "{model}");
    }
    assert_eq!(hear(&mut blue)["payload"], 2, "{model}");
    // Nothing else came to another room before this.
    call(&server, "publish", &json!({"channel": "green", "data": "own"}));
    assert_eq!(hear(&mut green)["payload"], "own", "{model}");
    until(&format!("{model}: ten deliveries"), || {
        metric(page, "regatta_hub_deliveries_total") == 10
    });
    assert_eq!(metric(page, "regatta_hub_messages_total{type=\"publication\"}"), 5, "{model}");
}

on_hub_models!(a_backend_disconnects_a_user_everywhere);

fn a_backend_disconnects_a_user_everywhere(model: &str) {
    let (_folder, server, _) = hub_with_api(model);
    let mut of_ann: Vec<_> = ["red", "red", "blue"].map(|room| user(&server, room, "ann")).into();
    let mut bob = user(&server, "red", "bob");
    let asked = json!({"user": "ann", "disconnect": {"code": 4001, "reason": "gone"}});
    let result = call(&server, "disconnect", &asked);
    if model == "cluster" {
        let error = json!({"error": {"code": 108, "message": "not available"}});
        return assert_eq!(result, error, "a process does not know the members of the others");
    }
    assert_eq!(result, json!({"result": {}}), "{model}");
    for socket in &mut of_ann {
        assert_eq!(closed(socket), Some(CloseCode::from(4001)), "{model}");
    }
    until(&format!("{model}: ann left"), || {
        let stats = call(&server, "presence_stats", &json!({"channel": "red"}));
        stats == json!({"result": {"num_clients": 1, "num_users": 1}})
    });
    call(&server, "publish", &json!({"channel": "red", "data": 1}));
    assert_eq!(hear(&mut bob)["payload"], 1, "{model}");
}

#[test]
fn a_backend_sees_who_is_in_which_room() {
    let (_folder, server, _) = hub_with_api("percore");
    let info = json!({"sub": "ann", "info": {"age": 1.0}});
    let (mut ann, _bob) = (member_with(&server, "red", &info), user(&server, "red", "bob"));
    let (_again, _nobody) = (user(&server, "chat:1", "ann"), member_with(&server, "", &json!({})));
    let presence = call(&server, "presence", &json!({"channel": "red"}));
    let clients = presence["result"]["presence"].as_object().unwrap();
    let (id, of_ann) = clients.iter().find(|(_, client)| client["user"] == "ann").unwrap();
    assert_eq!(of_ann, &json!({"client": id, "user": "ann", "conn_info": {"age": 1.0}}));
    assert_eq!(clients.len(), 2);
    let channels = |pattern: &str| call(&server, "channels", &json!({"pattern": pattern}));
    let all =
        json!({"": {"num_clients": 1}, "red": {"num_clients": 2}, "chat:1": {"num_clients": 1}});
    assert_eq!(channels(""), json!({"result": {"channels": all}}));
    let chat = json!({"result": {"channels": {"chat:1": {"num_clients": 1}}}});
    assert_eq!(channels("chat:*"), chat);
    let node = &call(&server, "info", &json!({}))["result"]["nodes"][0];
    let numbers = ["num_clients", "num_users", "num_channels"].map(|name| node[name].as_u64());
    assert_eq!(numbers, [Some(4), Some(3), Some(3)], "{node}");
    // By its number, and without those that are spared.
    let spared = json!({"user": "ann", "whitelist": [id]});
    assert_eq!(call(&server, "disconnect", &spared), json!({"result": {}}));
    until("ann left the chat", || channels("chat:*") == json!({"result": {"channels": {}}}));
    let asked = json!({"channel": "red", "user": "ann", "client": id});
    assert_eq!(call(&server, "unsubscribe", &asked), json!({"result": {}}));
    assert_eq!(closed(&mut ann), Some(CloseCode::from(3503)));
}

#[test]
fn a_publication_with_a_known_idempotency_key_is_published_once() {
    let (_folder, server, _) = hub_with_api("epoll");
    let mut ann = user(&server, "red", "ann");
    for (key, data) in [("a", 1), ("a", 2), ("b", 3), ("", 4), ("", 5)] {
        let asked = json!({"channel": "red", "data": data, "idempotency_key": key});
        assert_eq!(call(&server, "publish", &asked), json!({"result": {}}));
    }
    for data in [1, 3, 4, 5] {
        assert_eq!(hear(&mut ann)["payload"], data);
    }
}

#[test]
fn an_idempotency_key_is_that_of_one_room() {
    let (_folder, server, _) = hub_with_api("epoll");
    let (mut red, mut blue) = (user(&server, "red", "ann"), user(&server, "blue", "bob"));
    let publish = |room: &str| json!({"channel": room, "data": room, "idempotency_key": "17"});
    call(&server, "publish", &publish("red"));
    call(&server, "publish", &publish("blue"));
    let both = json!({"channels": ["red", "blue", "green"], "data": 2, "idempotency_key": "17"});
    let responses = call(&server, "broadcast", &both)["result"]["responses"].clone();
    assert_eq!(responses.as_array().unwrap().len(), 3);
    for (socket, room) in [(&mut red, "red"), (&mut blue, "blue")] {
        assert_eq!(hear(socket)["payload"], room);
        call(&server, "publish", &json!({"channel": room, "data": "next"}));
        assert_eq!(hear(socket)["payload"], "next", "{room}: nothing was published twice");
    }
}

/// What a token says of its user reaches backends byte for byte, and nothing else reads it.
#[test]
fn strange_information_about_a_user_does_no_harm() {
    let (_folder, server, _) = hub_with_api("epoll");
    let deep = format!("{}1{}", "[".repeat(150), "]".repeat(150));
    for info in [&deep[..], "1e400", "123456789012345678901234567890", r#"{"b":1,"a":1.0}"#] {
        let claims: Box<RawValue> = serde_json::from_str(&format!(r#"{{"info":{info}}}"#)).unwrap();
        let token =
            encode(&Header::default(), &claims, &EncodingKey::from_secret(&SECRET)).unwrap();
        let mut member = member_of(&server, &format!("/ws/red?access_token={token}"));
        send(&mut member, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(&mut member)["type"], "echo");
        let field = format!("X-API-Key: {KEY}");
        let presence = r#"{"channel":"red"}"#;
        let batch = format!(r#"{{"commands":[{{"presence":{presence}}}]}}"#);
        for (method, body) in [("presence", presence), ("batch", &batch)] {
            let (status, content) = posted(&server, method, &field, body);
            let expected = format!(r#""conn_info":{info}"#);
            assert!(status == 200 && content.contains(&expected), "{method}: {content}");
        }
        member.close(None).unwrap();
        until("the member left", || {
            !posted(&server, "presence", &field, presence).1.contains("conn_info")
        });
    }
}

#[test]
fn a_batch_with_long_replies_is_cut_short() {
    let (_folder, server, _) = hub_with_api("epoll");
    let info = "x".repeat(3_000);
    let _members: Vec<_> =
        (0..20).map(|_| member_with(&server, "red", &json!({"info": info}))).collect();
    let commands = vec![json!({"presence": {"channel": "red"}}); 100];
    let replies = call(&server, "batch", &json!({"commands": commands}))["replies"].clone();
    let replies = replies.as_array().unwrap();
    let good = replies.iter().filter(|reply| reply["presence"].is_object()).count();
    assert!((15..20).contains(&good), "{good} of 60 KB each");
    assert!(
        replies[good..].iter().all(|reply| reply["error"]["code"] == 111) && replies.len() == 100
    );
}

#[test]
fn a_batch_carries_out_each_command_and_reports_each_error() {
    let (_folder, server, _) = hub_with_api("uring");
    let mut ann = user(&server, "red", "ann");
    let commands = json!([
        {"publish": {"channel": "red", "data": 1}},
        {"presence_stats": {"channel": "red"}},
        {"nonsense": {}},
        {"publish": {"channel": "red"}},
        {"publish": {"data": 1}},
        {"info": {}, "publish": {}},
        {"publish": {"channel": "red", "data": 2}},
    ]);
    let replies = call(&server, "batch", &json!({"commands": commands, "parallel": true}));
    let replies = replies["replies"].as_array().unwrap();
    assert_eq!(replies[0], json!({"publish": {}}));
    assert_eq!(replies[1], json!({"presence_stats": {"num_clients": 1, "num_users": 1}}));
    assert_eq!(replies[2], json!({"error": {"code": 104, "message": "method not found"}}));
    assert!((3..6).all(|n| replies[n]["error"]["code"] == 107), "{replies:?}");
    assert_eq!((&replies[6], replies.len()), (&json!({"publish": {}}), 7));
    assert_eq!([hear(&mut ann)["payload"].clone(), hear(&mut ann)["payload"].clone()], [1, 2]);
}

#[test]
fn a_request_without_the_key_changes_nothing() {
    let (_folder, server, page) = hub_with_api("epoll");
    let body = r#"{"channel":"red","data":1}"#;
    for field in ["X-API-Key: a-key-of-a-backene", "X-API-Key:", "Authorization: apikey", "A: b"] {
        assert_eq!(posted(&server, "publish", field, body).0, 401, "{field}");
    }
    assert_eq!(metric(page, "regatta_hub_messages_total{type=\"publication\"}"), 0);
    let authorization = format!("Authorization: apikey {KEY}");
    assert_eq!(posted(&server, "publish", &authorization, body), (200, r#"{"result":{}}"#.into()));
    let mut stream = server.connect();
    stream.write_all(b"GET /api/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 405 ") && reply.contains("Allow: POST\r\n"), "{reply}");
    // Without the option, the paths do not exist.
    let without = Server::of("hub", "epoll", &[]);
    assert_eq!(posted(&without, "publish", &authorization, body).0, 404);
}

#[test]
fn a_wrong_request_gets_a_reason_and_a_message_that_is_too_long_is_not_published() {
    let (_folder, options) = files();
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--longest-message", "100"]);
    let server = Server::of("hub", "epoll", &options);
    let field = format!("X-API-Key: {KEY}");
    for (body, expected) in [
        ("", "missing field `channel`"),
        ("{", "EOF"),
        ("[]", "expected"),
        (r#"{"channel":1,"data":1}"#, "expected a string"),
        ("\u{fffd}", "expected value"),
    ] {
        let (status, content) = posted(&server, "publish", &field, body);
        assert!(status == 400 && content.contains(expected), "{body}: {content}");
    }
    let long = "x".repeat(129);
    for (method, asked, expected) in [
        ("publish", json!({"channel": "red"}), "expected \"data\""),
        ("publish", json!({"channel": long, "data": 1}), "128 bytes"),
        ("publish", json!({"channel": "a", "data": long}), "100 bytes"),
        ("publish", json!({"channel": "a", "data": 1, "idempotency_key": long}), "128 bytes"),
        ("broadcast", json!({"channels": vec!["a"; 1001], "data": 1}), "1000 channels"),
        ("disconnect", json!({}), "a user or a client"),
        ("disconnect", json!({"client": "x"}), "as in `presence`"),
        ("disconnect", json!({"user": "a", "disconnect": {"code": 1000}}), "3000 to 4999"),
        ("unsubscribe", json!({"channel": "a"}), "a user or a client"),
    ] {
        let error = &call(&server, method, &asked)["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(error["code"] == 107 && message.contains(expected), "{method} {asked}: {error}");
    }
    for (method, code) in [("history", 108), ("rpc", 108), ("nonsense", 104)] {
        assert_eq!(call(&server, method, &json!({"channel": "a"}))["error"]["code"], code);
    }
}

#[test]
#[cfg_attr(not(has_python3), ignore = "python3 is not installed")]
fn the_library_of_centrifugo_for_python_works() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/cent");
    if !library.join("cent").is_dir() {
        return skip("cent is not installed (scripts/setup)");
    }
    let (_folder, server, _) = hub_with_api("percore");
    let (mut ann, mut bob) = (user(&server, "red", "ann"), user(&server, "red", "bob"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hub/backend.py");
    let ran = Command::new("python3")
        .env("PYTHONPATH", library)
        .arg(script)
        .args([format!("http://{}/api", server.addr), KEY.to_owned()])
        .output()
        .expect("python3 runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    for socket in [&mut ann, &mut bob] {
        for payload in [json!({"n": 1}), json!("all"), json!(3)] {
            assert_eq!(hear(socket)["payload"], payload);
        }
    }
    assert_eq!(closed(&mut ann), Some(CloseCode::from(4000)));
    assert_eq!(closed(&mut bob), Some(CloseCode::from(3503)));
}
