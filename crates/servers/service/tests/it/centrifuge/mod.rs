//! Clients of Centrifugo's protocol without sockets: what they send, cut anywhere, what they get, and seeded simulations
//! in which they are slow, lose their connections, and come back.

mod codec;
mod presence;
mod recovery;
mod simulation;
mod times;
mod tokens;

use crate::hub;
use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{HistoryLimits, Hub, Settings};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

type Letter = <Sessions<Hub> as regatta_engine::Engine>::Letter;

/// Settings with such clients, who see each other.
fn settings() -> Settings {
    Settings { centrifuge: true, presence: true, ping: None, ..Settings::default() }
}

/// The same, with this many messages kept.
fn with_history(messages: usize) -> Settings {
    let mut settings = settings();
    settings.limits.history = HistoryLimits { messages, time: Duration::from_secs(60) };
    settings
}

/// Two cores of a hub.
struct Cores {
    cores: [Core<Sessions<Hub>>; 2],
    mail: [VecDeque<Letter>; 2],
    now: Now,
}

/// A connection.
struct Socket {
    core: usize,
    conn: Conn,
    /// What it has received and not parsed yet.
    bytes: Vec<u8>,
    /// The code and the reason of the Close frame, 0 if the connection ended without one.
    closed: Option<(u16, String)>,
    is_gone: bool,
    /// It speaks the hub's own protocol, in which a message may have several lines.
    is_member: bool,
    last_id: u32,
}

impl Cores {
    fn new(settings: Settings) -> Cores {
        let (hub, hour) = (Hub::new(settings), Duration::from_secs(3_600));
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let limits = Limits { idle: 99 * hour, request: 99 * hour };
        let cores = [0, 1].map(|own| {
            let mut core = Core::new(Sessions::new(hub.clone()), limits, now);
            core.set_core(own, 2);
            core
        });
        Cores { cores, mail: Default::default(), now }
    }

    /// Opens a WebSocket at this path.
    fn opens(&mut self, core: usize, path: &str) -> Socket {
        let conn = self.cores[core].accept();
        let (bytes, is_member) = (Vec::new(), path.starts_with("/ws"));
        let mut socket =
            Socket { core, conn, bytes, closed: None, is_gone: false, is_member, last_id: 0 };
        self.cores[core].received(conn, &mut opening(path));
        self.collects();
        self.reads(&mut socket, usize::MAX);
        let head = socket.bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a reply");
        assert!(socket.bytes.starts_with(b"HTTP/1.1 101 "));
        socket.bytes.drain(..head + 4);
        socket
    }

    /// Opens a connection of a client that is connected.
    fn client(&mut self, core: usize) -> Socket {
        let mut socket = self.opens(core, "/connection/websocket");
        let reply = self.asks(&mut socket, json!({"connect": {}}));
        assert!(reply["connect"]["client"].is_string(), "{reply}");
        socket
    }

    fn sends(&mut self, socket: &Socket, text: &str) {
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        self.cores[socket.core].received(socket.conn, &mut bytes);
        self.collects();
    }

    /// Sends a command, and returns the reply to it, without its number. What comes before is lost.
    fn asks(&mut self, socket: &mut Socket, command: Value) -> Value {
        let mut all = self.asks_all(socket, command);
        assert!(!all.is_empty(), "no reply");
        all.remove(0)
    }

    /// The same, with what comes behind it.
    fn asks_all(&mut self, socket: &mut Socket, mut command: Value) -> Vec<Value> {
        self.hears(socket);
        socket.last_id += 1;
        command["id"] = json!(socket.last_id);
        self.sends(socket, &command.to_string());
        let mut all = self.hears(socket);
        if let Some(at) = all.iter().position(|one| one["id"] == socket.last_id) {
            let mut reply = all.remove(at);
            reply.as_object_mut().expect("an object").remove("id");
            all.insert(0, reply);
        }
        all
    }

    fn subscribes(&mut self, socket: &mut Socket, channel: &str) -> Value {
        let reply =
            self.asks(socket, json!({"subscribe": {"channel": channel, "join_leave": true}}));
        assert!(reply["subscribe"].is_object(), "{reply}");
        reply["subscribe"].clone()
    }

    fn publishes(&mut self, socket: &mut Socket, channel: &str, data: Value) {
        socket.last_id += 1;
        let command = json!({"id": socket.last_id, "publish": {"channel": channel, "data": data}});
        self.sends(socket, &command.to_string());
    }

