//! Presence of three hubs of two cores each at one broker, in half of the simulations with histories there. After 15 s
//! without faults each member must know how many members its room has, and who they are. With a history it must get each
//! message, or a gap. Some members are clients of Centrifugo's protocol.

use super::{
    clients::watcher::Watcher,
    one_hub::{World as OneHub, keeping},
    redis::Redis,
};
use crate::{history::simulation::frame, hub::OPENING};
use regatta_engine::{
    Bounds, Conn, Core, Engine, Limits, Next, Now, Policy, Sessions, simulator::Random,
};
use regatta_proto::{resp::Replies, websocket::Frame};
use regatta_service::hub::{Broker, BrokerLink, HistoryLimits, Hub, Place, Settings};
use regatta_testkit::{by_tier, histories};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

type Joined = Sessions<Hub, BrokerLink>;
type Letter = <Joined as Engine>::Letter;

const HUBS: usize = 3;
const ROOMS: [&str; 2] = ["red", "blue"];
const STEPS: usize = 150;
const QUIET: Duration = Duration::from_secs(15);
/// How much longer it may take if the key of a dead hub stays.
const UNHEARD: Duration = Duration::from_secs(3);

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The liveness key of a hub that has died stays.
    KeepsDead,
    /// What the broker sends to a hub is lost now and then, and nobody learns of it.
    Silent,
    /// A client does not get some of its pushes about members, or some twice, or late.
    LosesPush,
    DoublesPush,
    DelaysPush,
}

struct Here;

impl Place for Here {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1))])
    }
}

struct Node {
    cores: [Core<Joined>; 2],
    mail: [VecDeque<Letter>; 2],
    /// Its connection, and its number at the broker.
    link: Option<(Conn, usize)>,
    /// Nothing passes any longer, until the connection is lost.
    is_stalled: bool,
}

struct Member {
    hub: usize,
    core: usize,
    conn: Conn,
    room: &'static str,
    name: String,
    bytes: Vec<u8>,
    is_open: bool,
    /// What it knows.
    count: u64,
    names: BTreeMap<String, i64>,
    /// How far it is in the history.
    offset: Option<u64>,
    /// It is a client of Centrifugo's protocol.
    client: Option<Watcher>,
    /// Who has joined and left since it has its list.
    heard: Vec<(bool, String)>,
}

struct World {
    random: Random,
    now: Now,
    redis: Redis,
    is_down: bool,
    nodes: Vec<Node>,
    members: Vec<Member>,
    count: usize,
    /// How many messages of a room are kept.
    keeps: usize,
    fault: Fault,
}

fn node(number: usize, presence: bool, keeps: usize, now: Now) -> Node {
    let broker = Broker {
        name: "simulated".to_owned(),
        place: Arc::new(Here),
        user: None,
        password: None,
        tls: None,
        prefix: "x".to_owned(),
        is_in_cluster: false,
        node: number as u64,
        secret: number as u64 ^ 0x5555,
        health: Arc::default(),
    };
    let broker = Some(Arc::new(broker));
    let mut settings =
        Settings { ping: None, presence, broker, centrifuge: true, ..Settings::default() };
    settings.limits.history = HistoryLimits { messages: keeps, ..HistoryLimits::NONE };
    let hub = Hub::new(settings);
    let hour = Duration::from_secs(3_600);
    let cores = [0, 1].map(|own| {
        let sessions = Sessions::with_uplink(hub.clone(), hub.broker_link());
        let mut core = Core::new(sessions, Limits { idle: 99 * hour, request: 99 * hour }, now);
        core.set_core(own, 2);
        core
    });
    Node { cores, mail: Default::default(), link: None, is_stalled: false }
}

impl World {
    fn new(seed: u64, fault: Fault) -> World {
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let may_keep = !matches!(fault, Fault::KeepsDead | Fault::Silent);
        let keeps = if may_keep && seed % 4 > 1 { 5 } else { 0 };
        let mut world = World {
            random: Random::new(seed),
            now,
            redis: Redis::new(seed.is_multiple_of(2)),
            is_down: false,
            nodes: (0..HUBS)
                .map(|at| node(seed as usize * 1_000 + at + 1, true, keeps, now))
                .collect(),
            members: Vec::new(),
            count: 100,
            keeps,
            fault,
        };
        world.redis.keys.never_expire = fault == Fault::KeepsDead;
        (world.redis.process.run, world.redis.process.now) = (1, 1_000_000);
        world
    }

