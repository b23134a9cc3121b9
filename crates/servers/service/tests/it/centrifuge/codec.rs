//! What clients send: cut anywhere, wrong, or too much.

use super::{Cores, Socket, opening, settings, with_history};
use regatta_engine::{Core, Limits, Next, Now, Sessions};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{Hub, Publish, RoomRule, Settings};
use serde_json::{Value, json};
use std::{num::NonZeroU32, time::Instant};

/// What a client gets that sends these pieces.
fn play<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
    let hub = Hub::new(Settings { ping: None, ..with_history(0) });
    let mut core = Core::new(Sessions::new(hub), Limits::default(), now);
    let (conn, mut got) = (core.accept(), Vec::new());
    for piece in pieces {
        core.received(conn, &mut piece.to_vec());
        loop {
            match core.next(conn, &()) {
                Next::Write { .. } => {
                    got.extend_from_slice(core.output(conn));
                    let length = core.output(conn).len();
                    core.wrote(conn, length);
                }
                Next::ShutdownWrite | Next::Close => return got,
                Next::Wait => break,
            }
        }
    }
    got
}

#[test]
fn every_cut_of_the_input_gives_the_same_output() {
    let mut input = opening("/connection/websocket");
    for text in [
        "{\"id\":1,\"connect\":{\"name\":\"js\"}}\n{\"id\":2,\"subscribe\":{\"channel\":\"ä\",\"join_leave\":true}}",
        "{}",
        r#"{"id":3,"publish":{"channel":"ä","data":{"n":"ü"}}}"#,
        "{\"id\":4,\"presence_stats\":{\"channel\":\"ä\"}}\n\n{\"id\":5,\"unsubscribe\":{\"channel\":\"ä\"}}\n",
    ] {
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut input);
    }
    Frame::ping(b"?").write_masked([5, 6, 7, 8], &mut input);
    Frame::text(b"x").write_masked([1, 2, 3, 4], &mut input);
    let whole = play([&input[..]]);
    let text = String::from_utf8_lossy(&whole);
    for expected in [
        r#""connect":{"client":"#,
        r#""subscribe":{}"#,
        r#""join":{"info":"#,
        r#""pub":{"data":{"n":"ü"}}"#,
        r#""publish":{}"#,
        r#"{"id":4,"presence_stats":{"num_clients":1,"num_users":1}}"#,
        r#"{"id":5,"unsubscribe":{}}"#,
        "expected a JSON object",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for cut in 1..input.len() {
        assert_eq!(play([&input[..cut], &input[cut..]]), whole, "cut at {cut}");
    }
    assert_eq!(play(input.chunks(1)), whole);
}