    /// Takes the letters of the cores.
    fn collects(&mut self) {
        for from in 0..2 {
            for letter in self.cores[from].letters() {
                self.mail[1 - from].push_back(letter);
            }
        }
    }

    /// All letters arrive.
    fn delivers(&mut self) {
        while let Some(to) = (0..2).find(|to| !self.mail[*to].is_empty()) {
            if let Some(letter) = self.mail[to].pop_front() {
                self.cores[to].heard(letter);
            }
            self.collects();
        }
    }

    /// The socket accepts at most so many bytes. Returns whether there are more.
    fn reads(&mut self, socket: &mut Socket, mut most: usize) -> bool {
        let core = &mut self.cores[socket.core];
        let has_more = loop {
            if socket.is_gone {
                break false;
            }
            match core.next(socket.conn, &()) {
                Next::Write { .. } if most > 0 => {
                    let output = core.output(socket.conn);
                    let taken = output.len().min(most);
                    socket.bytes.extend_from_slice(&output[..taken]);
                    core.wrote(socket.conn, taken);
                    most -= taken;
                }
                Next::Write { .. } => break true,
                Next::Wait => {
                    core.settle(socket.conn);
                    break false;
                }
                Next::ShutdownWrite => {
                    socket.closed.get_or_insert_default();
                    break false;
                }
                Next::Close => {
                    socket.closed.get_or_insert_default();
                    socket.is_gone = true;
                    core.closed(socket.conn);
                    break false;
                }
            }
        };
        self.collects();
        has_more
    }

    /// Everything that a client gets, in lines.
    fn hears(&mut self, socket: &mut Socket) -> Vec<Value> {
        self.delivers();
        while self.reads(socket, usize::MAX) {}
        socket.lines()
    }

    /// The connection is lost, with all that the client has not received.
    fn loses(&mut self, socket: Socket) {
        let core = &mut self.cores[socket.core];
        if !socket.is_gone {
            core.failed(socket.conn);
            while core.next(socket.conn, &()) != Next::Close {}
            core.closed(socket.conn);
        }
        self.collects();
    }

    fn passes(&mut self, time: Duration) {
        self.now.instant += time;
        self.now.unix_s += time.as_secs();
        for core in &mut self.cores {
            core.turn(self.now);
            core.tick(&());
        }
        self.collects();
    }
}

impl Socket {
    /// The lines that have come.
    fn lines(&mut self) -> Vec<Value> {
        let (mut all, mut at) = (Vec::new(), 0);
        while let Some((opcode, payload, length)) = frame(&self.bytes[at..]) {
            at += length;
            match opcode {
                0x81 => {
                    let text = str::from_utf8(payload).expect("a text");
                    assert!(self.is_member || !text.contains('\n'), "{text}");
                    all.push(serde_json::from_str(text).expect("JSON"));
                }
                0x88 => {
                    let (code, why) = payload.split_first_chunk().expect("a code");
                    let why = String::from_utf8(why.to_vec()).expect("a reason");
                    self.closed = Some((u16::from_be_bytes(*code), why));
                }
                0x8a => {}
                other => panic!("a frame of {other:x}"),
            }
        }
        self.bytes.drain(..at);
        all
    }

    fn code(&self) -> Option<u16> {
        self.closed.as_ref().map(|(code, _)| *code)
    }
}

fn opening(path: &str) -> Vec<u8> {
    let opening = String::from_utf8(hub::OPENING.to_vec()).unwrap();
    opening.replace("/ws ", &format!("{path} ")).into_bytes()
}