    fn turns(&mut self, at: usize, all: bool) {
        self.redis.now = Some(self.now.instant);
        let Node { cores, mail, link, is_stalled } = &mut self.nodes[at];
        for own in 0..2 {
            let core = &mut cores[own];
            core.turn(self.now);
            for _ in 0..if all { mail[own].len() } else { self.random.below(4) } {
                mail[own].pop_front().into_iter().for_each(|letter| core.heard(letter));
            }
            if core.due().is_some_and(|due| due <= self.now.instant) {
                core.tick(&());
            }
        }
        let core = &mut cores[0];
        while let Some((conn, _)) = core.next_connect() {
            if self.is_down {
                lose(core, conn);
                continue;
            }
            self.count += 1;
            self.redis.accepts(self.count);
            core.connected(conn);
            *link = Some((conn, self.count));
        }
        if let Some((conn, number)) = *link {
            loop {
                match core.next(conn, &()) {
                    Next::Write { .. } => {
                        let output = core.output(conn).to_vec();
                        core.wrote(conn, output.len());
                        if !*is_stalled {
                            self.redis.receives(number, &output);
                        }
                    }
                    Next::Wait if *is_stalled && core.has(conn) => break,
                    Next::Wait if core.has(conn) => {
                        let most =
                            if all { usize::MAX } else { self.random.magnitude(1, 9_000) as usize };
                        let mut bytes = self.redis.output(number, most);
                        if self.fault == Fault::Silent && all {
                            bytes = without_some_notes(bytes, &mut self.random);
                        }
                        if bytes.is_empty() {
                            break;
                        }
                        core.received(conn, &mut bytes);
                    }
                    _ => {
                        core.closed(conn);
                        self.redis.closes(number);
                        (*link, *is_stalled) = (None, false);
                        break;
                    }
                }
            }
        }
        for own in 0..2 {
            mail[1 - own].extend(cores[own].letters());
        }
    }

    fn cuts(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.is_stalled = false;
        if let Some((conn, number)) = node.link.take() {
            if node.cores[0].has(conn) {
                lose(&mut node.cores[0], conn);
            }
            self.redis.closes(number);
        }
        self.turns(at, false);
    }

    fn suffers(&mut self) {
        let at = self.random.below(HUBS);
        match self.random.weighted(&[5, 4, 3, 2, 2]) {
            0 => self.cuts(at),
            1 => self.nodes[at].is_stalled = self.nodes[at].link.is_some(),
            2 => {
                // It dies, and another one takes its place.
                self.cuts(at);
                self.count += 1;
                self.nodes[at] = node(self.count * 1_000_003, true, self.keeps, self.now);
                self.members.retain(|member| member.hub != at);
            }
            3 => {
                // The broker is restarted, and has lost everything.
                self.is_down = true;
                (0..HUBS).for_each(|at| self.cuts(at));
                self.count += 1;
                self.redis.restarts(self.count as u64, false);
                self.redis.keys = Default::default();
                self.redis.keys.never_expire = self.fault == Fault::KeepsDead;
            }
            _ => self.is_down = false,
        }
    }

    fn joins(&mut self) {
        let (hub, core) = (self.random.below(HUBS), self.random.below(2));
        self.count += 1;
        let (room, name) = (ROOMS[self.random.below(2)], format!("n{}", self.count));
        let cores = &mut self.nodes[hub].cores[core];
        let conn = cores.accept();
        let client = self.random.chance(300).then(|| Watcher::opens(room));
        let path = match &client {
            Some(_) => "/connection/websocket ".to_owned(),
            None => format!("/ws/{room}?name={name} "),
        };
        let opening = String::from_utf8(OPENING.to_vec()).unwrap().replace("/ws ", &path);
        let mut opening = opening.into_bytes();
        let (client, first) = client.unzip();
        first.into_iter().flatten().for_each(|line| opening.extend(masked(&line)));
        cores.received(conn, &mut opening);
        let (bytes, names) = (Vec::new(), BTreeMap::new());
        let (is_open, offset, heard) = (false, None, Vec::new());
        let member = Member {
            hub,
            core,
            conn,
            room,
            name,
            bytes,
            is_open,
            count: 0,
            names,
            offset,
            client,
            heard,
        };
        self.members.push(member);
        self.turns(hub, false);
    }

    fn leaves(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let at = self.random.below(self.members.len());
        let Member { hub, core, conn, .. } = self.members.swap_remove(at);
        lose(&mut self.nodes[hub].cores[core], conn);
        self.turns(hub, false);
    }

