//! Random histories of the relay. Each is a function of its number. Each client must receive one
//! line per request, in order, and never the reply to another client.

use super::{
    by_hand::{BOTH, ByHand, Writes},
    engine::{DOWN, LOST, Relay},
};
use regatta_engine::Conn;
use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

const HISTORIES: u64 = 300;
const STEPS: usize = 200;
const CLIENTS: usize = 8;

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % limit as u64) as usize
    }

    fn chance(&mut self, in_hundred: usize) -> bool {
        self.below(100) < in_hundred
    }
}

#[derive(Default)]
struct Client {
    number: usize,
    /// All its requests, and the part of them that has not been sent yet.
    asked: Vec<String>,
    unsent: String,
    got: String,
    ended: bool,
    failed: bool,
}

#[derive(Default)]
struct Upstream {
    got: String,
    /// Replies that are due, but not sent.
    due: String,
}

struct History {
    hand: ByHand<Relay>,
    random: Random,
    clients: BTreeMap<Conn, Client>,
    upstream: Option<(Conn, Upstream)>,
    /// The requests that any upstream has received.
    arrived: HashSet<String>,
}

impl History {
    fn new(seed: u64, writes: Writes) -> History {
        let relay = Relay::new("127.0.0.1:1".parse().unwrap());
        History {
            hand: ByHand::new(relay, writes),
            random: Random(seed),
            clients: BTreeMap::new(),
            upstream: None,
            arrived: HashSet::new(),
        }
    }