/// The first byte of the first frame, its payload, and its length.
fn frame(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (header, length) = match *bytes.get(1)? {
        126 => (4, u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        length => (2, u64::from(length)),
    };
    let end = header + length as usize;
    Some((bytes[0], bytes.get(header..end)?, end))
}

/// The push of a message.
fn publication(channel: &str, data: Value, offset: Option<u64>) -> Value {
    let mut of = json!({"data": data});
    if let Some(offset) = offset {
        of["offset"] = json!(offset);
    }
    json!({"push": {"channel": channel, "pub": of}})
}

#[test]
fn one_connection_is_in_several_rooms_with_members_that_are_in_one() {
    let mut cores = Cores::new(Settings { presence: false, ..settings() });
    let (mut ann, mut bob) = (cores.client(0), cores.client(1));
    for channel in ["red", "blue"] {
        assert_eq!(cores.subscribes(&mut ann, channel), json!({}));
    }
    cores.subscribes(&mut bob, "blue");
    let mut member = cores.opens(1, "/ws/red");
    cores.publishes(&mut bob, "red", json!({"n": 1}));
    cores.publishes(&mut bob, "blue", json!(2));
    assert_eq!(
        cores.hears(&mut bob),
        [
            json!({"id": 3, "publish": {}}),
            publication("blue", json!(2), None),
            json!({"id": 4, "publish": {}})
        ]
    );
    let to_red = publication("red", json!({"n": 1}), None);
    assert_eq!(cores.hears(&mut ann), [to_red, publication("blue", json!(2), None)]);
    assert_eq!(cores.hears(&mut member), [json!({"type": "broadcast", "payload": {"n": 1}})]);
    cores.sends(
        &member,
        r#"{"type":"broadcast","payload":[3,
        4]}"#,
    );
    assert_eq!(cores.hears(&mut ann), [publication("red", json!([3, 4]), None)]);
    let result = &cores.hears(&mut member)[1];
    assert_eq!(result["listenerCount"], 2, "both are in the room");
    assert_eq!(
        cores.asks(&mut ann, json!({"unsubscribe": {"channel": "red"}})),
        json!({"unsubscribe": {}})
    );
    cores.sends(&member, r#"{"type":"broadcast","payload":5}"#);
    cores.publishes(&mut bob, "blue", json!(6));
    assert_eq!(cores.hears(&mut ann), [publication("blue", json!(6), None)]);
    // It may come back.
    cores.subscribes(&mut ann, "red");
    cores.sends(&member, r#"{"type":"broadcast","payload":7}"#);
    assert_eq!(cores.hears(&mut ann), [publication("red", json!(7), None)]);
}

#[test]
fn a_client_that_does_not_read_is_closed_as_slow_and_others_do_not_wait() {
    let mut settings = settings();
    settings.backlog.pushes = 3;
    let mut cores = Cores::new(settings);
    let (mut slow, mut fast) = (cores.client(0), cores.client(1));
    for socket in [&mut slow, &mut fast] {
        for channel in ["red", "blue"] {
            cores.subscribes(socket, channel);
        }
    }
    cores.hears(&mut slow);
    let long = "x".repeat(40_000);
    for n in 0..6 {
        let channel = ["red", "blue"][n % 2];
        cores.publishes(&mut fast, channel, json!(long));
        assert_eq!(cores.hears(&mut fast).len(), 2);
    }
    let got = cores.hears(&mut slow);
    assert_eq!((got.len(), slow.code()), (2, Some(3008)), "what it had before it was full");
    cores.loses(slow);
    let left = cores.hears(&mut fast);
    assert_eq!(left.len(), 2, "it leaves both rooms: {left:?}");
    assert!(left.iter().all(|one| one["push"]["leave"].is_object()), "{left:?}");
}

#[test]
fn a_slow_client_gets_what_waits_for_it_in_the_order_of_each_room() {
    let mut cores = Cores::new(Settings { presence: false, ..settings() });
    let (mut slow, mut fast) = (cores.client(0), cores.client(1));
    for channel in ["red", "blue", "gone"] {
        cores.subscribes(&mut slow, channel);
    }
    let long = "x".repeat(30_000);
    for n in 0..30 {
        cores.publishes(&mut fast, ["red", "blue", "gone"][n % 3], json!([n, long]));
        cores.delivers();
    }
    // What waits for a room that it leaves is not for its next subscription there.
    cores.sends(&slow, r#"{"id":9,"unsubscribe":{"channel":"gone"}}"#);
    cores.sends(&slow, r#"{"id":10,"subscribe":{"channel":"gone"}}"#);
    let got = cores.hears(&mut slow);
    let of = |channel: &str| {
        let all = got.iter().filter(|one| one["push"]["channel"] == channel);
        all.map(|one| one["push"]["pub"]["data"][0].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("red"), (0..30).step_by(3).collect::<Vec<_>>());
    assert_eq!(of("blue"), (1..30).step_by(3).collect::<Vec<_>>());
    assert_eq!(of("gone"), [2], "it was in the output before");
    assert!(slow.closed.is_none());
}