    /// A member sends a message.
    fn says(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let at = self.random.below(self.members.len());
        let Member { hub, core, conn, ref client, .. } = self.members[at];
        if client.is_none() {
            let mut bytes = masked(r#"{"type":"broadcast","payload":1}"#);
            self.nodes[hub].cores[core].received(conn, &mut bytes);
            self.turns(hub, false);
        }
    }

    fn reads(&mut self) -> Result<(), String> {
        for member in &mut self.members {
            let core = &mut self.nodes[member.hub].cores[member.core];
            loop {
                match core.next(member.conn, &()) {
                    Next::Write { .. } => {
                        let length = core.output(member.conn).len();
                        member.bytes.extend_from_slice(core.output(member.conn));
                        core.wrote(member.conn, length);
                    }
                    Next::Wait => break,
                    closed => return Err(format!("{} is closed: {closed:?}", member.name)),
                }
            }
            let mut lines = member.lines();
            let Some(client) = &mut member.client else {
                lines.iter().try_for_each(|line| member.hears(line))?;
                continue;
            };
            self.fault.rewrites(&mut lines, &mut self.random);
            for line in lines {
                let heard = client.hears(&line);
                let why = |why| format!("{} at {}: {why}", client.own, member.hub);
                for command in heard.map_err(why)? {
                    core.received(member.conn, &mut masked(&command));
                }
            }
        }
        Ok(())
    }

    fn passes(&mut self, millis: u64) {
        self.now.instant += Duration::from_millis(millis);
        self.redis.process.now += millis;
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.weighted(&[20, 18, 50, 12]) {
            0 => self.joins(),
            1 => self.leaves(),
            2 if self.keeps > 0 && self.random.chance(400) => self.says(),
            2 => {
                let millis = self.random.magnitude(1, 300);
                self.passes(millis);
                let all = self.random.chance(300);
                (0..HUBS).for_each(|at| self.turns(at, all));
                self.reads()?;
            }
            _ => self.suffers(),
        }
        Ok(())
    }

    fn settles(&mut self) -> Result<(), String> {
        if self.fault == Fault::Silent {
            self.fault = Fault::None;
        }
        self.is_down = false;
        let stalled: Vec<usize> = (0..HUBS).filter(|at| self.nodes[*at].is_stalled).collect();
        stalled.into_iter().for_each(|at| self.cuts(at));
        let more = if self.fault == Fault::KeepsDead { UNHEARD } else { Duration::ZERO };
        let end = self.now.instant + QUIET + more;
        while self.now.instant < end {
            self.passes(50);
            (0..2 * HUBS).for_each(|at| self.turns(at % HUBS, true));
            self.reads()?;
        }
        for member in &self.members {
            let all = self.members.iter().filter(|other| other.room == member.room);
            if let Some(client) = &member.client {
                client.ends(&all.map(|other| other.is_called().to_owned()).collect())?;
                continue;
            }
            let count = all.clone().count() as u64;
            let named = all.filter(|other| other.client.is_none());
            let truth: BTreeMap<String, i64> = named.map(|other| (other.name.clone(), 1)).collect();
            let mut known = member.names.clone();
            known.retain(|_, times| *times != 0);
            if self.keeps > 0 && member.offset.is_none() {
                return Err(format!("{} at {} waits for the history", member.name, member.hub));
            }
            if member.count != count || known != truth {
                let Member { name, hub, count, .. } = member;
                return Err(format!("{name} at {hub} knows {count}, {known:?} of {truth:?}"));
            }
        }
        self.have_one_order()?;
        if !self.redis.keys.all_expire() {
            return Err("the hash of a room would stay for ever".to_owned());
        }
        Ok(())
    }
}

impl Member {
    /// What it is called in the lists of clients.
    fn is_called(&self) -> &str {
        self.client.as_ref().map_or(&self.name, |client| &client.own)
    }

    /// The texts that have arrived completely.
    fn lines(&mut self) -> Vec<String> {
        if !self.is_open {
            let Some(head) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Vec::new();
            };
            self.bytes.drain(..head + 4);
            self.is_open = true;
        }
        let (mut at, mut lines) = (0, Vec::new());
        while let Some((text, length)) = frame(&self.bytes[at..]) {
            at += length;
            lines.push(text.to_owned());
        }
        self.bytes.drain(..at);
        lines
    }

