//! A relay: it forwards a client's input to another server, and the server's answers to the client.
//! The engine opens connections, changes connections other than the one it was called for, pauses
//! input while a buffer is full, and has its own timer.

use super::relays::{NEVER, assert_finds_faults, histories};
use regatta_engine::{
    Conn, ConnInterest, Effects, Engine, Flow, Never, Now, Side,
    simulator::{Expected, Random, Scenario, Visit, assert_holds, same},
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::Range,
    time::{Duration, Instant},
};

/// Bytes of pending output to one side, from which the other side is not read.
const FULL: usize = 2000;
/// Interval of the engine's timer.
const COUNT: Duration = Duration::from_millis(700);

// ---- the engine ----

/// A client, and the connection to the other server that belongs to it.
struct Pair {
    client: Conn,
    server: Conn,
    /// Input that arrived while the connection to the other server accepted no output.
    early: Vec<u8>,
    server_is_open: bool,
    /// Bytes that the other server has not answered. It answers each with one byte.
    owed: usize,
    /// The client has closed its side.
    ended: bool,
}

struct Relay {
    pairs: Vec<Pair>,
    /// Number of clients so far.
    clients: u16,
    count_at: Option<Instant>,
}

impl Relay {
    fn find(&mut self, conn: Conn) -> Option<(usize, Side)> {
        let mut pairs = self.pairs.iter().enumerate();
        pairs.find_map(|(index, pair)| match conn {
            _ if pair.client == conn => Some((index, Side::Client)),
            _ if pair.server == conn => Some((index, Side::Upstream)),
            _ => None,
        })
    }

    /// Sets the status of both sides, and closes both once everything is answered.
    fn settle(&mut self, index: usize, effects: &mut Effects<Self>) {
        let pair = &self.pairs[index];
        let (client, server) = (effects.pending(pair.client), effects.pending(pair.server));
        let to_client = ConnInterest {
            reads: pair.server_is_open && server < FULL,
            waits: pair.owed > 0,
            wants_drained: client >= FULL,
            ..ConnInterest::default()
        };
        let to_server = ConnInterest {
            reads: client < FULL,
            waits: pair.owed == 0,
            wants_drained: server >= FULL,
            ..ConnInterest::default()
        };
        effects.set(pair.client, to_client);
        effects.set(pair.server, to_server);
        if pair.ended && pair.owed == 0 {
            effects.close(pair.client, Flow::Close);
            effects.close(pair.server, Flow::Close);
        }
    }
}

impl Engine for Relay {
    type Job = Never;
    type Letter = Never;
    const CONNECTS: bool = true;

    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        let Some((index, Side::Upstream)) = self.find(conn) else {
            // The port is the number of the client, for the model.
            let server = effects.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.clients)));
            self.clients += 1;
            let (early, owed) = (Vec::new(), 0);
            let (server_is_open, ended) = (false, false);
            self.pairs.push(Pair { client: conn, server, early, server_is_open, owed, ended });
            self.count_at.get_or_insert(effects.now().instant + COUNT);
            return self.settle(self.pairs.len() - 1, effects);
        };
        let pair = &mut self.pairs[index];
        pair.server_is_open = true;
        if let Some(out) = effects.out(conn) {
            out.append(&mut pair.early);
        }
        self.settle(index, effects);
    }

    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        let Some((index, side)) = self.find(conn) else { return };
        let pair = &mut self.pairs[index];
        if side == Side::Client {
            pair.owed += bytes.len();
            match effects.out(pair.server) {
                Some(out) => out.extend_from_slice(bytes),
                None => pair.early.extend_from_slice(bytes),
            }
        } else {
            pair.owed = pair.owed.saturating_sub(bytes.len());
            if let Some(out) = effects.out(pair.client) {
                out.extend_from_slice(bytes);
            }
        }
        self.settle(index, effects);
    }

    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if let Some((index, _)) = self.find(conn) {
            self.settle(index, effects);
        }
    }

    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        match self.find(conn) {
            Some((index, Side::Client)) => {
                self.pairs[index].ended = true;
                self.settle(index, effects);
            }
            // Answers are pending, or the client has not finished.
            _ => effects.close(conn, Flow::Close),
        }
    }

    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        let Some((index, side)) = self.find(conn) else { return };
        let pair = self.pairs.swap_remove(index);
        match side {
            Side::Client => effects.close(pair.server, Flow::Close),
            // A closing client still gets its pending output.
            Side::Upstream if pair.ended && pair.owed == 0 => {}
            Side::Upstream => effects.abort(pair.client),
        }
        if side == Side::Client && !pair.server_is_open {
            effects.abort(pair.server);
        }
        if self.pairs.is_empty() {
            self.count_at = None;
        }
    }

    fn due(&self) -> Option<Instant> {
        self.count_at
    }

    fn tick(&mut self, effects: &mut Effects<Self>) {
        self.count_at = Some(effects.now().instant + COUNT);
    }
}

