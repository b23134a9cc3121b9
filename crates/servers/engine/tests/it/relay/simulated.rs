//! The relay under the simulator: the same engine that `regatta-serve` runs over real sockets. Its
//! clients and upstreams send in pieces, read slowly or not at all, close, reset and vanish.
//!
//! For each core, the model keeps the queue of clients that wait for the upstream's replies. It
//! reads only one number from the engine: how often it has connected.

use super::engine::{DOWN, LONG, LOST, REQUEST, Relay, Seen};
use crate::simulation::relays::{NEVER, assert_finds_faults, histories};
use regatta_engine::{
    Flow, Never, Now,
    simulator::{Expected, Random, Scenario, Visit, assert_holds, same},
};
use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// Returns an upstream's reply to a request, both without their newlines. One in eight is long.
fn reply_to(request: &[u8]) -> Vec<u8> {
    let sum: usize = request.iter().map(|&byte| usize::from(byte)).sum();
    let mut reply = b"=".to_vec();
    (0..if sum.is_multiple_of(8) { 10 } else { 1 }).for_each(|_| reply.extend_from_slice(request));
    reply
}

#[derive(Debug, Default)]
enum Upstream {
    #[default]
    Unused,
    /// Its number is not known before the end of the turn. Includes the output for it.
    Connecting(Option<usize>, Vec<u8>),
    Open(usize),
    Down,
}

/// One core's relay.
#[derive(Default)]
struct Shared {
    seen: Arc<Seen>,
    connects: usize,
    upstream: Upstream,
    /// The clients that wait for the next replies.
    waiting: VecDeque<usize>,
    /// The clients that waited when the upstream was lost, and the number of attempts to connect
    /// until then. The engine notices the loss a little later than the model.
    lost: (usize, Vec<usize>),
}

impl Shared {
    fn is_upstream(&self, who: usize) -> bool {
        match self.upstream {
            Upstream::Connecting(Some(it), _) | Upstream::Open(it) => it == who,
            _ => false,
        }
    }

    /// Notes whether the engine has started to reconnect.
    fn look(&mut self) {
        let connects = self.seen.connects.load(Relaxed);
        if connects > self.connects {
            self.connects = connects;
            self.upstream = Upstream::Connecting(None, Vec::new());
        }
    }
}

/// A connection.
#[derive(Default)]
struct Side {
    core: usize,
    is_upstream: bool,
    handed: usize,
    /// The first part of an incomplete request or reply.
    begun: Vec<u8>,
    waiting: usize,
    ended: bool,
    too_long: bool,
    /// Nothing more is appended to its output.
    left: bool,
    /// All that it sends, if it is a client. Then the bytes and lines that it has received.
    requests: Vec<u8>,
    read: usize,
    lines: usize,
}

#[derive(Default)]
struct Model {
    cores: Vec<Shared>,
    sides: Vec<Side>,
    /// All clients exist: further connections are upstreams.
    begun: bool,
    refusing: usize,
    random: Option<Random>,
}

impl Model {
    /// Updates a client after the end of its input, or after a reply.
    fn update(&mut self, who: usize, all: &mut [Expected]) {
        let side = &mut self.sides[who];
        all[who].waits = side.waiting > 0;
        if side.ended && side.waiting == 0 && !side.left {
            side.left = true;
            all[who].closes = true;
            if side.too_long {
                all[who].output.extend_from_slice(LONG.as_bytes());
                all[who].output.push(b'\n');
            }
        }
    }

    fn deliver(&mut self, who: usize, line: &[u8], all: &mut [Expected]) {
        let side = &mut self.sides[who];
        side.waiting -= 1;
        if !side.left {
            all[who].output.extend_from_slice(line);
            all[who].output.push(b'\n');
            self.update(who, all);
        }
    }

    fn lose(&mut self, core: usize, all: &mut [Expected]) {
        let shared = &mut self.cores[core];
        let error = match std::mem::replace(&mut shared.upstream, Upstream::Down) {
            Upstream::Connecting(..) => DOWN,
            _ => LOST,
        };
        let waiting = std::mem::take(&mut shared.waiting);
        shared.lost.0 = shared.connects;
        shared.lost.1.extend(&waiting);
        for who in waiting {
            self.deliver(who, error.as_bytes(), all);
            all[who].waits = true;
        }
    }

    fn request(&mut self, who: usize, line: &[u8], all: &mut [Expected]) {
        let core = self.sides[who].core;
        let shared = &mut self.cores[core];
        shared.look();
        let out = match &mut shared.upstream {
            Upstream::Connecting(_, early) => early,
            Upstream::Open(upstream) => {
                all[*upstream].waits = false;
                &mut all[*upstream].output
            }
            Upstream::Unused | Upstream::Down => {
                all[who].output.extend_from_slice(DOWN.as_bytes());
                return all[who].output.push(b'\n');
            }
        };
        out.extend_from_slice(line);
        out.push(b'\n');
        shared.waiting.push_back(who);
        self.sides[who].waiting += 1;
    }

    fn reply(&mut self, core: usize, line: &[u8], all: &mut [Expected]) {
        let shared = &mut self.cores[core];
        let Some(who) = shared.waiting.pop_front() else { return self.lose(core, all) };
        if let Upstream::Open(upstream) = shared.upstream {
            all[upstream].waits = shared.waiting.is_empty();
        }
        self.deliver(who, line, all);
    }
}

