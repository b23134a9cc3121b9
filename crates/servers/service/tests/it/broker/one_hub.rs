//! One hub with two servers, of which one is the broker: what it does with each that they answer.

use super::{broker, redis::Redis};
use crate::{
    history::simulation::{KEY, frame},
    hub::OPENING,
};
use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions};
use regatta_proto::websocket::{CloseCode, Frame};
use regatta_service::hub::{Api, Broker, BrokerLink, HistoryLimits, Hub, Place, Settings};
use serde_json::Value;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Somebody else at the broker.
const STRANGER: usize = 0;
const MILLISECOND: Duration = Duration::from_millis(1);

static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The number of the server that is the broker.
#[derive(Default)]
pub struct At(pub AtomicU16);

impl Place for At {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1 + self.0.load(SeqCst)))])
    }
}

/// A hub with a member, and two servers.
pub struct World {
    name: &'static str,
    core: Core<Sessions<Hub, BrokerLink>>,
    pub hub: Hub,
    pub broker: Arc<Broker>,
    pub now: Now,
    pub place: Arc<At>,
    pub servers: [Redis; 2],
    /// The connection of the hub, its server, and its number there.
    pub link: Option<(Conn, usize, usize)>,
    count: usize,
    /// What the hub has written on all connections.
    pub written: Vec<u8>,
    /// Announcements of the hub do not reach the broker.
    pub are_lost: bool,
    /// The kernel accepts nothing that the hub writes to the broker.
    pub is_blocked: bool,
    /// A member of the room without a name.
    pub member: Conn,
}

/// The settings of a hub that keeps so many messages of each room.
pub fn keeping(messages: usize) -> Settings {
    let mut settings = Settings { api: Some(Arc::new(Api::new(KEY))), ..Settings::default() };
    settings.limits.history = HistoryLimits { messages, ..HistoryLimits::NONE };
    settings.ping = None;
    settings
}

impl World {
    /// One whose hub is connected, and has been for longer than a second.
    pub fn new(name: &'static str) -> World {
        World::of(name, false)
    }

    pub fn of(name: &'static str, is_in_cluster: bool) -> World {
        let mut world = World::with(name, is_in_cluster, Settings::default());
        world.passes(3000);
        assert_eq!(world.gaps(), 1, "it has connected");
        world
    }

    /// One whose hub is not connected yet.
    pub fn with(name: &'static str, is_in_cluster: bool, settings: Settings) -> World {
        let place = Arc::new(At::default());
        let broker = broker(name, Arc::clone(&place) as _, is_in_cluster, 1, 2);
        let log = |line: &str| PRINTED.lock().unwrap().push(line.to_owned());
        let broker = Arc::new(broker);
        let (ping, of_hub) = (None, Some(Arc::clone(&broker)));
        let hub = Hub::new(Settings { ping, broker: of_hub, log, ..settings });
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let sessions = Sessions::with_uplink(hub.clone(), hub.broker_link());
        let hour = Duration::from_secs(3_600);
        let mut core = Core::new(sessions, Limits { idle: hour, request: hour }, now);
        let member = core.accept();
        core.received(member, &mut OPENING.to_vec());
        let servers = [1, 2].map(|run| {
            let mut server = if is_in_cluster { Redis::in_cluster() } else { Redis::new(false) };
            server.process.run = run;
            server
        });
        let (link, written, count, are_lost) = (None, Vec::new(), STRANGER, false);
        let mut world = World {
            name,
            core,
            hub,
            broker,
            now,
            place,
            servers,
            link,
            count,
            written,
            are_lost,
            is_blocked: false,
            member,
        };
        world.servers.iter_mut().for_each(|server| server.accepts(STRANGER));
        world
    }

    /// The other one of two cores of the hub. What this one posts from now on it hears with [`World::posted`].
    pub fn other_core(&mut self) -> Core<Sessions<Hub, BrokerLink>> {
        let hour = Duration::from_secs(3_600);
        let limits = Limits { idle: hour, request: hour };
        let sessions = Sessions::with_uplink(self.hub.clone(), self.hub.broker_link());
        let mut other = Core::new(sessions, limits, self.now);
        self.core.set_core(0, 2);
        self.core.letters().for_each(drop);
        other.set_core(1, 2);
        other
    }

