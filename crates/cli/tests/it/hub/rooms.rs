//! Tables of rooms in the configuration file: what holds in their rooms, and what is refused.

use crate::{
    hub::stop::slow_connection,
    support::{
        Server,
        hub::{Patient, Socket, closed, hear, long_broadcast, member_of, on_hub_models, send},
        refused, regatta, run,
    },
};
use regatta_testkit::child::Ended;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tempfile::TempDir;
use tungstenite::{
    Error, HandshakeError, Message, client::client, protocol::frame::coding::CloseCode,
};

/// A configuration file with this text, and its folder.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("hub.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn hub(model: &str, text: &str) -> Server {
    let (_folder, path) = file(text);
    Server::start(regatta!("hub --model {model} --cores 2 --config").arg(path))
}

fn checked(text: &str) -> Ended {
    let (_folder, path) = file(text);
    run(regatta!("hub --check --config").arg(path))
}

/// A member that has joined.
fn joined(server: &Server, path: &str) -> Socket {
    let mut socket = member_of(server, path);
    send(&mut socket, &json!({"type": "echo", "payload": "joined"}));
    while hear(&mut socket)["type"] != "echo" {}
    socket
}

fn broadcast(n: u64) -> Value {
    json!({"type": "broadcast", "payload": n})
}

const RULES: &str = r#"
[[room]]
match = "news:*"
publish = "api"

[[room]]
match = "chat:quiet"

[[room]]
match = "chat:*"
presence = true
rate = 1
"#;

on_hub_models!(a_room_has_the_rules_of_the_first_table_that_matches);

fn a_room_has_the_rules_of_the_first_table_that_matches(model: &str) {
    let server = hub(model, RULES);
    let mut news = joined(&server, "/ws/news:1");
    send(&mut news, &broadcast(1));
    let error = hear(&mut news);
    let why = error["error"].as_str().unwrap_or_default();
    assert!(why.contains("only backends"), "{model}: {error}");
    // The table before the one that would match, too, has no presence and no rate.
    let mut quiet = joined(&server, "/ws/chat:quiet?name=ann");
    let _other = joined(&server, "/ws/chat:quiet?name=bob");
    for n in 0..5 {
        send(&mut quiet, &broadcast(n));
        assert_eq!(hear(&mut quiet), broadcast(n), "{model}");
        assert_eq!(hear(&mut quiet)["listenerCount"], 2, "{model}");
    }
    let mut loud = joined(&server, "/ws/chat:1?name=ann");
    let _other = joined(&server, "/ws/chat:1?name=bob");
    let event = hear(&mut loud);
    assert_eq!((&event["event"], &event["member"]), (&json!("join"), &json!("bob")), "{model}");
    for n in 0..20 {
        send(&mut loud, &broadcast(n));
    }
    let own = std::iter::repeat_with(|| hear(&mut loud)["type"].clone());
    let own: Vec<_> =
        own.filter(|kind| kind == "broadcastResult" || kind == "error").take(20).collect();
    // A slow machine admits one more per second.
    assert!(own.iter().filter(|kind| **kind == "error").count() >= 10, "{model}: {own:?}");
    let mut lobby = joined(&server, "/ws");
    send(&mut lobby, &broadcast(7));
    assert_eq!(hear(&mut lobby), broadcast(7), "{model}: a room without a table has the options");
}

on_hub_models!(a_room_has_its_own_policy_for_slow_members);

/// Number of broadcasts, and bytes of each: more than the kernel and the hub hold for a member that does not read.
const MANY: u64 = 1_000;
const LONG: usize = 8_000;

