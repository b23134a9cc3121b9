//! Announcements of hubs that have moved to another server: a gap for the members of the others, but not more than one in
//! a second.

use super::redis::Redis;
use crate::{history::simulation::frame, hub::OPENING};
use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions};
use regatta_service::hub::{Broker, BrokerLink, Hub, Place, Settings};
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
struct At(AtomicU16);

impl Place for At {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 1 + self.0.load(SeqCst)))])
    }
}

/// A hub with a member, and two servers.
struct World {
    name: &'static str,
    core: Core<Sessions<Hub, BrokerLink>>,
    now: Now,
    place: Arc<At>,
    servers: [Redis; 2],
    /// The connection of the hub, its server, and its number there.
    link: Option<(Conn, usize, usize)>,
    count: usize,
    /// What the hub has written on all connections.
    written: Vec<u8>,
    /// Announcements of the hub do not reach the broker.
    are_lost: bool,
    member: Conn,
    got: Vec<u8>,
}

impl World {
    /// One whose hub is connected, and has been for longer than a second.
    fn new(name: &'static str) -> World {
        World::of(name, false)
    }

    fn of(name: &'static str, is_in_cluster: bool) -> World {
        let place = Arc::new(At::default());
        let broker = Broker {
            name: name.to_owned(),
            place: Arc::clone(&place) as Arc<dyn Place>,
            user: None,
            password: None,
            tls: None,
            prefix: "x".to_owned(),
            is_in_cluster,
            node: 1,
            secret: 2,
            health: Arc::default(),
        };
        let log = |line: &str| PRINTED.lock().unwrap().push(line.to_owned());
        let broker = Some(Arc::new(broker));
        let hub = Hub::new(Settings { ping: None, broker, log, ..Settings::default() });
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let sessions = Sessions::with_uplink(hub.clone(), hub.broker_link());
        let hour = Duration::from_secs(3_600);
        let mut core = Core::new(sessions, Limits { idle: hour, request: hour }, now);
        let member = core.accept();
        core.received(member, &mut OPENING.to_vec());
        let server = || if is_in_cluster { Redis::in_cluster() } else { Redis::new(false) };
        let servers = [server(), server()];
        let (link, written, got) = (None, Vec::new(), Vec::new());
        let (count, are_lost) = (STRANGER, false);
        let mut world =
            World { name, core, now, place, servers, link, count, written, are_lost, member, got };
        world.servers.iter_mut().for_each(|server| server.accepts(STRANGER));
        world.passes(3000);
        assert_eq!(world.gaps(), 1, "it has connected");
        world
    }