#[test]
fn what_is_no_command_closes_the_connection_with_3501() {
    let connected = |text: &str| {
        let mut cores = Cores::new(settings());
        let mut socket = cores.client(0);
        cores.sends(&socket, text);
        cores.hears(&mut socket);
        socket.closed
    };
    for text in [
        "x",
        "[]",
        r#"{"id":1,"connect":{}}"#,
        r#"{"publish":{"channel":"a","data":1}}"#,
        r#"{"send":{"data":1}}"#,
        r#"{"id":2,"subscribe":{"channel":""}}"#,
    ] {
        let (code, why) = connected(text).unwrap_or_else(|| panic!("{text}"));
        assert!(code == 3501 && why.starts_with("bad request: "), "{text}: {code} {why}");
    }
    let mut cores = Cores::new(settings());
    let mut socket = cores.opens(0, "/connection/websocket");
    cores.sends(&socket, r#"{"id":1,"subscribe":{"channel":"a"}}"#);
    cores.hears(&mut socket);
    assert_eq!(socket.closed, Some((3501, "bad request: expected connect first".into())));
    let mut socket = cores.client(0);
    let mut bytes = Vec::new();
    Frame::binary(b"\x00").write_masked([1, 2, 3, 4], &mut bytes);
    cores.cores[0].received(socket.conn, &mut bytes);
    cores.hears(&mut socket);
    assert!(socket.closed.is_some_and(|(code, why)| code == 3501 && why.contains("Protobuf")));
}

fn error(cores: &mut Cores, socket: &mut Socket, command: Value) -> Value {
    let reply = cores.asks(socket, command);
    assert!(reply["error"]["message"].is_string() && socket.closed.is_none(), "{reply}");
    reply["error"]["code"].clone()
}

#[test]
fn commands_that_fail_have_the_codes_of_centrifugo() {
    let rule = |text: &str, publish, presence| RoomRule {
        publish,
        presence: Some(presence),
        ..RoomRule::new(text.parse().unwrap())
    };
    let rooms = vec![rule("news", Publish::Api, true), rule("quiet", Publish::Members, false)];
    let mut cores = Cores::new(Settings { rooms, ..settings() });
    let mut socket = cores.client(0);
    for channel in ["a", "news", "quiet"] {
        cores.subscribes(&mut socket, channel);
    }
    let long = "x".repeat(129);
    for (command, code) in [
        (json!({"subscribe": {"channel": "a"}}), 105),
        (json!({"subscribe": {"channel": long}}), 107),
        (json!({"subscribe": {"channel": "b", "tf": {"op": "eq"}}}), 108),
        (json!({"subscribe": {"channel": "b", "type": 1}}), 108),
        (json!({"publish": {"channel": "news", "data": 1}}), 103),
        (json!({"publish": {"channel": "a"}}), 107),
        (json!({"presence": {"channel": "quiet"}}), 108),
        (json!({"presence_stats": {"channel": "quiet"}}), 108),
        (json!({"history": {"channel": "a"}}), 108),
        (json!({"sub_refresh": {"channel": "b", "token": "x"}}), 103),
        (json!({"rpc": {"method": "x"}}), 108),
        (json!({"send": {}}), 108),
        (json!({"map_publish": {"channel": "a"}}), 104),
        (json!({}), 104),
    ] {
        assert_eq!(error(&mut cores, &mut socket, command.clone()), code, "{command}");
    }
    let reply = cores.asks(&mut socket, json!({"unsubscribe": {"channel": "never"}}));
    assert_eq!(reply, json!({"unsubscribe": {}}));
}

#[test]
fn limits_are_errors_after_which_a_client_may_try_again() {
    let mut settings = Settings { presence: false, ..settings() };
    settings.limits.members_of_room = 1;
    settings.limits.messages_of_member = NonZeroU32::new(200);
    settings.limits.broadcasts_of_room = NonZeroU32::new(1);
    let mut cores = Cores::new(settings);
    let (mut one, mut other) = (cores.client(0), cores.client(1));
    cores.subscribes(&mut one, "0");
    let full = cores.asks(&mut other, json!({"subscribe": {"channel": "0"}}));
    assert_eq!((&full["error"]["code"], &full["error"]["temporary"]), (&json!(106), &json!(true)));
    for n in 1..128 {
        cores.subscribes(&mut one, &n.to_string());
    }
    assert_eq!(error(&mut cores, &mut one, json!({"subscribe": {"channel": "more"}})), 106);
    let publish = json!({"publish": {"channel": "0", "data": 1}});
    assert!(cores.asks(&mut one, publish.clone())["publish"].is_object());
    for socket in [&mut one, &mut other] {
        let reply = cores.asks(socket, publish.clone());
        assert_eq!(reply["error"]["code"], 111, "of the room, also for one who is not in it");
        assert_eq!(reply["error"]["temporary"], true);
    }
    for _ in 0..200 {
        cores.asks(&mut one, json!({"rpc": {}}));
    }
    assert_eq!(error(&mut cores, &mut one, json!({"rpc": {}})), 111);
}

#[test]
fn without_the_option_there_is_no_such_path() {
    let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
    let mut core = Core::new(Sessions::new(Hub::default()), Limits::default(), now);
    let conn = core.accept();
    core.received(conn, &mut opening("/connection/websocket"));
    assert!(matches!(core.next(conn, &()), Next::Write { .. }));
    assert!(core.output(conn).starts_with(b"HTTP/1.1 404 "));
}
