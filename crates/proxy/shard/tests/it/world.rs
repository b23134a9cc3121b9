//! One history: the proxy's core, its sockets, the clients and the nodes.

mod crowd;
mod map;
mod memory;
mod slow;
mod trouble;

use super::{
    client::Client,
    node::{Data, Published, Session},
    pest::Kind,
    seen::{Fault, Seen, Trouble},
    wire::{End, Kernel, Wire},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_engine::{Conn, Core, Engine, Limits, Next, Now};
use regatta_keyspace::map::{Map, Slots};
use regatta_service::tls_engine::{Tls, TlsEngine};
use regatta_shard::{Auth, Nodes, Proxy, Settings, Shared};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Well,
    Dead,
    Stalled,
}

/// The proxy, or an engine around it.
pub trait Tested: Engine {
    fn around(proxy: Proxy, now: Now) -> Self;

    fn proxy(&self) -> &Proxy;
}

impl Tested for Proxy {
    fn around(proxy: Proxy, _: Now) -> Self {
        proxy
    }

    fn proxy(&self) -> &Proxy {
        self
    }
}

/// Without TLS on either side: everything must happen as without this engine.
impl Tested for TlsEngine<Proxy> {
    fn around(proxy: Proxy, now: Now) -> Self {
        TlsEngine::new(proxy, Arc::new(Tls { clients: None, refused: None, servers: None }), now)
    }

    fn proxy(&self) -> &Proxy {
        self.engine()
    }
}

pub struct World<E: Engine> {
    random: SmallRng,
    core: Core<E>,
    start: Instant,
    now: Instant,
    nodes: Vec<Health>,
    /// The data of each node. If the shard map may change, all nodes share one data set: then every
    /// map finds a key, and only the order of requests matters.
    data: Vec<Data>,
    shared: Arc<Shared>,
    /// The shard map may change.
    remaps: bool,
    wires: BTreeMap<Conn, Wire>,
    epoch: u64,
    fault: Option<Fault>,
    /// Nodes and clients may fail.
    fails: bool,
    /// The proxy stops at the end. Until then, blocked clients stay connected.
    drains: bool,
    trouble: Trouble,
    prints: bool,
    /// Capacity of a socket buffer, in bytes.
    window: usize,
    /// The most bytes that a node reads at once.
    sip: usize,
    /// The number of clients so far, and the size of their longest request.
    clients: usize,
    longest: usize,
    /// The limit of the nodes on an argument, in bytes.
    limit: usize,
    /// The number of the last connection to a node.
    number: u64,
}

const STEPS: usize = 250;

/// The capacity of a socket buffer above which clients may send much, in bytes.
const MUCH: usize = 100_000;

/// Bytes that the proxy may hold for a node, besides one request of each client.
const PENDING: usize = 1 << 20;

