//! Seeded simulations: two cores, letters that are late, sockets that accept little, clients that come back.

use super::judge::{Judge, Truth};
use crate::hub::OPENING;
use regatta_engine::{Conn, Core, Limits, Next, Now, Sessions, simulator::Random};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{Api, HistoryLimits, Hub, Settings};
use regatta_testkit::{
    by_tier,
    histories::{self, Counts},
};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

type Letter = <Sessions<Hub> as regatta_engine::Engine>::Letter;

/// The key of the API.
pub const KEY: &str = "a-key-of-a-backend";
const CLIENTS: usize = 5;
const STEPS: usize = 150;
const TTL: Duration = Duration::from_secs(60);

/// A connection of a client.
struct Link {
    core: usize,
    conn: Conn,
    /// What it has received and not parsed yet.
    bytes: Vec<u8>,
    /// The reply to the upgrade has arrived.
    is_open: bool,
}

struct Client {
    judge: Judge,
    link: Option<Link>,
    sent: usize,
}

/// What may happen.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// Letters get lost.
    letters: bool,
    /// Time passes, so that messages become too old.
    time: bool,
    /// There is little memory.
    memory: bool,
}

struct World {
    random: Random,
    now: Now,
    cores: [Core<Sessions<Hub>>; 2],
    /// Letters on their way to each core.
    mail: [VecDeque<Letter>; 2],
    clients: Vec<Client>,
    truth: Truth,
    faults: Faults,
    name: String,
}

impl World {
    fn new(seed: u64, faults: Faults) -> World {
        let mut random = Random::new(seed);
        let messages = random.magnitude(1, 60) as usize;
        let mut settings = Settings { ping: None, ..Settings::default() };
        settings.api = Some(Arc::new(Api::new(KEY)));
        settings.limits.history = HistoryLimits { messages, time: TTL };
        if faults.memory {
            settings.backlog.memory = Arc::new(regatta_engine::Memory::new(2 << 20));
        }
        let hub = Hub::new(settings);
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let hour = Duration::from_secs(3_600);
        let limits = Limits { idle: 99 * hour, request: 99 * hour };
        let cores = [0, 1].map(|own| {
            let mut core = Core::new(Sessions::new(hub.clone()), limits, now);
            core.set_core(own, 2);
            core
        });
        let client = |_| Client { judge: Judge::default(), link: None, sent: 0 };
        let kept = (!faults.time && !faults.memory).then_some(messages as u64);
        World {
            random,
            now,
            cores,
            mail: Default::default(),
            clients: (0..CLIENTS).map(client).collect(),
            truth: Truth { kept, ..Truth::default() },
            faults,
            name: format!("history {seed}"),
        }
    }

    fn joins(&mut self, who: usize) {
        let core = self.random.below(2);
        let names = self.random.chance(900);
        let client = &mut self.clients[who];
        client.judge.joins(names);
        let conn = self.cores[core].accept();
        let query = client.judge.asked.as_ref();
        let query = query.map(|(epoch, offset)| format!("?epoch={epoch}&offset={offset}"));
        let opening = String::from_utf8(OPENING.to_vec()).unwrap();
        let opening = opening.replace("/ws ", &format!("/ws{} ", query.unwrap_or_default()));
        client.link = Some(Link { core, conn, bytes: Vec::new(), is_open: false });
        self.cores[core].received(conn, &mut opening.into_bytes());
        self.collects();
    }

    /// The connection of a client is lost, with all that it has not received.
    fn loses(&mut self, who: usize) {
        let Some(Link { core, conn, .. }) = self.clients[who].link.take() else { return };
        self.cores[core].failed(conn);
        while self.cores[core].next(conn, &()) != Next::Close {}
        self.cores[core].closed(conn);
        self.collects();
    }

