//! The hub without sockets: rooms with rules, reloads, and members that a backend disconnects.

use crate::hub::OPENING;
use regatta_engine::{
    Conn, Context, Core, Flow, Limits, Next, Now, Policy, Post, Session, SessionFactory, Sessions,
};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{Api, Connection, Hub, Publish, RoomRule, Settings};
use std::{num::NonZeroU32, sync::Arc, time::Instant};

const KEY: &str = "a-key-of-a-backend";

fn now() -> Now {
    Now { instant: Instant::now(), unix_s: 1_000_000_000 }
}

/// A rule that changes nothing.
fn rule(pattern: &str) -> RoomRule {
    RoomRule::new(pattern.parse().unwrap())
}

fn settings(rooms: Vec<RoomRule>) -> Settings {
    Settings { api: Some(Arc::new(Api::new(KEY))), rooms, ..Settings::default() }
}

/// The request that opens a WebSocket to this path.
fn opening(path: &str) -> Vec<u8> {
    let usual = String::from_utf8(OPENING.to_vec()).unwrap();
    usual.replace("/ws ", &format!("{path} ")).into_bytes()
}

/// A request to the API.
fn request(method: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST /api/{method} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\n");
    format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A hub on one core, at one moment.
struct World {
    hub: Hub,
    core: Core<Sessions<Hub>>,
}

impl World {
    fn new(settings: Settings) -> World {
        let hub = Hub::new(settings);
        let core = Core::new(Sessions::new(hub.clone()), Limits::default(), now());
        World { hub, core }
    }

    /// Everything that is written to a connection now.
    fn written(&mut self, conn: Conn) -> String {
        let mut got = Vec::new();
        while let Next::Write { .. } = self.core.next(conn, &()) {
            let output = self.core.output(conn);
            got.extend_from_slice(output);
            let length = output.len();
            self.core.wrote(conn, length);
        }
        String::from_utf8_lossy(&got).into_owned()
    }

    /// Sends a request on a new connection. Returns it with the reply.
    fn asks(&mut self, request: &[u8]) -> (Conn, String) {
        let conn = self.core.accept();
        self.core.received(conn, &mut request.to_vec());
        let reply = self.written(conn);
        (conn, reply)
    }

    fn joins(&mut self, path: &str) -> Conn {
        let (conn, reply) = self.asks(&opening(path));
        assert!(reply.starts_with("HTTP/1.1 101 "), "{path}: {reply}");
        conn
    }

    /// Sends a broadcast. Returns what its sender gets.
    fn broadcasts(&mut self, conn: Conn) -> String {
        let mut bytes = Vec::new();
        let text = br#"{"type":"broadcast","payload":"news"}"#;
        Frame::text(text).write_masked([1, 2, 3, 4], &mut bytes);
        self.core.received(conn, &mut bytes);
        self.written(conn)
    }
}

#[test]
fn only_backends_publish_in_a_room_of_theirs() {
    let rules = vec![RoomRule { publish: Publish::Api, ..rule("news:*") }];
    let mut world = World::new(settings(rules));
    let (news, other) = (world.joins("/ws/news:1"), world.joins("/ws/other"));
    let got = world.broadcasts(news);
    assert!(got.contains("only backends may send messages to this room"), "{got}");
    assert!(world.broadcasts(other).contains("broadcastResult"));
    let (_, reply) = world.asks(&request("publish", r#"{"channel":"news:1","data":"real"}"#));
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    assert!(world.written(news).contains(r#"{"type":"broadcast","payload":"real"}"#));
}

#[test]
fn a_room_has_the_presence_the_places_and_the_rate_of_its_rule() {
    let rules = vec![
        RoomRule { presence: Some(true), ..rule("seen") },
        RoomRule { max_members: Some(2), rate: NonZeroU32::new(1), ..rule("small:*") },
    ];
    let mut world = World::new(settings(rules));
    let seen = world.joins("/ws/seen?name=ann");
    world.joins("/ws/seen?name=bob");
    assert!(world.written(seen).contains(r#""event":"join","member":"bob","count":2"#));
    let (one, _) = (world.joins("/ws/small:1"), world.joins("/ws/small:1"));
    assert_eq!(world.written(one), "", "nobody is announced there");
    let (_, refused) = world.asks(&opening("/ws/small:1"));
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    world.joins("/ws/small:2");
    assert!(world.broadcasts(one).contains("broadcastResult"));
    let got = world.broadcasts(one);
    assert!(got.contains("too many messages of this room"), "{got}");
    for _ in 0..9 {
        let other = world.joins("/ws/other");
        assert!(
            world.broadcasts(other).contains("broadcastResult"),
            "the other rooms have no rate"
        );
    }
}

#[test]
fn a_reload_applies_to_members_that_join_later() {
    let mut world = World::new(settings(Vec::new()));
    let before = world.joins("/ws/news");
    let rules = vec![RoomRule { publish: Publish::Api, slow: Some(Policy::Skip), ..rule("news") }];
    world.hub.reload(settings(rules));
    let after = world.joins("/ws/news");
    assert!(world.broadcasts(before).contains("broadcastResult"), "it keeps what held at its join");
    assert!(world.broadcasts(after).contains("only backends"));
    // A connection without a member takes the settings with each of its requests.
    let idle = world.core.accept();
    let other =
        Settings { api: Some(Arc::new(Api::new("another-key-of-it"))), ..Settings::default() };
    assert!(world.hub.has_other_secrets(&other) && !world.hub.has_other_secrets(&settings(vec![])));
    world.hub.reload(other);
    world.core.received(idle, &mut request("info", ""));
    let reply = world.written(idle);
    assert!(reply.starts_with("HTTP/1.1 401 ") && reply.contains("api_key_wrong: "), "{reply}");
}

#[test]
fn publications_are_known_after_a_reload() {
    let mut world = World::new(settings(Vec::new()));
    let member = world.joins("/ws/news");
    let publish = r#"{"channel":"news","data":"once","idempotency_key":"7"}"#;
    world.asks(&request("publish", publish));
    assert!(world.written(member).contains("once"));
    world.hub.reload(settings(Vec::new()));
    let (_, reply) = world.asks(&request("publish", publish));
    assert!(reply.ends_with(r#"{"result":{}}"#), "{reply}");
    assert_eq!(world.written(member), "");
}

#[test]
fn a_disconnected_member_is_not_listed_although_its_connection_is_open() {
    let mut world = World::new(Settings { presence: true, ..settings(Vec::new()) });
    let (ann, bob) = (world.joins("/ws/red?name=ann"), world.joins("/ws/red?name=bob"));
    let presence = request("presence", r#"{"channel":"red"}"#);
    let (_, listed) = world.asks(&presence);
    assert!(listed.contains("ann") && listed.contains("bob"), "{listed}");
    world.asks(&request("disconnect", r#"{"client":"0"}"#));
    let (_, listed) = world.asks(&presence);
    assert!(!listed.contains("ann") && listed.contains("bob"), "{listed}");
    world.written(bob);
    // The others are notified when its connection is closed.
    assert!(world.written(ann).contains("disconnected by a backend"));
    world.core.closed(ann);
    let got = world.written(bob);
    assert!(got.contains(r#""event":"leave","member":"ann","count":1"#), "{got}");
}

/// A session without its engine: what it has posted is not carried out yet.
struct Alone {
    member: Connection,
    out: Vec<u8>,
    posts: Vec<Post<<Connection as Session>::Push>>,
}

impl Alone {
    fn new(hub: &Hub) -> Alone {
        Alone { member: hub.session(now()), out: Vec::new(), posts: Vec::new() }
    }

    fn call(
        &mut self,
        what: impl FnOnce(&mut Connection, &mut Context<'_, Connection>) -> Flow,
    ) -> Flow {
        let Alone { member, out, posts } = self;
        what(member, &mut Context { now: now(), local: &mut (), out, posts })
    }

    fn receives(&mut self, bytes: &[u8]) -> Flow {
        self.call(|member, context| member.on_bytes(context, &mut bytes.to_vec()))
    }
}

/// On `green`, `async` and `threads`, a join is carried out after the call of the session. A backend may disconnect the
/// member in between: its order finds nobody in the room.
#[test]
fn a_member_that_joins_at_the_same_moment_is_disconnected() {
    for (asked, is_for_it) in [
        (r#"{"client":"0"}"#, true),
        (r#"{"client":"1"}"#, false),
        (r#"{"client":"0","whitelist":["0"]}"#, false),
    ] {
        let hub = Hub::new(settings(Vec::new()));
        let (mut member, mut backend) = (Alone::new(&hub), Alone::new(&hub));
        assert_eq!(member.receives(&opening("/ws/red")), Flow::Continue);
        assert!(matches!(&member.posts[..], [Post::Join(room)] if room.as_str() == "red"));
        backend.receives(&request("disconnect", asked));
        let orders = backend.posts.iter().filter(|post| matches!(post, Post::To(..))).count();
        assert_eq!(orders, usize::from(is_for_it), "{asked}");
        // The order has reached nobody. Then the join is carried out, and the session is called before it waits.
        member.posts.clear();
        member.out.clear();
        assert!(member.member.alarm().is_some_and(|at| at <= Instant::now()), "{asked}");
        let flow = member.call(|member, context| member.on_alarm(context));
        assert_eq!(flow, if is_for_it { Flow::Close } else { Flow::Continue }, "{asked}");
        let closes = member.out.windows(2).any(|code| code == 3503_u16.to_be_bytes());
        let leaves = member.posts.iter().any(|post| matches!(post, Post::Leave));
        assert_eq!((closes, leaves), (is_for_it, is_for_it), "{asked}");
        assert_eq!(hub.members(), usize::from(!is_for_it), "{asked}");
        // It looks only once.
        assert!(member.member.alarm().is_none_or(|at| at > Instant::now()), "{asked}");
    }
}