impl<E: Tested> World<E> {
    pub fn new(seed: u64, fault: Option<Fault>, prints: bool) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let count = random.random_range(1..=4);
        let address = |node: usize| SocketAddr::from(([127, 0, 0, 1], 1 + node as u16));
        let nodes = Nodes::new((0..count).map(|node| (format!("n{node}"), address(node))));
        let map = Map::new(1, Slots::even(count).expect("few nodes"));
        let mut settings = Settings::new(map, nodes);
        // Without failures the timeout is long, because a small socket buffer also slows a node down.
        let fails = fault.is_none() && random.random_bool(0.6);
        settings.node_timeout = Duration::from_secs(if fails { 2 } else { 3000 });
        memory::limit(&mut settings, &mut random);
        // In some histories, all requests are slow.
        let records = fault.is_none() && seed.is_multiple_of(8);
        settings.slow = records.then_some(Duration::ZERO);
        let now = Instant::now();
        let remaps = fault.is_none() && random.random_bool(0.3);
        let has_users = random.random_bool(0.3);
        if has_users {
            settings.auth = Auth { of_nodes: true, ..Auth::default() };
        }
        let lacks_users = has_users && fault.is_none() && random.random_bool(0.4);
        let refuses_multi = random.random_bool(0.1) && fault.is_none() && !has_users;
        let is_tight = settings.client_bytes == memory::TIGHT;
        let shared = Arc::new(Shared::new(settings));
        let proxy = Proxy::new(Arc::clone(&shared), seed);
        let limits = Limits { idle: Duration::from_secs(3600), request: Duration::from_secs(5) };
        let start = Now { instant: now, unix_s: 0 };
        let core = Core::new(E::around(proxy, start), limits, start);
        World {
            fails,
            drains: random.random_bool(0.3),
            trouble: Trouble { fails, remaps, is_tight, refuses_multi, has_users, lacks_users },
            remaps,
            shared,
            window: match random.random_range(0..3) {
                0 if !is_tight => 300,
                1 if !is_tight => 5000,
                _ => 200_000,
            },
            sip: if random.random_bool(0.1) { 1000 } else { usize::MAX },
            clients: 0,
            longest: 0,
            limit: *[1 << 20, 512 << 20].get(random.random_range(0..2)).unwrap_or(&0),
            number: 0,
            random,
            core,
            start: now,
            now,
            nodes: vec![Health::Well; count],
            data: (0..if remaps { 1 } else { count }).map(|_| Data::new(records)).collect(),
            wires: BTreeMap::new(),
            epoch: 1,
            fault,
            prints,
        }
    }

    fn note(&self, text: impl FnOnce() -> String) {
        if self.prints {
            println!("{}", text());
        }
    }

    pub fn run(mut self, seen: &mut Seen) -> Result<(), String> {
        self.clients = self.random.random_range(1..5);
        for number in 0..self.clients {
            self.turn();
            let conn = self.core.accept();
            let client = Client::new(number, self.window > MUCH, self.trouble, &mut self.random);
            self.wires.insert(conn, Wire::new(End::Client(client)));
            self.authenticate(conn);
            self.serve(conn);
            self.end_turn();
        }
        if self.random.random_bool(0.08) {
            self.admit_pests();
        }
        if self.trouble.has_users && self.random.random_bool(0.15) {
            self.admit_crowd();
        }
        for _ in 0..STEPS {
            self.step(seen)?;
            self.check_memory()?;
        }
        // From now on nothing fails: each client must get its pending replies.
        (self.fails, self.remaps) = (false, false);
        self.nodes.fill(Health::Well);
        if self.drains {
            self.drain(seen)?;
        } else {
            for conn in self.conns() {
                self.abandon(conn, 1.0, seen);
            }
            self.settle(seen)?;
        }
        self.check_ends()?;
        self.check_memory()?;
        self.check_evictions(seen)?;
        self.check_slow_log(seen)?;
        for wire in self.wires.values() {
            if let End::Client(client) = &wire.end
                && client.owes() > 0
                && !wire.is_finished
                && !wire.is_reset
                && !wire.has_ended
            {
                return Err(format!("a client never got {} pending replies", client.owes()));
            }
        }
        self.expire(seen)
    }

    /// Runs until nothing happens any longer.
    fn settle(&mut self, seen: &mut Seen) -> Result<(), String> {
        let mut quiet = 0;
        for _ in 0..20_000 {
            let before = seen.replies;
            let moved = self.everything(seen)?;
            if moved || seen.replies > before {
                quiet = 0;
                continue;
            }
            quiet += 1;
            if quiet > 60 {
                return Ok(());
            }
            self.now += Duration::from_millis(100);
        }
        Err("the history did not become quiet".into())
    }

    /// Runs one step of each connection. Returns whether bytes moved.
    fn everything(&mut self, seen: &mut Seen) -> Result<bool, String> {
        let mut moved = false;
        self.turn();
        for conn in self.conns() {
            moved |= self.arrive(conn, usize::MAX, seen);
        }
        self.end_turn();
        for conn in self.conns() {
            moved |= self.leave(conn, usize::MAX, seen)?;
        }
        Ok(moved)
    }

    fn conns(&self) -> Vec<Conn> {
        self.wires.keys().copied().collect()
    }

    fn step(&mut self, seen: &mut Seen) -> Result<(), String> {
        if self.fails {
            self.cause_trouble(seen);
        }
        if self.remaps && self.random.random_bool(0.04) {
            if self.random.random_bool(0.5) {
                self.change_map(seen);
            } else {
                self.change_nodes(seen);
            }
        }
        self.now += Duration::from_micros(match self.random.random_range(0..40) {
            0 => self.random.random_range(0..400_000),
            _ => self.random.random_range(0..3000),
        });
        self.pests_send();
        for conn in self.conns() {
            let Some(wire) = self.wires.get_mut(&conn) else { continue };
            if let End::Client(client) = &mut wire.end
                && !wire.has_ended
                && !wire.is_reset
            {
                while self.random.random_bool(0.7) {
                    client.send(&mut self.random, &mut wire.to_proxy, seen);
                    self.longest = self.longest.max(client.longest);
                }
            }
        }
        for conn in self.conns() {
            self.abandon(conn, if self.drains { 0.0 } else { 0.05 }, seen);
        }
        self.turn();
        for conn in self.conns() {
            if self.random.random_bool(0.6) {
                let most = self.cut();
                self.arrive(conn, most, seen);
            }
        }
        self.end_turn();
        for conn in self.conns() {
            if self.random.random_bool(0.6) {
                let is_node = self.wires.get(&conn).is_some_and(Wire::is_node);
                let most = self.cut().min(if is_node { self.sip } else { usize::MAX });
                self.leave(conn, most, seen)?;
            }
        }
        let nodes = self.wires.iter().filter(|(_, wire)| wire.is_node());
        match nodes.map(|(conn, _)| self.core.output(*conn).len()).max() {
            Some(most) if most > PENDING + self.clients * self.longest => {
                Err(format!("{most} bytes are held for a node"))
            }
            _ => Ok(()),
        }
    }

    fn cut(&mut self) -> usize {
        match self.random.random_range(0..4) {
            0 => self.random.random_range(1..10),
            1 => self.random.random_range(1..2000),
            _ => usize::MAX,
        }
    }

    /// The data set that a node uses.
    fn data_of(&self, node: usize) -> usize {
        node.min(self.data.len() - 1)
    }

    fn some_client(&mut self) -> Option<Conn> {
        let clients: Vec<Conn> = self
            .wires
            .iter()
            .filter(|(_, wire)| matches!(wire.end, End::Client(_)))
            .map(|(conn, _)| *conn)
            .collect();
        (!clients.is_empty()).then(|| clients[self.random.random_range(0..clients.len())])
    }

    // ---- the driver ----

    fn turn(&mut self) {
        self.core.turn(Now { instant: self.now, unix_s: 0 });
    }

    fn end_turn(&mut self) {
        if self.core.due().is_some_and(|due| due <= self.now) {
            self.core.tick(&Kernel(&self.wires));
        }
        for _ in 0..1000 {
            while let Some(conn) = self.core.next_changed() {
                self.serve(conn);
            }
            let Some((conn, to)) = self.core.next_connect() else { return };
            let node = usize::from(to.port() % map::MOVED) - 1;
            self.number += 1;
            let mut session = Session::new(self.number, self.limit, self.trouble.refuses_multi);
            session.knows_users = node > 0 || !self.trouble.lacks_users;
            session.is_forgetful = self.fault == Some(Fault::NotLoggedIn);
            self.wires.insert(conn, Wire::new(End::Node(node, false, session)));
        }
        panic!("a turn does not end: 1000 rounds");
    }

    /// Delivers bytes or another event to the proxy. Returns whether there was anything.
    fn arrive(&mut self, conn: Conn, most: usize, seen: &mut Seen) -> bool {
        let Some(wire) = self.wires.get_mut(&conn) else { return false };
        if let End::Node(node, is_open @ false, _) = &mut wire.end {
            match self.nodes[*node] {
                Health::Stalled => return false,
                Health::Well => {
                    *is_open = true;
                    self.core.connected(conn);
                }
                Health::Dead => {
                    seen.refusals += 1;
                    self.core.failed(conn);
                }
            }
            self.serve(conn);
            return true;
        }
        if wire.is_reset {
            self.core.failed(conn);
            self.serve(conn);
            return true;
        }
        if !self.core.wants_read(conn) {
            return false;
        }
        let count = wire.to_proxy.len().min(most).min(64 * 1024);
        if count == 0 {
            if wire.has_ended && !std::mem::replace(&mut wire.end_is_known, true) {
                self.core.ended(conn);
                self.serve(conn);
                return true;
            }
            return false;
        }
        let mut bytes: Vec<u8> = wire.to_proxy.drain(..count).collect();
        self.core.received(conn, &mut bytes);
        self.serve(conn);
        true
    }

    fn serve(&mut self, conn: Conn) {
        loop {
            match self.core.next(conn, &Kernel(&self.wires)) {
                Next::Wait => break,
                Next::Write { .. } => {
                    let output = self.core.output(conn);
                    let Some(wire) = self.wires.get_mut(&conn) else { break };
                    if matches!(wire.end, End::Node(_, false, _)) {
                        break;
                    }
                    let room = self.window.saturating_sub(wire.from_proxy.len());
                    let count = output.len().min(room);
                    if count == 0 {
                        self.core.wrote(conn, 0);
                        break;
                    }
                    wire.from_proxy.extend_from_slice(&output[..count]);
                    self.core.wrote(conn, count);
                }
                Next::ShutdownWrite => {
                    if let Some(wire) = self.wires.get_mut(&conn) {
                        wire.is_finished = true;
                    }
                    self.core.shutdown_completed(conn, true);
                }
                Next::Close => {
                    let wire = self.wires.remove(&conn);
                    self.note(|| format!("{conn:?} is closed"));
                    // The node may still carry out what it received before the close. After a reset, nothing arrives: what
                    // was in flight is discarded, and what the proxy sent later must not follow what came before that.
                    if let Some(Wire {
                        end: End::Node(node, true, mut session),
                        from_proxy,
                        is_reset: false,
                        ..
                    }) = wire
                        && self.nodes[node] == Health::Well
                        && self.random.random_bool(0.5)
                    {
                        session.feed(&from_proxy);
                        let place = self.data_of(node);
                        let (data, mut rest) = (&mut self.data[place], Vec::new());
                        while session.step(data, self.now, &mut rest, &mut Vec::new()) {}
                    }
                    self.core.closed(conn);
                    return;
                }
            }
        }
        self.core.settle(conn);
    }

    // ---- the other ends ----

    /// Delivers bytes to a client or a node, which may answer. Returns whether bytes moved.
    fn leave(&mut self, conn: Conn, most: usize, seen: &mut Seen) -> Result<bool, String> {
        let Some(wire) = self.wires.get_mut(&conn) else { return Ok(false) };
        if wire.is_reset {
            wire.from_proxy.clear();
            return Ok(false);
        }
        let is_deaf = matches!(&wire.end, End::Pest(pest) if pest.kind == Kind::Deaf);
        let count = if is_deaf { 0 } else { wire.from_proxy.len().min(most) };
        let mut bytes: Vec<u8> = wire.from_proxy.drain(..count).collect();
        let mut moved = count > 0;
        match &mut wire.end {
            End::Client(_) => {
                seen.slow_reads += u64::from(!wire.from_proxy.is_empty());
                if self.fault == Some(Fault::Changed)
                    && bytes.len() > 8
                    && self.random.random_bool(0.02)
                {
                    let at = self.random.random_range(0..bytes.len());
                    if bytes[at] == b'.' {
                        bytes[at] = b',';
                    }
                }
                let trouble = self.trouble;
                let Some(Wire { end: End::Client(client), .. }) = self.wires.get_mut(&conn) else {
                    return Ok(moved);
                };
                client.receive(&bytes, trouble, seen)?;
            }
            End::Node(node, true, session) => {
                let node = *node;
                session.feed(&bytes);
                if self.nodes[node] == Health::Well {
                    moved |= self.answer(conn, node, seen);
                }
            }
            End::Node(..) | End::Pest(_) => {}
        }
        // The socket buffer has room again.
        if moved {
            self.turn();
            self.serve(conn);
            self.end_turn();
        }
        if self.wires.get(&conn).is_some_and(|wire| wire.is_finished && wire.from_proxy.is_empty())
            && let Some(wire) = self.wires.get_mut(&conn)
        {
            wire.has_ended = true;
        }
        Ok(moved)
    }

    /// Lets a node carry out some of the commands it has received.
    fn answer(&mut self, conn: Conn, node: usize, seen: &mut Seen) -> bool {
        let mut published: Vec<Published> = Vec::new();
        let (place, mut moved) = (self.data_of(node), false);
        for _ in 0..self.random.random_range(1..50) {
            let Some(Wire { end: End::Node(_, _, session), to_proxy, .. }) =
                self.wires.get_mut(&conn)
            else {
                break;
            };
            let start = to_proxy.len();
            if !session.step(&mut self.data[place], self.now, to_proxy, &mut published) {
                break;
            }
            moved = true;
            if session.is_of_default() && to_proxy[start..].starts_with(crowd::REFUSAL) {
                self.limit_refusals(conn, seen);
                continue;
            }
            if self.random.random_bool(0.02) {
                match self.fault {
                    Some(Fault::Lost) => to_proxy.truncate(start),
                    Some(Fault::Doubled) => to_proxy.extend_from_within(start..),
                    Some(Fault::Crossed) => {
                        let mut next = Vec::new();
                        session.step(&mut self.data[place], self.now, &mut next, &mut published);
                        to_proxy.splice(start..start, next);
                    }
                    Some(Fault::AppliedTwice) if to_proxy[start..].starts_with(b":") => {
                        let text =
                            String::from_utf8_lossy(&to_proxy[start + 1..]).trim().to_string();
                        let more = text.parse::<i64>().expect("a number") + 1;
                        to_proxy.truncate(start);
                        to_proxy.extend_from_slice(format!(":{more}\r\n").as_bytes());
                    }
                    _ => {}
                }
            }
        }
        for message in published {
            for wire in self.wires.values_mut() {
                if let End::Node(of, true, session) = &wire.end
                    && *of == node
                {
                    session.message(&message, &mut wire.to_proxy);
                }
            }
        }
        moved
    }
}