fn a_room_has_its_own_policy_for_slow_members(model: &str) {
    let text =
        "slow = \"close\"\nbacklog_messages = 20\n[[room]]\nmatch = \"live:*\"\nslow = \"skip\"\n";
    let server = hub(model, text);
    for (room, stays) in [("other", false), ("live:1", true)] {
        let url = format!("ws://{}/ws/{room}", server.addr);
        let mut slow = client(url, Patient(slow_connection(&server))).unwrap().0;
        send(&mut slow, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(&mut slow)["type"], "echo", "{model}");
        let mut quick = joined(&server, &format!("/ws/{room}"));
        for n in 0..MANY {
            quick.send(long_broadcast(n, LONG)).unwrap();
            assert_eq!(hear(&mut quick)["type"], "broadcast", "{model}");
            assert_eq!(hear(&mut quick)["type"], "broadcastResult", "{model}");
        }
        if !stays {
            assert_eq!(closed(&mut slow), Some(CloseCode::Again), "{model}");
            continue;
        }
        slow.send(Message::text(r#"{"type":"echo","payload":1}"#)).unwrap();
        let mut heard = 0;
        while hear(&mut slow)["type"] == "broadcast" {
            heard += 1;
        }
        assert!(heard > 0 && heard < MANY, "{model}: it missed some, and stayed: {heard}");
    }
}

#[test]
fn a_room_is_full_at_the_maximum_of_its_table() {
    let text = "max_room_members = 3\n[[room]]\nmatch = \"pair:*\"\nmax_members = 2\n";
    let server = hub("percore", text);
    let enters = |room: &str| {
        let url = format!("ws://{}/ws/{room}", server.addr);
        match client(url, Patient(server.connect())) {
            Ok((socket, _)) => Some(socket),
            Err(HandshakeError::Failure(Error::Http(reply))) => {
                assert_eq!(reply.status(), 503);
                None
            }
            Err(other) => panic!("{other}"),
        }
    };
    for (room, most) in [("pair:1", 2), ("pair:2", 2), ("other", 3)] {
        let members: Vec<_> = (0..most).map(|_| enters(room).expect(room)).collect();
        assert!(enters(room).is_none(), "{room}");
        drop(members);
    }
}

#[test]
fn a_table_that_is_wrong_is_reported_with_its_line() {
    for (text, expected) in [
        ("[[room]]\nmatch = \"a*b\"", "line 2: match: `*` is only possible as the last character"),
        ("[[room]]\nmatch = \"a b\"", "line 2: match: no room has ' ' in its name"),
        ("[[room]]\nmatch = 1", "line 2: match: expected a string, got integer"),
        ("page = true\n[[room]]\nrate = 1", "line 2: a table [[room]] needs `match`"),
        ("[[room]]\nmatch = \"a\"\nrate = 0", "line 3: rate: expected a number from 1 on, got 0"),
        ("[[room]]\nmatch = \"a\"\nmax_members = \"9\"", "line 3: max_members: expected a number"),
        (
            "[[room]]\nmatch = \"a\"\n\nslow = \"wait\"",
            "line 4: slow: expected one of: close, skip, conflate",
        ),
        (
            "[[room]]\nmatch = \"a\"\npublish = \"all\"",
            "line 3: publish: expected one of: members, api",
        ),
        (
            "[[room]]\nmatch = \"a\"\nhistory = -1",
            "line 3: history: expected a number from 0 on, got -1",
        ),
        (
            "[[room]]\nmatch = \"a\"\nhistory_ttl = \"9ms\"",
            "line 3: history_ttl: expected a time from 1s to 1d",
        ),
        (
            "history = 5\n[[room]]\nmatch = \"a\"\nslow = \"skip\"",
            "[[room]] with match \"a\": slow = \"skip\" and history = 5: a slow member",
        ),
        (
            "model = \"cluster\"\n[[room]]\nmatch = \"a\"\nhistory = 5",
            "only without history in [[room]]",
        ),
        (
            "[[room]]\nmatch = \"a\"\npresence = 1",
            "line 3: presence: expected true or false, got integer",
        ),
        (
            "[[room]]\nmatch = \"a\"\npage = true",
            "line 3: there is no key page in [[room]]; expected one of: history, ",
        ),
        (
            "[room]\nmatch = \"a\"",
            "line 1: room: expected tables with the head [[room]], got one table",
        ),
        ("room = [1]", "line 1: room: expected tables with the head [[room]], got integer"),
        (
            "[[room]]\nmatch = \"chat:*\"\n[[room]]\nmatch = \"b\"\n[[room]]\nmatch = \"chat:1*\"",
            "line 6: match: \"chat:1*\" has no effect, because \"chat:*\" in line 2",
        ),
        ("[[room]]\nmatch = \"a\"\n[[room]]\nmatch = \"a\"", "line 4: match: \"a\" has no effect"),
        ("[[room]]\nmatch = \"*\"\n[[room]]\nmatch = \"\"", "line 4: match: \"\" has no effect"),
        (
            "model = \"cluster\"\n[[room]]\nmatch = \"a\"\nmax_members = 2",
            "only without max_members in [[room]]",
        ),
    ] {
        let printed = checked(text).with_status(2).stderr;
        assert!(printed.contains(expected), "{text}: {printed}");
    }
    // Only in the file, and only in that of a hub.
    for arguments in [&["--room", "a"][..], &["--match=a"]] {
        refused(regatta!("hub").args(arguments));
    }
    let (_folder, path) = file("nodes = [\"127.0.0.1:1\"]\n[[room]]\nmatch = \"a\"");
    let printed = refused(regatta!("shard --check --config").arg(path));
    assert!(printed.contains("line 2: there is no key room"), "{printed}");
}

#[test]
fn a_check_prints_tables_that_mean_the_same() {
    let text = format!(
        "page = true\n{RULES}\n[[room]]\nmatch = \"\"\nslow = \"conflate\"\nmax_members = 5\npresence = false\n\
         [[room]]\nmatch = \"kept\"\nhistory = 50\nhistory_ttl = \"1m 30s\"\n"
    );
    let tables = |text: &str| -> Vec<String> {
        let printed = checked(text).with_status(0).stdout;
        let tables = printed.lines().skip_while(|line| !line.starts_with("[[room]]"));
        tables.map(|line| line.split("  #").next().unwrap().trim().to_owned()).collect()
    };
    let printed = tables(&text);
    let expected = [
        "[[room]]",
        "match = \"news:*\"",
        "publish = \"api\"",
        "",
        "[[room]]",
        "match = \"chat:quiet\"",
        "",
        "[[room]]",
        "match = \"chat:*\"",
        "presence = true",
        "rate = 1",
        "",
        "[[room]]",
        "match = \"\"",
        "presence = false",
        "slow = \"conflate\"",
        "max_members = 5",
        "",
        "[[room]]",
        "match = \"kept\"",
        "history = 50",
        "history_ttl = \"1m 30s\"",
    ];
    assert_eq!(printed, expected);
    assert_eq!(tables(&printed.join("\n")), printed);
}