// ---- the model ----

/// Returns the other server's answer to a byte.
fn answered(byte: u8) -> u8 {
    byte ^ 0x55
}

#[derive(Clone, Copy, Default)]
struct Ends {
    /// The other side of the pair.
    other: Option<usize>,
    is_server: bool,
}

#[derive(Default)]
struct Model {
    ends: Vec<Ends>,
    /// The clients of each core, in the order in which they connected.
    came: Vec<Vec<usize>>,
    refusing: usize,
    random: Option<Random>,
}

impl Scenario for Model {
    type Engine = Relay;
    const NAME: &'static str = "relay";
    const NEVER: &[Visit] = NEVER;
    const PENDING: usize = 64 * 1024 + 2 * FULL;
    const GROWTH: usize = 2;
    const HELD: usize = usize::MAX / 2;

    fn begin(&mut self, random: &mut Random) -> usize {
        self.ends.clear();
        self.came = vec![Vec::new(); 1 + random.below(2)];
        self.refusing = random.pick(&[0, 0, 300]);
        self.random = Some(Random::new(random.between(0, u64::MAX - 1)));
        self.came.len()
    }

    fn engine(&mut self, _: usize) -> Relay {
        Relay { pairs: Vec::new(), clients: 0, count_at: None }
    }

    fn script(&mut self, who: usize, random: &mut Random, input: &mut Vec<u8>) {
        self.ends.resize(who + 1, Ends::default());
        // Connections added after the first client is accepted are servers.
        if self.came.iter().any(|came| !came.is_empty()) {
            return;
        }
        let bytes = random.magnitude(1, 9000) as usize;
        input.extend((0..bytes).map(|byte| (byte % 251) as u8));
    }

    fn connects(&mut self, who: usize, core: usize, to: SocketAddr) -> bool {
        let client = self.came[core][usize::from(to.port())];
        self.ends[who] = Ends { other: Some(client), is_server: true };
        self.ends[client].other = Some(who);
        !self.random.as_mut().is_some_and(|random| random.chance(self.refusing))
    }

    fn opened(&mut self, who: usize, core: usize, _: Now, all: &mut [Expected]) {
        (all[who].may_abort, all[who].waits) = (true, true);
        if !self.ends[who].is_server {
            self.came[core].push(who);
        } else if let Some(client) = self.ends[who].other {
            // Input that arrived before the server was connected.
            let early = std::mem::take(&mut all[client].input);
            all[who].output.extend_from_slice(&early);
        }
    }

    fn handed(&mut self, who: usize, _: Now, bytes: &[u8], all: &mut [Expected]) {
        match self.ends[who] {
            Ends { other: Some(client), is_server: true } => {
                if !all[client].closes {
                    all[client].output.extend_from_slice(bytes);
                }
            }
            Ends { other: Some(server), .. } if all[server].may_abort => {
                if !all[server].closes {
                    all[server].output.extend_from_slice(bytes);
                }
            }
            _ => all[who].input.extend_from_slice(bytes),
        }
    }

    fn left(&mut self, who: usize, all: &mut [Expected]) {
        all[who].closes = true;
        all[who].may_abort = true;
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
        if self.ends[who].is_server {
            answer.extend(received[new.clone()].iter().map(|byte| answered(*byte)));
        } else {
            // The model of the client is the pattern that it sent.
            let pattern = |at: usize| answered((at % 251) as u8);
            if let Some(at) = new.clone().find(|at| received[*at] != pattern(*at)) {
                return Err(format!("byte {at} is not the answer to the byte that was sent"));
            }
        }
        same(&expected.output[new.clone()], &received[new.clone()], new.start)
    }

    fn work(&mut self, job: Never, _: Now, _: &mut Vec<u8>) -> Flow {
        match job {}
    }
}

#[test]
fn a_relay_with_a_server_per_client_holds_in_the_simulator() {
    assert_holds(Model::default, histories());
}

#[test]
fn injected_faults_are_detected() {
    assert_finds_faults(Model::default);
}
