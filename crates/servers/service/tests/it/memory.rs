//! The memory of the hub without sockets: members of each kind that make it hold as much as they can, and
//! an honest one beside them.

use crate::hub::OPENING;
use allocation_counter::measure;
use regatta_engine::{Bounds, Conn, Core, Limits, Memory, Next, Now, Sessions};
use regatta_proto::websocket::{CloseCode, Deflate, DeflateSettings, Frame, Role};
use regatta_service::hub::{Hub, Settings};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

const LIMIT: usize = 8 << 20;
/// What a core keeps of output buffers that no connection uses.
const SPARE: usize = 8 << 20;
/// What each connection may have beyond the limit: what is not counted, and what one read adds.
const EACH: usize = 96 << 10;
const LONGEST: usize = 256 << 10;

struct World {
    core: Core<Sessions<Hub>>,
    memory: Arc<Memory>,
    settings: Settings,
    /// Output with the driver, if its writes complete later.
    taken: Option<HashMap<Conn, Vec<u8>>>,
    at_once: f64,
}

impl World {
    fn new() -> World {
        World::with(LIMIT, Settings { longest: LONGEST, ..Settings::default() })
    }

    fn with(limit: usize, usual: Settings) -> World {
        let memory = Arc::new(Memory::new(limit));
        let backlog = Bounds { memory: Arc::clone(&memory), ..usual.backlog };
        let settings = Settings { backlog, ..usual };
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let core = Core::new(Sessions::new(Hub::new(settings.clone())), Limits::default(), now);
        World { core, memory, settings, taken: None, at_once: 0.0 }
    }

    /// With a driver whose writes complete later, except this share of each.
    fn completing(self, at_once: f64) -> World {
        World { taken: Some(HashMap::new()), at_once, ..self }
    }

    fn closed_for_memory(&self) -> usize {
        self.settings.backlog.counts.starved.get()
    }

    fn member(&mut self, room: &str) -> Conn {
        self.member_with(room, "")
    }

    fn member_with(&mut self, room: &str, fields: &str) -> Conn {
        let conn = self.core.accept();
        let opening = String::from_utf8_lossy(OPENING).replace("/ws", &format!("/ws/{room}"));
        let opening = opening.replace("Host: x\r\n", &format!("Host: x\r\n{fields}"));
        self.core.received(conn, &mut opening.into_bytes());
        assert!(self.read(conn).starts_with(b"HTTP/1.1 101"));
        conn
    }

    /// Sends bytes of a member that does not read.
    fn sends(&mut self, conn: Conn, bytes: &[u8]) {
        for part in bytes.chunks(16 << 10) {
            if self.core.has(conn) && self.core.wants_read(conn) {
                self.core.received(conn, &mut part.to_vec());
            }
            self.serve(conn);
            while let Some(changed) = self.core.next_changed() {
                self.serve(changed);
            }
        }
    }

    /// Does for a member that does not read what its driver does.
    fn serve(&mut self, conn: Conn) {
        loop {
            match (self.core.next(conn, &()), &mut self.taken) {
                (Next::Write { .. }, Some(taken)) => {
                    let length = self.core.output(conn).len();
                    self.core.wrote(conn, (length as f64 * self.at_once) as usize);
                    taken.insert(conn, self.core.take_output(conn));
                }
                (Next::ShutdownWrite, _) => self.core.shutdown_completed(conn, true),
                (Next::Close, _) => break self.gone(conn),
                (Next::Write { .. }, None) | (Next::Wait, _) => break self.core.settle(conn),
            }
        }
    }

    /// Returns all that a member has not read yet.
    fn read(&mut self, conn: Conn) -> Vec<u8> {
        let mut got = Vec::new();
        loop {
            if let Some(output) = self.taken.as_mut().and_then(|taken| taken.remove(&conn)) {
                got.extend_from_slice(&output);
                self.core.completed(conn, output.len(), Some(output));
            }
            match (self.core.next(conn, &()), &mut self.taken) {
                (Next::Write { .. }, Some(taken)) => {
                    taken.insert(conn, self.core.take_output(conn));
                }
                (Next::Write { .. }, None) => {
                    let output = self.core.output(conn).to_vec();
                    self.core.wrote(conn, output.len());
                    got.extend(output);
                }
                _ => break,
            }
        }
        self.core.settle(conn);
        got
    }

    fn passes(&mut self, time: Duration) {
        let Now { instant, unix_s } = self.core.now();
        self.core.turn(Now { instant: instant + time, unix_s });
        self.core.tick(&());
        while let Some(changed) = self.core.next_changed() {
            self.serve(changed);
        }
    }

    fn gone(&mut self, conn: Conn) {
        self.core.closed(conn);
        if let Some(taken) = &mut self.taken {
            taken.remove(&conn);
        }
    }