    fn client(&mut self) -> Option<Conn> {
        let all: Vec<Conn> = self.clients.keys().copied().collect();
        (!all.is_empty()).then(|| all[self.random.below(all.len())])
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..8 if self.clients.len() < CLIENTS => {
                let conn = self.hand.client();
                let number = self.clients.len();
                self.clients.insert(conn, Client { number, ..Client::default() });
            }
            0..45 => self.client_sends(),
            45..70 => self.upstream_answers(),
            70..78 => {
                let room = match self.random.below(3) {
                    0 => None,
                    _ => Some(self.random.below(100)),
                };
                let conn = self.client();
                let upstream = self.upstream.as_ref().map(|(conn, _)| *conn);
                let which = if self.random.chance(40) { upstream } else { conn };
                which.into_iter().for_each(|conn| self.hand.room(conn, room));
            }
            78..80 => self.client_leaves(),
            80..84 => self.upstream_leaves(),
            84..92 => {
                if let Some(conn) = self.hand.dialled() {
                    if self.random.chance(60) {
                        self.hand.open(conn);
                        self.upstream = Some((conn, Upstream::default()));
                    } else {
                        self.hand.fail(conn);
                    }
                }
            }
            _ => {
                let ms = self.random.below(100) as u64;
                self.hand.pass(Duration::from_millis(ms));
            }
        }
        self.collect();
    }

    fn client_sends(&mut self) {
        let Some(conn) = self.client() else { return };
        let Some(client) = self.clients.get_mut(&conn).filter(|c| !c.ended && !c.failed) else {
            return;
        };
        for _ in 0..self.random.below(4) {
            let pad = self.random.below(30);
            let request = format!("{}.{} {}", client.number, client.asked.len(), "x".repeat(pad));
            client.unsent.push_str(&request);
            client.unsent.push('\n');
            client.asked.push(request);
        }
        let cut = self.random.below(client.unsent.len() + 1);
        let now: String = client.unsent.drain(..cut).collect();
        // Sometimes this is the first event of the turn.
        if self.random.chance(10) && self.hand.unread(conn) == 0 && self.hand.core.wants_read(conn)
        {
            self.hand.receives(conn, &now);
        } else {
            self.hand.send(conn, &now);
        }
    }

    fn client_leaves(&mut self) {
        let Some(conn) = self.client() else { return };
        let client = self.clients.get_mut(&conn).expect("one of them");
        if self.random.chance(50) {
            client.failed = true;
            self.hand.fail(conn);
        } else if !std::mem::replace(&mut client.ended, true) {
            self.hand.end(conn);
        }
    }

    fn upstream_answers(&mut self) {
        let Some((conn, upstream)) = &mut self.upstream else { return };
        let cut = self.random.below(upstream.due.len() + 1);
        let now: String = upstream.due.drain(..cut).collect();
        self.hand.send(*conn, &now);
    }

    fn upstream_leaves(&mut self) {
        let Some((conn, _)) = self.upstream.take() else { return };
        match self.random.below(3) {
            0 => self.hand.end(conn),
            1 => self.hand.fail(conn),
            _ => self.hand.breaks(conn), // the engine notices it with its next event
        }
    }

    /// Collects what each side has received.
    fn collect(&mut self) {
        for (&conn, client) in &mut self.clients {
            client.got.push_str(&self.hand.got(conn));
        }
        if let Some((conn, upstream)) = &mut self.upstream {
            upstream.got.push_str(&self.hand.got(*conn));
            while let Some(end) = upstream.got.find('\n') {
                let request: String = upstream.got.drain(..=end).collect();
                upstream.due.push_str(&format!("re {request}"));
                assert!(self.arrived.insert(request.trim_end_matches('\n').into()), "sent twice");
            }
        }
    }

    /// All sides accept everything, and the clients close.
    fn finish(&mut self) {
        for (&conn, client) in &mut self.clients {
            if !client.failed {
                self.hand.room(conn, None);
                if !client.ended {
                    let rest = std::mem::take(&mut client.unsent);
                    self.hand.send(conn, &rest);
                    self.hand.end(conn);
                }
            }
        }
        for _ in 0..100 {
            if let Some((conn, upstream)) = &mut self.upstream {
                self.hand.room(*conn, None);
                let due = std::mem::take(&mut upstream.due);
                self.hand.send(*conn, &due);
            }
            if let Some(conn) = self.hand.dialled() {
                self.hand.open(conn);
                self.upstream = Some((conn, Upstream::default()));
            }
            self.collect();
        }
        assert_eq!(self.hand.core.clients(), 0, "all clients have their replies, and closed");
    }

    /// Checks that each client has one line per request. Returns the number of replies and of
    /// errors.
    fn check(&self) -> (usize, usize) {
        let (mut answered, mut failed) = (0, 0);
        for client in self.clients.values() {
            let half = client.unsent.matches('\n').count();
            let asked = &client.asked[..client.asked.len() - half];
            let got: Vec<&str> = client.got.split_inclusive('\n').collect();
            if !client.failed {
                assert_eq!(got.len(), asked.len(), "client {}", client.number);
            }
            for (line, request) in got.iter().zip(asked) {
                match line.strip_suffix('\n') {
                    Some(line) if line == format!("re {request}") => answered += 1,
                    Some(line) if line == LOST => failed += 1,
                    Some(line) if line == DOWN => {
                        assert!(!self.arrived.contains(request), "{request:?} was sent before");
                        failed += 1;
                    }
                    None if client.failed => {}
                    _ => panic!("client {} got {line:?} for {request:?}", client.number),
                }
            }
        }
        (answered, failed)
    }
}

#[test]
fn each_client_gets_one_line_per_request_in_every_history() {
    let (mut answered, mut failed) = (0, 0);
    for writes in BOTH {
        for seed in 0..HISTORIES {
            let run = std::panic::catch_unwind(|| {
                let mut history = History::new(seed, writes);
                (0..STEPS).for_each(|_| history.step());
                history.finish();
                history.check()
            });
            let Ok((good, bad)) = run else { panic!("history {seed}, writes {writes:?}") };
            (answered, failed) = (answered + good, failed + bad);
        }
    }
    assert!(answered > 10_000 && failed > 10_000, "{answered} answered, {failed} failed");
}
