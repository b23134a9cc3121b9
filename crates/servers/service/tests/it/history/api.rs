//! The API for backends, with histories of rooms.

use super::simulation::KEY;
use crate::hub::OPENING;
use regatta_engine::{Core, Limits, Next, Now, Policy, RoomName, SessionFactory, Sessions};
use regatta_service::hub::{Api, HistoryLimits, Hub, RoomRule, Settings};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A hub on one core.
struct World(Core<Sessions<Hub>>);

impl World {
    /// A hub that keeps 3 messages, except in the room `plain`.
    fn new() -> World {
        let mut settings = Settings { api: Some(Arc::new(Api::new(KEY))), ..Settings::default() };
        settings.limits.history = HistoryLimits { messages: 3, time: Duration::from_secs(60) };
        let plain = RoomRule::new("plain".parse().unwrap());
        settings.rooms = vec![RoomRule { history: Some(0), ..plain }];
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        World(Core::new(Sessions::new(Hub::new(settings)), Limits::default(), now))
    }

    /// Sends a request on a new connection. Returns the reply.
    fn asks(&mut self, request: &[u8]) -> String {
        let conn = self.0.accept();
        self.0.received(conn, &mut request.to_vec());
        let mut got = Vec::new();
        while let Next::Write { .. } = self.0.next(conn, &()) {
            let length = self.0.output(conn).len();
            got.extend_from_slice(self.0.output(conn));
            self.0.wrote(conn, length);
        }
        String::from_utf8_lossy(&got).into_owned()
    }

    fn calls(&mut self, method: &str, arguments: &Value) -> Value {
        let body = arguments.to_string();
        let head = format!("POST /api/{method} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\n");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let reply = self.asks(request.as_bytes());
        serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn publishes(&mut self, channel: &str, data: &Value) -> Value {
        self.calls("publish", &json!({"channel": channel, "data": data}))["result"].clone()
    }

    /// What a member receives that joins with this path.
    fn joins(&mut self, path: &str) -> String {
        let opening = String::from_utf8(OPENING.to_vec()).unwrap();
        self.asks(opening.replace("/ws ", &format!("{path} ")).as_bytes())
    }
}

#[test]
fn a_backend_publishes_reads_the_history_and_a_member_continues_from_there() {
    let mut world = World::new();
    let empty = world.calls("history", &json!({"channel": "a"}))["result"].clone();
    let epoch = empty["epoch"].as_str().unwrap().to_owned();
    assert_eq!(empty, json!({"publications": [], "offset": 0, "epoch": epoch}));
    for n in 1..=4 {
        let result = world.publishes("a", &json!({"n": n}));
        assert_eq!(result, json!({"offset": n, "epoch": epoch}));
    }
    let mut read = |more: Value| {
        let mut arguments = json!({"channel": "a", "limit": -1});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = world.calls("history", &arguments);
        let Some(publications) = reply["result"]["publications"].as_array() else {
            return reply["error"]["code"].clone();
        };
        assert_eq!(
            (&reply["result"]["offset"], &reply["result"]["epoch"]),
            (&json!(4), &json!(epoch))
        );
        publications.iter().for_each(|one| assert_eq!(one["data"]["n"], one["offset"]));
        publications.iter().map(|one| one["offset"].clone()).collect()
    };
    assert_eq!(read(json!({})), json!([2, 3, 4]));
    assert_eq!(read(json!({"limit": 0})), json!([]));
    assert_eq!(read(json!({"limit": 2, "reverse": true})), json!([4, 3]));
    assert_eq!(read(json!({"since": {"offset": 2, "epoch": epoch}})), json!([3, 4]));
    assert_eq!(read(json!({"since": {"offset": 2}})), json!([3, 4]));
    assert_eq!(read(json!({"since": {"offset": 0, "epoch": epoch}})), 112, "1 is gone");
    assert_eq!(read(json!({"since": {"offset": 2, "epoch": "x"}})), 112, "another history");
    let got = world.joins(&format!("/ws/a?epoch={epoch}&offset=3"));
    let recovered =
        format!(r#"{{"type":"position","epoch":"{epoch}","offset":3,"recovered":true}}"#);
    assert!(got.contains(&recovered), "{got}");
    assert!(got.contains(r#"{"type":"broadcast","payload":{"n":4},"offset":4}"#), "{got}");
    assert!(!got.contains(r#""n":3"#), "{got}");
}

#[test]
fn a_broadcast_has_a_position_in_each_room_that_keeps_messages() {
    let mut world = World::new();
    world.publishes("a", &json!(0));
    let asked = json!({"channels": ["a", "plain", "b"], "data": 1});
    let responses = world.calls("broadcast", &asked)["result"]["responses"].clone();
    let offsets: Vec<_> = (0..3).map(|at| responses[at]["result"]["offset"].as_u64()).collect();
    assert_eq!(offsets, [Some(2), None, Some(1)]);
    let repeated = json!({"channel": "a", "data": 2, "idempotency_key": "k"});
    assert_eq!(world.calls("publish", &repeated)["result"]["offset"], 3);
    assert_eq!(world.calls("publish", &repeated)["result"], json!({}), "it is known already");
    let code = world.calls("history", &json!({"channel": "plain"}))["error"]["code"].clone();
    assert_eq!(code, 108);
}

#[test]
fn a_position_that_means_nothing_is_a_gap_or_refused() {
    let mut world = World::new();
    let got = world.joins("/ws/plain?epoch=00&offset=7");
    assert!(got.contains(r#"{"type":"gap","recovered":false}"#), "{got}");
    let got = world.joins("/ws/a?epoch=no-epoch&offset=0");
    assert!(got.contains(r#"{"type":"gap","recovered":false,"epoch":""#), "{got}");
    for query in ["epoch=00", "offset=1", "epoch=00&offset=x"] {
        let got = world.joins(&format!("/ws/a?{query}"));
        assert!(got.starts_with("HTTP/1.1 400 "), "{query}: {got}");
    }
}

#[test]
fn a_room_with_members_keeps_its_history_after_a_reload_without_one() {
    let mut settings = Settings { api: Some(Arc::new(Api::new(KEY))), ..Settings::default() };
    settings.limits.history = HistoryLimits { messages: 3, time: Duration::from_secs(60) };
    let hub = Hub::new(settings.clone());
    let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
    let mut world = World(Core::new(Sessions::new(hub.clone()), Limits::default(), now));
    // Its connection stays open.
    assert!(world.joins("/ws/old").contains(r#""type":"position""#));
    settings.limits.history = HistoryLimits::NONE;
    settings.backlog.policy = Policy::Skip;
    hub.reload(settings);
    assert_eq!(world.publishes("old", &json!(1))["offset"], 1);
    assert_eq!(world.publishes("new", &json!(1)), json!({}));
    assert!(world.joins("/ws/old").contains(r#""offset":1"#));
    assert!(!world.joins("/ws/new").contains("position"));
    let policy = |room| hub.bounds(&RoomName::of(room)).policy;
    assert_eq!((policy("old"), policy("new")), (Policy::Close, Policy::Skip));
}