    fn closes(&mut self, conn: Conn) {
        if self.core.has(conn) {
            self.core.failed(conn);
            let _ = self.core.next(conn, &());
            self.gone(conn);
        }
    }

    /// Lets members do something. Checks the limit after each, and an honest member at the end.
    fn withstands(mut self, what: &str, mut attack: impl FnMut(&mut World, usize) -> Vec<Conn>) {
        let honest = self.member("honest");
        let limit = self.memory.limit();
        let (mut attackers, mut used) = (Vec::new(), 0);
        for number in 0..150 {
            let counted = measure(|| attackers.extend(attack(&mut self, number)));
            used += counted.bytes_current;
            let held = self.memory.held();
            assert!(held <= limit + EACH * (number + 1), "{what}: {held} bytes after {number}");
            // A buffer that grows may be twice as long as what is in it.
            let most = limit + SPARE + 2 * EACH * attackers.len();
            assert!(used <= most as i64, "{what}: {used} of {most} bytes are used");
        }
        assert!(self.closed_for_memory() > 0, "{what}: none was closed of {}", attackers.len());
        let long = "x".repeat(1_000);
        self.core.received(honest, &mut text("echo", &long));
        let got = self.read(honest);
        assert!(
            got.ends_with(format!("\"{long}\"}}").as_bytes()),
            "{what}: {}",
            got.escape_ascii()
        );
        for conn in attackers {
            self.closes(conn);
        }
        self.core.letters().for_each(drop);
        assert_eq!(self.memory.held(), 0, "{what}: all is returned");
    }
}

fn text(kind: &str, payload: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let text = format!(r#"{{"type":"{kind}","payload":"{payload}"}}"#);
    Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut out);
    out
}

#[test]
fn incomplete_messages_are_limited() {
    let message = text("echo", &"x".repeat(200_000));
    World::new().withstands("incomplete messages", |world, number| {
        let conn = world.member(&format!("room-{number}"));
        world.sends(conn, &message[..190_000]);
        vec![conn]
    });
}

#[test]
fn unread_replies_are_limited() {
    let echo = text("echo", &"x".repeat(15_000));
    World::new().withstands("unread replies", |world, number| {
        let conn = world.member(&format!("room-{number}"));
        world.sends(conn, &echo.repeat(10));
        vec![conn]
    });
}

#[test]
fn broadcasts_that_wait_for_slow_members_are_limited() {
    let broadcast = text("broadcast", &"x".repeat(20_000));
    World::new().withstands("backlogs", |world, number| {
        let room = format!("room-{number}");
        let (deaf, sender) = (world.member(&room), world.member(&room));
        for _ in 0..20 {
            world.sends(sender, &broadcast);
            world.read(sender);
        }
        vec![deaf, sender]
    });
}

#[test]
fn broadcasts_without_a_result_are_limited() {
    let broadcast = text("broadcast", &"x".repeat(20_000));
    let mut world = World::new();
    // The other core does not take its letters.
    world.core.set_core(0, 2);
    world.withstands("results", |world, number| {
        let sender = world.member(&format!("room-{number}"));
        for _ in 0..10 {
            world.sends(sender, &broadcast);
            world.read(sender);
        }
        vec![sender]
    });
}

#[test]
fn replies_that_are_discarded_use_no_memory() {
    // Its copy, and its payload until its result is known.
    let broadcast = text("broadcast", &"x".repeat(1_000_000));
    let usual = Settings { longest: 1 << 20, ..Settings::default() };
    World::with(LIMIT, usual).withstands("discarded replies", |world, number| {
        let conn = world.member(&format!("room-{number}"));
        // While some output is pending, it is still read.
        world.sends(conn, &text("echo", "x"));
        world.sends(conn, &broadcast);
        vec![conn]
    });
}

#[test]
fn output_with_the_driver_is_limited() {
    let broadcast = text("broadcast", &"x".repeat(1_000_000));
    for at_once in [0.0, 0.95] {
        let usual = Settings { longest: 1 << 20, ..Settings::default() };
        let world = World::with(4 * LIMIT, usual).completing(at_once);
        world.withstands("output with the driver", |world, number| {
            let room = format!("room-{number}");
            let (deaf, sender) = (world.member(&room), world.member(&room));
            for _ in 0..2 {
                world.sends(sender, &broadcast);
                world.read(sender);
            }
            vec![deaf, sender]
        });
    }
}