    /// So many milliseconds pass.
    fn passes(&mut self, millis: u32) {
        for _ in 0..millis {
            self.now.instant += MILLISECOND;
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
        let Some((conn, server, number)) = self.link else { return };
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
    fn cuts(&mut self) {
        let (conn, server, number) = self.link.take().expect("it is connected");
        self.core.failed(conn);
        drain(&mut self.core, conn, &mut self.written);
        self.servers[server].closes(number);
    }

    /// Somebody publishes that a hub has moved.
    fn publishes(&mut self, server: usize, note: &str) {
        self.publishes_in(server, "x:moved", note.as_bytes());
    }

    fn publishes_in(&mut self, server: usize, channel: &str, text: &[u8]) {
        let (size, length) = (channel.len(), text.len());
        let mut command =
            format!("*3\r\n$7\r\nPUBLISH\r\n${size}\r\n{channel}\r\n${length}\r\n").into_bytes();
        command.extend_from_slice(text);
        command.extend_from_slice(b"\r\n");
        self.servers[server].receives(STRANGER, &command);
    }

    /// How many gaps the member has got since the last question, and nothing else.
    fn gaps(&mut self) -> usize {
        let texts = self.texts();
        assert!(
            texts.iter().all(|text| text == r#"{"type":"gap","recovered":false}"#),
            "{texts:?}"
        );
        texts.len()
    }

    /// What the member has got since the last question.
    fn texts(&mut self) -> Vec<String> {
        assert!(drain(&mut self.core, self.member, &mut self.got), "it stays");
        if let Some(head) = self.got.windows(4).position(|four| four == b"\r\n\r\n") {
            self.got.drain(..head + 4);
        }
        let (mut at, mut texts) = (0, Vec::new());
        while let Some((text, length)) = frame(&self.got[at..]) {
            texts.push(text.to_owned());
            at += length;
        }
        self.got.clear();
        texts
    }

    /// How many lines of the hub are about others that have moved.
    fn lines(&self) -> usize {
        let line = format!("regatta: broker {}: another hub comes from another server", self.name);
        PRINTED.lock().unwrap().iter().filter(|printed| printed.starts_with(&line)).count()
    }
}

/// The announcements in what a hub has written.
fn announcements(written: &[u8]) -> Vec<String> {
    let written = String::from_utf8_lossy(written);
    let notes = written.split("PUBLISH\r\n$7\r\nx:moved\r\n").skip(1);
    notes.map(|rest| rest.lines().nth(1).unwrap().to_owned()).collect()
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
            Next::Wait if core.has(conn) => return true,
            _ => {
                core.closed(conn);
                return false;
            }
        }
    }
}

#[test]
fn announcements_of_others_cause_at_most_one_gap_in_a_second_and_none_is_lost() {
    let mut world = World::new("notes");
    world.publishes(0, "0000000000000007:1");
    world.passes(1);
    assert_eq!((world.gaps(), world.lines()), (1, 1), "the first one at once");
    // A hub that moves inside the second.
    world.publishes(0, "0000000000000008:1");
    world.passes(900);
    assert_eq!(world.gaps(), 0);
    world.passes(101);
    assert_eq!((world.gaps(), world.lines()), (1, 2), "at the end of the second");
    world.passes(5000);
    assert_eq!(world.gaps(), 0, "once");
    // Somebody publishes as much as he can.
    for _ in 0..5000 {
        (0..10).for_each(|_| world.publishes(0, "1:1"));
        world.passes(1);
    }
    world.passes(1001);
    assert_eq!((world.gaps(), world.lines()), (6, 8));
    assert!(world.link.is_some_and(|(_, _, number)| number == 1), "it was never lost");
}

#[test]
fn the_gap_of_a_new_connection_is_also_that_of_announcements_before_it() {
    let mut world = World::new("new");
    (0..2).for_each(|_| world.publishes(0, "7:1"));
    world.passes(1);
    assert_eq!(world.gaps(), 1);
    world.cuts();
    world.passes(700);
    assert_eq!((world.gaps(), world.lines()), (1, 1), "it is connected again");
    world.passes(3000);
    assert_eq!((world.gaps(), world.lines()), (0, 1));
}

#[test]
fn a_late_announcement_of_an_earlier_connection_does_not_end_the_duty_to_announce() {
    let mut world = World::new("late");
    let count = |world: &World| announcements(&world.written).len();
    assert_eq!(count(&world), 0);
    world.place.0.store(1, SeqCst);
    world.are_lost = true;
    world.cuts();
    while count(&world) == 0 {
        world.passes(1);
    }
    // The broker reads one of an earlier connection now.
    world.publishes(1, "0000000000000002:0");
    world.passes(1);
    world.are_lost = false;
    world.cuts();
    world.passes(900);
    assert_eq!(count(&world), 2, "at the same server, because the first one was lost");
    world.cuts();
    world.passes(900);
    assert_eq!(count(&world), 2, "its second announcement was received");
}

/// A master that was stopped passes on, after a failover, what it had not passed on to its replica.
#[test]
fn a_message_that_comes_again_or_was_overtaken_is_not_delivered() {
    let mut world = World::of("again", true);
    let publishes = |world: &mut World, server, hub: u8, number: u8| {
        let mut message = vec![1, 0, hub, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0];
        message.extend(format!("{hub}{number}").into_bytes());
        // The room without a name.
        world.publishes_in(server, "{x}:room:37", &message);
    };
    for (hub, number) in [(8, 1), (8, 2), (9, 1), (8, 4)] {
        publishes(&mut world, 0, hub, number);
    }
    world.passes(1);
    let payloads = |texts: Vec<String>| {
        let of =
            |text: &String| text.split(r#""payload":"#).nth(1).map(|rest| rest[..2].to_owned());
        texts.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(payloads(world.texts()), ["81", "82", "91", "84"]);
    world.place.0.store(1, SeqCst);
    world.cuts();
    world.passes(900);
    assert_eq!(world.gaps(), 1, "it is at the other server");
    for (hub, number) in [(8, 5), (8, 4), (8, 3), (9, 1), (8, 5), (9, 2)] {
        publishes(&mut world, 1, hub, number);
    }
    world.passes(1);
    assert_eq!(payloads(world.texts()), ["85", "92"]);
}