    fn hears(&mut self, text: &str) -> Result<(), String> {
        let heard: Value = serde_json::from_str(text).unwrap();
        match (heard["type"].as_str().unwrap(), heard["event"].as_str()) {
            ("gap" | "position", _) => {
                self.offset = heard["offset"].as_u64();
                return Ok(());
            }
            ("broadcast", _) => {
                let next = self.offset.map(|offset| offset + 1);
                if next.is_none() || heard["offset"].as_u64() != next {
                    return Err(format!("{} gets {text} after {:?}", self.name, self.offset));
                }
                self.offset = next;
                return Ok(());
            }
            ("broadcastResult" | "error", _) => return Ok(()),
            ("presence", Some("here")) => {
                let names = heard["members"].as_array().unwrap().iter();
                self.names = names.map(|name| (name.as_str().unwrap().to_owned(), 1)).collect();
                self.heard.clear();
            }
            ("presence", Some(event)) => {
                if self.names.is_empty() {
                    return Err(format!("{} gets {text} before its list", self.name));
                }
                // Clients have no names.
                if let Some(name) = heard["member"].as_str() {
                    let times = self.names.entry(name.to_owned()).or_default();
                    *times += if event == "join" { 1 } else { -1 };
                    if !(0..2).contains(times) {
                        return Err(format!("{} gets {text} twice", self.name));
                    }
                    self.heard.push((event == "join", name.to_owned()));
                }
            }
            _ => return Err(format!("unexpected: {text}")),
        }
        self.count = heard["count"].as_u64().unwrap();
        Ok(())
    }
}

impl World {
    /// Members and clients of a room at a hub hear the same in the same order: who came later, the end of it.
    fn have_one_order(&self) -> Result<(), String> {
        for one in &self.members {
            let is_beside = |other: &&Member| (other.hub, other.room) == (one.hub, one.room);
            for other in self.members.iter().filter(is_beside) {
                let [all, some] = [one, other].map(|member| {
                    member.client.as_ref().map_or(&member.heard, |client| &client.heard)
                });
                if all.len() >= some.len() && !all.ends_with(some) {
                    let [one, other] = [one, other].map(Member::is_called);
                    return Err(format!("{one} has heard {all:?}, and {other} {some:?}"));
                }
            }
        }
        Ok(())
    }
}

impl Fault {
    /// Changes what a client gets.
    fn rewrites(self, lines: &mut Vec<String>, random: &mut Random) {
        let is_push = |line: &String| {
            line.contains("\"join\":{\"info\"") || line.contains("\"leave\":{\"info\"")
        };
        let Some(at) = lines.iter().position(is_push).filter(|_| random.chance(500)) else {
            return;
        };
        match self {
            Fault::LosesPush => drop(lines.remove(at)),
            Fault::DoublesPush => lines.insert(at, lines[at].clone()),
            Fault::DelaysPush if lines.len() > at + 1 => lines.swap(at, at + 1),
            _ => {}
        }
    }
}

/// The frame of a text of a client.
fn masked(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
    bytes
}

/// A note of the broker, if only replies follow it, is lost now and then. These arrive: a connection without one of its
/// replies would be another fault, which no broker has, and each answer would be taken for that of the next question.
fn without_some_notes(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    const NOTE: &[u8] = b">3\r\n$7\r\nmessage\r\n$10\r\nx:presence\r\n";
    let is_note =
        bytes.starts_with(NOTE) && bytes.windows(2).filter(|two| two == b">3").count() == 1;
    if is_note && random.chance(700) {
        let note = Replies::default().next(&bytes).expect("it is well-formed");
        bytes.drain(..note.bytes);
    }
    bytes
}

/// A connection is lost.
fn lose(core: &mut Core<Joined>, conn: Conn) {
    core.failed(conn);
    while core.has(conn) && core.next(conn, &()) != Next::Close {}
    core.closed(conn);
}

/// Plays a history.
fn play(fault: Fault) -> impl Fn(u64, &mut ()) -> Result<(), String> + Sync {
    move |seed, (): &mut ()| {
        // Nobody asks how many allocations these are, and counting them takes a twentieth of the time.
        let mut ends = Ok(());
        allocation_counter::opt_out(|| {
            let mut world = World::new(seed, fault);
            ends = (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles());
        });
        ends
    }
}

/// Plays many histories.
fn play_all(fault: Fault, every_change: u64) {
    histories::check("SIMULATION_SEED", by_tier(every_change, 100_000), play(fault));
}

#[test]
fn members_know_who_is_in_their_room_at_all_hubs() {
    play_all(Fault::None, 60);
}

#[test]
fn what_clients_do_not_get_once_and_in_order_is_found() {
    for fault in [Fault::LosesPush, Fault::DoublesPush, Fault::DelaysPush] {
        histories::find(fault, by_tier(60, 10_000), play(fault));
    }
}