    fn broadcasts(&mut self, who: usize) {
        let long = self.random.chance(300);
        let padding =
            "x".repeat(if long { self.random.between(5_000, 40_000) as usize } else { 1 });
        let client = &mut self.clients[who];
        let Some(Link { core, conn, is_open: true, .. }) = client.link else { return };
        if !self.cores[core].wants_read(conn) {
            return;
        }
        let payload = format!(r#"[{who},{},"{padding}"]"#, client.sent);
        client.sent += 1;
        let text = format!(r#"{{"type":"broadcast","payload":{payload}}}"#);
        client.judge.own.push(payload);
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        self.truth.published += 1;
        self.cores[core].received(conn, &mut bytes);
        self.collects();
    }

    fn publishes(&mut self) {
        let core = self.random.below(2);
        let conn = self.cores[core].accept();
        self.truth.published += 1;
        let body = format!(r#"{{"channel":"","data":{}}}"#, self.truth.published);
        let mut request = format!(
            "POST /api/publish HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: {KEY}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes();
        self.cores[core].received(conn, &mut request);
        let mut reply = Vec::new();
        while let Next::Write { .. } = self.cores[core].next(conn, &()) {
            let length = self.cores[core].output(conn).len();
            reply.extend_from_slice(self.cores[core].output(conn));
            self.cores[core].wrote(conn, length);
        }
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.contains(r#"{"result":{"offset":"#), "{}: {reply}", self.name);
        self.cores[core].failed(conn);
        while self.cores[core].next(conn, &()) != Next::Close {}
        self.cores[core].closed(conn);
        self.collects();
    }

    /// Takes the letters of the cores.
    fn collects(&mut self) {
        for from in 0..2 {
            for letter in self.cores[from].letters() {
                self.mail[1 - from].push_back(letter);
            }
        }
    }

    /// A letter reaches a core, or gets lost.
    fn carries(&mut self, to: usize, may_lose: bool) {
        let Some(letter) = self.mail[to].pop_front() else { return };
        if !(may_lose && self.faults.letters && self.random.chance(300)) {
            self.cores[to].heard(letter);
        }
        self.collects();
    }

    /// The socket of a client accepts at most so many bytes. Returns whether it has more.
    fn reads(&mut self, who: usize, mut most: usize) -> Result<bool, String> {
        let Client { judge, link, .. } = &mut self.clients[who];
        let Some(Link { core, conn, bytes, is_open }) = link else { return Ok(false) };
        let core = &mut self.cores[*core];
        let has_more = loop {
            match core.next(*conn, &()) {
                Next::Write { .. } if most > 0 => {
                    let output = core.output(*conn);
                    let taken = output.len().min(most);
                    bytes.extend_from_slice(&output[..taken]);
                    core.wrote(*conn, taken);
                    most -= taken;
                }
                Next::Write { .. } => break true,
                Next::Wait => break false,
                Next::Close | Next::ShutdownWrite if self.faults.memory => {
                    self.loses(who);
                    return Ok(false);
                }
                closed => return Err(format!("client {who} is closed: {closed:?}")),
            }
        };
        if !*is_open {
            let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Ok(has_more);
            };
            bytes.drain(..head + 4);
            *is_open = true;
        }
        let mut at = 0;
        while let Some((text, length)) = frame(&bytes[at..]) {
            at += length;
            judge.hears(text, &mut self.truth).map_err(|why| format!("client {who}: {why}"))?;
        }
        bytes.drain(..at);
        Ok(has_more)
    }

    fn step(&mut self) -> Result<(), String> {
        let who = self.random.below(CLIENTS);
        match self.random.weighted(&[30, 4, 12, 40, 40, 3, 2]) {
            0 => self.broadcasts(who),
            1 => self.publishes(),
            2 if self.clients[who].link.is_none() => self.joins(who),
            2 if self.random.chance(200) => self.loses(who),
            3 => self.carries(who % 2, true),
            4 => {
                let most = self.random.magnitude(1, 100_000) as usize;
                self.reads(who, most)?;
            }
            5 if self.faults.time => {
                self.now.instant += Duration::from_secs(self.random.magnitude(1, 100));
                self.ticks();
            }
            6 => self.ticks(),
            _ => {}
        }
        Ok(())
    }

    fn ticks(&mut self) {
        for core in &mut self.cores {
            core.turn(self.now);
            core.tick(&());
        }
        self.collects();
    }

    /// Everything arrives. Then all clients are at the last message.
    fn settles(&mut self) -> Result<(), String> {
        for who in 0..CLIENTS {
            if self.clients[who].link.is_none() {
                self.joins(who);
            }
        }
        self.collects();
        for rest in [true, false] {
            // What a lost letter has announced is noticed with the next message.
            if rest {
                self.publishes();
                self.publishes();
            }
            while self.mail.iter().any(|mail| !mail.is_empty()) {
                (0..2).for_each(|core| self.carries(core, false));
            }
            self.ticks();
            for who in 0..CLIENTS {
                while self.reads(who, usize::MAX)? {}
            }
        }
        let positions: Vec<_> = self.clients.iter().map(|one| one.judge.position.clone()).collect();
        if self.faults.memory {
            return Ok(());
        }
        let first = positions[0].clone().ok_or("a client has no position")?;
        if positions.iter().any(|one| one.as_ref() != Some(&first)) {
            return Err(format!("clients end at {positions:?}"));
        }
        match self.truth.kept {
            Some(_) if first.1 != self.truth.published => Err(format!(
                "{} messages were published, clients end at {first:?}",
                self.truth.published
            )),
            _ => Ok(()),
        }
    }
}

/// The text of the first frame, and its length.
pub fn frame(bytes: &[u8]) -> Option<(&str, usize)> {
    let (header, length) = match *bytes.get(1)? {
        126 => (4, u64::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)),
        length => (2, u64::from(length)),
    };
    let end = header + length as usize;
    let text = bytes.get(header..end)?;
    assert_eq!(bytes[0], 0x81, "a text");
    Some((str::from_utf8(text).unwrap(), end))
}

/// Plays many histories, which must have messages, gaps and recoveries.
fn simulate(faults: Faults) {
    let history = |seed, all: &mut [usize; 3]| {
        let mut world = World::new(seed, faults);
        (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles())?;
        for Client { judge, .. } in &world.clients {
            all.add(&[judge.messages, judge.gaps, judge.recovered]);
        }
        Ok(())
    };
    let all = histories::check("SIMULATION_SEED", by_tier(300, 100_000), history);
    assert!(all.is_none_or(|all| all.iter().all(|seen| *seen > 100)), "{all:?}");
}

#[test]
fn a_client_gets_every_message_once_and_in_order_or_a_gap_that_has_a_reason() {
    simulate(Faults::default());
}

/// The history is what counts: a push only says that there is something.
#[test]
fn lost_letters_delay_messages_and_lose_none() {
    simulate(Faults { letters: true, ..Faults::default() });
}

#[test]
fn messages_that_become_too_old_are_a_gap() {
    simulate(Faults { time: true, ..Faults::default() });
}

#[test]
fn messages_for_which_there_is_no_memory_are_a_gap() {
    simulate(Faults { memory: true, ..Faults::default() });
}