    /// The other core hears what this one has posted.
    pub fn posted(&mut self, other: &mut Core<Sessions<Hub, BrokerLink>>) {
        self.core.letters().for_each(|letter| other.heard(letter));
    }

    // ---- clients ----

    /// A member joins with this path.
    pub fn joins(&mut self, path: &str) -> Conn {
        let opening = String::from_utf8(OPENING.to_vec()).unwrap();
        self.asks(opening.replace("/ws ", &format!("{path} ")))
    }

    fn asks(&mut self, request: String) -> Conn {
        let conn = self.core.accept();
        self.core.received(conn, &mut request.into_bytes());
        conn
    }

    /// The connection of a member is lost.
    pub fn leaves(&mut self, member: Conn) {
        self.core.failed(member);
        drain(&mut self.core, member, &mut Vec::new());
    }

    /// A member publishes this.
    pub fn says(&mut self, member: Conn, payload: &str) {
        self.sends(member, &format!(r#"{{"type":"broadcast","payload":{payload}}}"#));
    }

    /// A member sends this text.
    pub fn sends(&mut self, member: Conn, text: &str) {
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        self.core.received(member, &mut bytes);
    }

    /// A member sends a Close frame.
    pub fn sends_close(&mut self, member: Conn) {
        let mut bytes = Vec::new();
        CloseCode::NORMAL.write_masked("", [1, 2, 3, 4], &mut bytes);
        self.sends_bytes(member, bytes);
    }

    /// A member sends these bytes.
    pub fn sends_bytes(&mut self, member: Conn, mut bytes: Vec<u8>) {
        self.core.received(member, &mut bytes);
    }

    /// It is the turn of a member to leave.
    pub fn retires(&mut self, member: Conn) {
        self.core.retire(member, 0);
    }

    /// The client of a member closes its side.
    pub fn ends(&mut self, member: Conn) {
        self.core.ended(member);
    }

    /// The kernel takes nothing that is for a member.
    pub fn does_not_read(&mut self, member: Conn) {
        self.core.settle(member);
    }

    /// Whether a member is read.
    pub fn is_read(&self, member: Conn) -> bool {
        self.core.wants_read(member)
    }

    /// A backend calls a method of the API, over a connection of its own, which is returned.
    pub fn calls(&mut self, method: &str, arguments: &Value) -> Conn {
        let body = arguments.to_string();
        let head = format!("POST /api/{method} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\n");
        self.asks(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// The answer to a call, by the connection that [`World::calls`] has returned; `None`: the hub has not sent it yet.
    pub fn answer(&mut self, backend: Conn) -> Option<Value> {
        let mut got = Vec::new();
        assert!(drain(&mut self.core, backend, &mut got));
        let text = String::from_utf8(got).unwrap();
        text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body).unwrap())
    }

    // ---- the broker ----

    /// So many milliseconds pass.
    pub fn passes(&mut self, millis: u32) {
        for _ in 0..millis {
            self.now.instant += MILLISECOND;
            for server in &mut self.servers {
                server.process.now += 1;
                server.now = Some(self.now.instant);
            }
            self.core.turn(self.now);
            if self.core.due().is_some_and(|due| due <= self.now.instant) {
                self.core.tick(&());
            }
            while let Some((conn, to)) = self.core.next_connect() {
                self.count += 1;
                let link = (conn, usize::from(to.port() - 1), self.count);
                self.servers[link.1].accepts(link.2);
                self.core.connected(conn);
                self.link = Some(link);
            }
            self.exchanges();
        }
    }

    /// The hub and its server hear what the other one has written.
    fn exchanges(&mut self) {
        let Some((conn, server, number)) = self.link.filter(|_| !self.is_blocked) else { return };
        loop {
            let before = self.written.len();
            if !drain(&mut self.core, conn, &mut self.written) {
                return self.link = None;
            }
            let written = &self.written[before..];
            if !self.are_lost || announcements(written).is_empty() {
                self.servers[server].receives(number, written);
            }
            let mut bytes = self.servers[server].output(number, usize::MAX);
            if bytes.is_empty() {
                return;
            }
            self.core.received(conn, &mut bytes);
        }
    }

    /// The connection to the broker is lost.
    pub fn cuts(&mut self) {
        let (conn, server, number) = self.link.take().expect("it is connected");
        self.core.failed(conn);
        drain(&mut self.core, conn, &mut self.written);
        self.servers[server].closes(number);
    }

    /// Somebody publishes that a hub has moved.
    pub fn publishes(&mut self, server: usize, note: &str) {
        self.publishes_in(server, "x:moved", note.as_bytes());
    }

    pub fn publishes_in(&mut self, server: usize, channel: &str, text: &[u8]) {
        let (size, length) = (channel.len(), text.len());
        let mut command =
            format!("*3\r\n$7\r\nPUBLISH\r\n${size}\r\n{channel}\r\n${length}\r\n").into_bytes();
        command.extend_from_slice(text);
        command.extend_from_slice(b"\r\n");
        self.servers[server].receives(STRANGER, &command);
    }

    /// How many gaps the member has got since the last question, and nothing else.
    pub fn gaps(&mut self) -> usize {
        let texts = self.texts();
        assert!(
            texts.iter().all(|text| text == r#"{"type":"gap","recovered":false}"#),
            "{texts:?}"
        );
        texts.len()
    }

    /// What the member has got since the last question.
    pub fn texts(&mut self) -> Vec<String> {
        self.texts_of(self.member)
    }

    /// The same of another member.
    pub fn texts_of(&mut self, member: Conn) -> Vec<String> {
        texts_at(&mut self.core, member)
    }

    /// What a member has got that is closed now, and the code of its Close frame.
    pub fn last_of(&mut self, member: Conn) -> (Vec<String>, Option<u16>) {
        let (mut got, mut at, mut texts) = (Vec::new(), 0, Vec::new());
        drain(&mut self.core, member, &mut got);
        while got.get(at) == Some(&0x81)
            && let Some((text, length)) = frame(&got[at..])
        {
            texts.push(text.to_owned());
            at += length;
        }
        let is_close = got.get(at) == Some(&0x88);
        let code = got.get(at + 2..).and_then(|code| code.first_chunk().copied());
        (texts, code.filter(|_| is_close).map(u16::from_be_bytes))
    }

    /// How many lines of the hub begin with this.
    pub fn lines(&self, text: &str) -> usize {
        let line = format!("regatta: broker {}: {text}", self.name);
        PRINTED.lock().unwrap().iter().filter(|printed| printed.starts_with(&line)).count()
    }
}

/// The announcements in what a hub has written.
pub fn announcements(written: &[u8]) -> Vec<String> {
    let written = String::from_utf8_lossy(written);
    let notes = written.split("PUBLISH\r\n$7\r\nx:moved\r\n").skip(1);
    notes.map(|rest| rest.lines().nth(1).unwrap().to_owned()).collect()
}

/// What a member has got at a core since the last question.
pub fn texts_at(core: &mut Core<Sessions<Hub, BrokerLink>>, member: Conn) -> Vec<String> {
    let mut got = Vec::new();
    assert!(drain(core, member, &mut got), "it stays");
    let head = got.windows(4).position(|four| four == b"\r\n\r\n");
    let (mut at, mut texts) = (head.map_or(0, |head| head + 4), Vec::new());
    while let Some((text, length)) = frame(&got[at..]) {
        texts.push(text.to_owned());
        at += length;
    }
    texts
}

/// Appends what a connection writes. Returns whether it stays.
fn drain(core: &mut Core<Sessions<Hub, BrokerLink>>, conn: Conn, all: &mut Vec<u8>) -> bool {
    loop {
        match core.next(conn, &()) {
            Next::Write { .. } => {
                let length = core.output(conn).len();
                all.extend_from_slice(core.output(conn));
                core.wrote(conn, length);
            }
            Next::Wait if core.has(conn) => {
                core.settle(conn);
                return true;
            }
            _ => {
                core.closed(conn);
                return false;
            }
        }
    }
}