/// As if the clock of the broker had been set back.
#[test]
fn members_of_a_dead_hub_leave_although_its_key_stays() {
    play_all(Fault::KeepsDead, 30);
}

#[test]
fn notes_that_are_lost_silently_are_noticed() {
    play_all(Fault::Silent, 30);
}

#[test]
fn a_hub_without_presence_keeps_nothing_at_the_broker() {
    let mut world = World::new(1, Fault::None);
    world.nodes = (0..HUBS).map(|at| node(at + 1, false, 0, world.now)).collect();
    (0..6).for_each(|_| world.joins());
    for _ in 0..100 {
        world.now.instant += Duration::from_millis(100);
        (0..HUBS).for_each(|at| world.turns(at, true));
    }
    world.reads().unwrap();
    assert!(world.redis.keys.is_empty());
    assert!(world.members.iter().all(|member| member.count == 0), "nobody is notified");
}

#[test]
fn a_new_member_that_reads_slowly_gets_its_list_whatever_the_policy() {
    for policy in [Policy::Skip, Policy::Conflate] {
        let settings = keeping(0);
        let backlog = Bounds { pushes: 4, policy, ..settings.backlog };
        let settings = Settings { presence: true, backlog, ..settings };
        let mut world = OneHub::with("slow", false, settings);
        world.passes(3_000);
        world.texts();
        let payload = format!("\"{}\"", "x".repeat(20_000));
        // At different moments of the 100 ms between two looks at new members.
        for _ in 0..5 {
            world.passes(20);
            let late = world.joins("/ws?name=late");
            // The busy room fills what may be queued for it before its list comes.
            for _ in 0..10 {
                world.says(world.member, &payload);
                world.passes(1);
                world.texts();
            }
            world.passes(1_000);
            let texts = world.texts_of(late);
            let lists = texts.iter().filter(|text| text.contains("\"here\"")).count();
            assert!(lists == 1 && texts.len() < 10, "{policy:?}: {lists} of {}", texts.len());
            world.leaves(late);
        }
    }
}

#[test]
fn a_message_does_not_wait_for_what_is_written_of_all_rooms() {
    const ROOMS: usize = 12;
    let mut world = OneHub::with("turns", false, Settings { presence: true, ..keeping(0) });
    world.passes(3_000);
    // What is stored of each room is longer than what may be unwritten.
    let name = "%22".repeat(120);
    for room in 0..ROOMS {
        for _ in 0..300 {
            world.joins(&format!("/ws/r{room}?name={name}"));
        }
    }
    world.is_blocked = true;
    world.passes(150);
    world.says(world.member, "7");
    (world.is_blocked, world.written) = (false, Vec::new());
    world.passes(100);
    let written = String::from_utf8_lossy(&world.written);
    let at = |text: &str| written.match_indices(text).map(|(at, _)| at).collect::<Vec<_>>();
    let (stored, published) = (at("HSET"), at("x:room"));
    assert_eq!((stored.len(), published.len()), (ROOMS, 1));
    assert!(published[0] < stored[2], "{published:?} {stored:?}");
}

#[test]
fn questions_about_a_room_at_once_get_the_same_answer() {
    let mut world = OneHub::with("batch", false, Settings { presence: true, ..keeping(0) });
    world.passes(3_000);
    // Another hub lives, and has a member.
    let value = r#"{"version":1,"count":1,"next":2,"members":[[1,"ann",null,null]]}"#;
    let field = "0000000000000009.1";
    let alive = format!("x:alive:{field}");
    for command in
        [&["SET", &alive, "1", "PX", "99000"][..], &["HSET", "x:red:3:members", field, value][..]]
    {
        let command: Vec<&[u8]> = command.iter().map(|part| part.as_bytes()).collect();
        world.servers[0].keys.carries_out(&command, world.now.instant, &mut Vec::new());
    }
    let red = serde_json::json!({"channel": "red"});
    let batch = serde_json::json!({"commands": [
        {"presence": red}, {"presence_stats": red}, {"presence_stats": red},
    ]});
    let backend = world.calls("batch", &batch);
    world.passes(100);
    let answer = world.answer(backend).expect("it is known");
    let replies = &answer["replies"];
    assert_eq!(replies[0]["presence"]["presence"].as_object().unwrap().len(), 1, "{answer}");
    assert_eq!(replies[1]["presence_stats"]["num_clients"], 1, "{answer}");
    assert_eq!(replies[2]["presence_stats"]["num_clients"], 1, "{answer}");
}