#[test]
fn broadcasts_do_not_extend_the_time_of_a_message() {
    let limit = Limits::default().request;
    for long in [20_000, 100_000] {
        let mut world = World::new();
        let (slow, sender) = (world.member("room"), world.member("room"));
        world.sends(slow, &text("echo", "x")[..20]);
        for passed in 1..=3 {
            assert!(world.core.has(slow), "{long}: after {passed} times 0.4 of the limit");
            world.passes(limit.mul_f64(0.4));
            world.sends(sender, &text("broadcast", &"x".repeat(long)));
            assert!(world.read(sender).len() > long);
            assert!(passed == 3 || world.read(slow).len() > long);
        }
        assert!(!world.core.has(slow), "{long}");
    }
}

#[test]
fn a_slow_member_with_the_last_broadcasts_is_disconnected_when_memory_is_scarce() {
    let usual = Settings { longest: LONGEST, ..Settings::default() };
    let backlog = Bounds { bytes: usize::MAX, ..usual.backlog };
    let mut world = World::with(LIMIT, Settings { backlog, ..usual });
    let (deaf, sender) = (world.member("room"), world.member("room"));
    for _ in 0..LIMIT / 200_000 {
        world.sends(sender, &text("broadcast", &"x".repeat(200_000)));
        world.read(sender);
    }
    assert_eq!(world.closed_for_memory(), 1);
    assert!(!world.core.has(deaf) && world.memory.held() == 0, "{:?}", world.memory);
}

/// A client that sends compressed messages and gets their replies uncompressed.
#[test]
fn messages_that_arrive_together_are_handled_only_while_there_is_room() {
    for kind in ["echo", "broadcast"] {
        let usual = Settings { longest: 1 << 20, deflate: true, ..Settings::default() };
        let mut world = World::with(LIMIT, usual);
        let offer = "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=9\r\n";
        let conn = world.member_with("room", offer);
        let message = format!(r#"{{"type":"{kind}","payload":"{}"}}"#, "x".repeat(1_000_000));
        let settings = DeflateSettings { client_no_context_takeover: true, ..Default::default() };
        let (mut payload, mut frame) = (Vec::new(), Vec::new());
        Deflate::new(Role::Server, settings).message(message.as_bytes(), &mut payload);
        let short = Frame { compressed: true, ..Frame::text(&payload) };
        short.write_masked([1, 2, 3, 4], &mut frame);
        let counted = measure(|| world.core.received(conn, &mut frame.repeat(32)));
        assert!(counted.bytes_max <= 2 * LIMIT as u64, "{kind}: {counted:?}");
        assert_eq!(world.closed_for_memory(), 1, "{kind}");
        assert!(world.memory.held() <= LIMIT, "{kind}: {:?}", world.memory);
    }
}

#[test]
fn replies_over_http_do_not_count_once_they_are_read() {
    let mut world = World::new();
    let conn = world.core.accept();
    let request = b"GET /none HTTP/1.1\r\nHost:\r\n\r\n";
    world.core.received(conn, &mut request.repeat(500));
    assert!(world.memory.held() > 16 << 10, "{:?}", world.memory);
    let got = world.read(conn);
    assert!(got.len() > 16 << 10 && world.memory.held() == 0, "{:?}", world.memory);
}

#[test]
fn a_member_without_room_is_closed_with_1013_and_another_takes_its_place() {
    let mut world = World::new();
    let message = text("echo", &"x".repeat(200_000));
    let mut all: Vec<Conn> = (0..60).map(|number| world.member(&format!("{number}"))).collect();
    for conn in &all {
        world.sends(*conn, &message[..190_000]);
    }
    let closed = world.closed_for_memory();
    assert!((5..60).contains(&closed), "{closed}");
    let last = all.pop().expect("60");
    let code = CloseCode::TRY_AGAIN_LATER.0.to_be_bytes();
    let got = world.read(last);
    assert!(got.windows(2).any(|two| two == code), "{}", got.escape_ascii());
    for conn in all.into_iter().chain([last]) {
        world.closes(conn);
    }
    let next = world.member("next");
    world.core.received(next, &mut message.clone());
    assert!(world.read(next).len() > 200_000);
    assert_eq!(world.memory.held(), 0, "its message is answered");
}

/// The copies of all members together exceed the limit, but each is made when it is written.
#[test]
fn a_large_broadcast_reaches_all_members_of_a_large_room_that_read() {
    let mut world = World::new();
    let all: Vec<Conn> = (0..100).map(|_| world.member("room")).collect();
    let broadcast = text("broadcast", &"x".repeat(200_000));
    for round in 0..3 {
        world.core.received(all[0], &mut broadcast.clone());
        assert!(world.memory.held() <= LIMIT, "{round}: {:?}", world.memory);
        for conn in &all {
            let got = world.read(*conn).len();
            assert!(got > 200_000, "{round}: {got} bytes");
        }
        assert_eq!((world.closed_for_memory(), world.memory.held()), (0, 0), "{round}");
    }
}