impl Scenario for Model {
    type Engine = Relay;
    const NAME: &'static str = "relay to one upstream";
    const NEVER: &[Visit] = NEVER;
    const PENDING: usize = 512 * 1024;
    const GROWTH: usize = 2;
    const HELD: usize = REQUEST;

    fn begin(&mut self, random: &mut Random) -> usize {
        let cores = 1 + usize::from(random.chance(300));
        self.cores = (0..cores).map(|_| Shared::default()).collect();
        self.sides.clear();
        self.begun = false;
        self.refusing = random.pick(&[0, 0, 300]);
        self.random = Some(Random::new(random.between(0, u64::MAX - 1)));
        cores
    }

    fn engine(&mut self, core: usize) -> Relay {
        Relay::seen_by((Ipv4Addr::LOCALHOST, 1).into(), Arc::clone(&self.cores[core].seen))
    }

    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>) {
        self.sides.push(Side { is_upstream: self.begun, ..Side::default() });
        if self.begun {
            return;
        }
        for number in 0..random.magnitude(1, 40) {
            input.extend_from_slice(format!("{who}.{number}").as_bytes());
            let more = random.magnitude(1, 300) as usize;
            input.resize(input.len() + more, b'a' + (more % 26) as u8);
            input.push(b'\n');
        }
        if random.chance(30) {
            input.resize(input.len() + REQUEST + 100, b'x');
        }
        self.sides[who].requests.clone_from(input);
    }

    fn connects(&mut self, who: usize, core: usize, _: SocketAddr) -> bool {
        self.sides[who].core = core;
        let shared = &mut self.cores[core];
        shared.look();
        if let Upstream::Connecting(it, _) = &mut shared.upstream {
            *it = Some(who);
        }
        !self.random.as_mut().is_some_and(|random| random.chance(self.refusing))
    }

    fn opened(&mut self, who: usize, core: usize, _: Now, all: &mut [Expected]) {
        self.begun = true;
        self.sides[who].core = core;
        let shared = &mut self.cores[core];
        if !self.sides[who].is_upstream {
            return;
        }
        if let Upstream::Connecting(_, early) = &mut shared.upstream {
            all[who].output.append(early);
            shared.upstream = Upstream::Open(who);
        }
        all[who].waits = shared.waiting.is_empty();
        (all[who].may_abort, all[who].stays) = (true, true);
    }

    fn handed(&mut self, who: usize, _: Now, bytes: &[u8], all: &mut [Expected]) {
        let Side { core, is_upstream, .. } = self.sides[who];
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let side = &mut self.sides[who];
            side.handed += part.len();
            if side.ended {
                continue;
            }
            side.begun.extend_from_slice(part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") {
                all[who].marks.push((side.handed, 0));
                let line = std::mem::take(&mut side.begun);
                match is_upstream {
                    true => self.reply(core, &line, all),
                    false => self.request(who, &line, all),
                }
            }
        }
        let side = &mut self.sides[who];
        if !is_upstream && side.begun.len() > REQUEST {
            (side.ended, side.too_long) = (true, true);
            side.begun.clear();
        }
        if !is_upstream {
            self.update(who, all);
        }
    }

    fn ended(&mut self, who: usize, _: Now, all: &mut [Expected]) {
        let Side { core, is_upstream, .. } = self.sides[who];
        if !is_upstream {
            self.sides[who].ended = true;
            self.update(who, all);
        } else if self.cores[core].is_upstream(who) {
            self.lose(core, all);
        }
    }

    fn left(&mut self, who: usize, all: &mut [Expected]) {
        let core = self.sides[who].core;
        self.sides[who].left = true;
        all[who].closes |= self.sides[who].ended;
        if self.cores[core].is_upstream(who) {
            self.lose(core, all);
        }
    }

    fn turned(&mut self, core: usize, _: Now, all: &mut [Expected]) -> Result<(), String> {
        let Shared { seen, lost: (connects, who), .. } = &mut self.cores[core];
        if seen.connects.load(Relaxed) > *connects {
            for who in who.drain(..) {
                all[who].waits = self.sides[who].waiting > 0;
            }
        }
        Ok(())
    }

    fn received(
        &mut self,
        who: usize,
        _: Now,
        expected: &Expected,
        received: &[u8],
        new: Range<usize>,
        answer: &mut Vec<u8>,
    ) -> Result<(), String> {
        let side = &mut self.sides[who];
        while let Some(length) = received[side.read..].iter().position(|&byte| byte == b'\n') {
            let line = &received[side.read..side.read + length];
            if side.is_upstream {
                answer.extend_from_slice(&reply_to(line));
                answer.push(b'\n');
            } else {
                // Independent of the queue, it must be the reply to this request, or an error.
                let request = side.requests.split(|&byte| byte == b'\n').nth(side.lines);
                let errors = [DOWN, LOST, LONG].map(str::as_bytes);
                if !errors.contains(&line) && request.map(reply_to).as_deref() != Some(line) {
                    let line = line[..line.len().min(60)].escape_ascii();
                    return Err(format!(
                        "\"{line}\" is not the reply to its request {}",
                        side.lines
                    ));
                }
            }
            (side.read, side.lines) = (side.read + length + 1, side.lines + 1);
        }
        same(&expected.output[new.clone()], &received[new.clone()], new.start)
    }

    fn work(&mut self, job: Never, _: Now, _: &mut Vec<u8>) -> Flow {
        match job {}
    }
}

#[test]
fn the_relay_holds_in_the_simulator() {
    assert_holds(Model::default, histories());
}

#[test]
fn injected_faults_of_the_relay_are_detected() {
    assert_finds_faults(Model::default);
}
