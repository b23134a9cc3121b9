//! One history: the proxy's core, its sockets, the clients, the servers and the Sentinels.

use super::{
    Fault, Seen,
    client::Client,
    park::{Park, SENTINELS, SERVERS, Session, State, address, sentinel_address},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_engine::{Conn, Core, Limits, Next, Now, SocketProbe};
use regatta_keyspace::map::{Map, Slots};
use regatta_shard::{Proxy, Sentinels, Settings, Shared};
use std::{
    collections::BTreeMap,
    mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

pub struct World {
    random: SmallRng,
    core: Core<Proxy>,
    now: Instant,
    shared: Arc<Shared>,
    park: Park,
    wires: BTreeMap<Conn, Wire>,
    /// The failover whose master the proxy uses.
    used: usize,
    prints: bool,
}

/// A connection, and the bytes in flight.
struct Wire {
    end: End,
    to_proxy: Vec<u8>,
    from_proxy: Vec<u8>,
    is_open: bool,
    /// When it opens at the latest, if the other end accepts it: before the proxy's timeout.
    opens_by: Instant,
    /// It was reset.
    is_lost: bool,
}

enum End {
    Client(Client),
    Server(usize, Session),
    Sentinel(usize, Session),
}

/// What the kernel would report.
struct Kernel<'w>(&'w BTreeMap<Conn, Wire>);

impl SocketProbe for Kernel<'_> {
    fn unacknowledged(&self, conn: Conn) -> usize {
        self.0.get(&conn).map_or(0, |wire| wire.from_proxy.len())
    }

    fn is_readable(&self, conn: Conn) -> bool {
        self.0.get(&conn).is_some_and(|wire| !wire.to_proxy.is_empty())
    }

    fn is_gone(&self, conn: Conn) -> bool {
        self.0.get(&conn).is_none_or(|wire| wire.is_lost)
    }

    fn has_ended(&self, conn: Conn) -> bool {
        self.is_gone(conn)
    }
}

const STEPS: usize = 150;

/// The longest step of time.
const LONGEST_STEP: Duration = Duration::from_secs(3);

/// How long a server that accepts lets a connection wait, before the last step. With that step it is
/// shorter than the proxy's timeout.
const OPENS_WITHIN: Duration = Duration::from_secs(1);
const _: () = assert!(OPENS_WITHIN.as_secs() + LONGEST_STEP.as_secs() < Limits::CONNECT.as_secs());

/// How long the proxy may take to follow once all Sentinels know the master: their longest pause, and a probe.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(12);

impl World {
    pub fn new(seed: u64, fault: Option<Fault>, prints: bool) -> Self {
        let random = SmallRng::seed_from_u64(seed);
        let sentinels = Sentinels {
            names: (0..SENTINELS).map(|at| sentinel_address(at).to_string()).collect(),
            addresses: (0..SENTINELS).map(|at| Some(sentinel_address(at))).collect(),
            masters: vec!["one".into(), "two".into()],
            auth: None,
        };
        let map = Map::new(1, Slots::even(2).expect("two nodes"));
        let mut settings = Settings::of_sentinels(map, vec!["one".into(), "two".into()], sentinels);
        settings.node_timeout = Duration::from_secs(3000);
        let shared = Arc::new(Shared::new(settings));
        let now = Instant::now();
        let limits =
            Limits { idle: Duration::from_secs(36_000), request: Duration::from_secs(36_000) };
        let proxy = Proxy::new(Arc::clone(&shared), seed);
        let core = Core::new(proxy, limits, Now { instant: now, unix_s: 0 });
        let (park, wires) = (Park::new(fault, now), BTreeMap::new());
        World { random, core, now, shared, park, wires, used: 0, prints }
    }

    pub fn run(mut self, seen: &mut Seen) -> Result<(), String> {
        for _ in 0..200 {
            self.now += Duration::from_millis(20);
            self.everything(1.0, seen)?;
            if self.shared.knows_masters() {
                break;
            }
        }
        if !self.shared.knows_masters() {
            return Err("the masters are not known".into());
        }
        for number in 0..self.random.random_range(1..4) {
            self.turn();
            let conn = self.core.accept();
            self.insert(conn, End::Client(Client::new(number)), true);
            self.serve(conn);
            self.end_turn();
        }
        for _ in 0..STEPS {
            let most = Duration::from_millis(50);
            let most = if self.random.random_bool(0.1) { LONGEST_STEP } else { most };
            self.now += self.random.random_range(Duration::ZERO..most);
            if self.random.random_bool(0.4) {
                self.park.change(&mut self.random, seen);
                self.follow_park(seen);
            }
            for wire in self.wires.values_mut() {
                if let End::Client(client) = &mut wire.end {
                    client.send(&mut self.random, &mut wire.to_proxy);
                }
            }
            self.everything(0.7, seen)?;
        }
        self.park.settle(seen);
        self.follow_park(seen);
        self.settle(seen)?;
        self.check_end(seen)
    }

    /// Runs for as long as the proxy may take to follow.
    fn settle(&mut self, seen: &mut Seen) -> Result<usize, String> {
        let (until, mut errors) = (self.now + FOLLOWS_WITHIN, 0);
        while self.now < until {
            errors += self.everything(1.0, seen)?;
            self.now += Duration::from_millis(100);
        }
        Ok(errors)
    }

    /// The proxy uses the present masters, and all requests have their replies.
    fn check_end(&mut self, seen: &mut Seen) -> Result<(), String> {
        let master = address(*self.park.elected.last().expect("one"));
        let used = self.shared.current().nodes.address(0);
        if used != master {
            return Err(format!("the master is {master}, and the proxy uses {used}"));
        }
        for wire in self.wires.values_mut() {
            let End::Client(client) = &mut wire.end else { continue };
            if client.owes() > 0 {
                return Err(format!("a client never got {} replies", client.owes()));
            }
            client.ask_all(&mut wire.to_proxy);
        }
        if self.settle(seen)? > 0 {
            return Err("an error after all has healed".into());
        }
        Ok(())
    }

    /// What the servers and Sentinels do by themselves.
    fn follow_park(&mut self, seen: &mut Seen) {
        let (kicks, announces) =
            (mem::take(&mut self.park.kicks), mem::take(&mut self.park.announces));
        let announcement = self.park.announcement();
        for wire in self.wires.values_mut() {
            match &wire.end {
                End::Server(server, _) => wire.is_lost |= kicks.contains(server),
                End::Sentinel(sentinel, session) => {
                    let state = self.park.sentinels[*sentinel].state;
                    wire.is_lost |= state == State::Refusing;
                    if session.is_subscribed && announces.contains(sentinel) && state == State::Well
                    {
                        wire.to_proxy.extend_from_slice(&announcement);
                        seen.announced += 1;
                    }
                }
                End::Client(_) => {}
            }
        }
    }

    /// The proxy uses a master that a majority has known.
    fn check_used(&mut self) -> Result<(), String> {
        let used = self.shared.current().nodes.address(0);
        let Some(server) = (0..SERVERS).find(|server| address(*server) == used) else {
            return Ok(());
        };
        if server == self.park.elected[self.used] {
            return Ok(());
        }
        let Some(failover) = self.park.failover_of(server, self.used) else {
            let (elected, committed) = (&self.park.elected, self.park.committed);
            return Err(format!(
                "it uses {used} after failover {}: elected {elected:?}, known: {committed}",
                self.used
            ));
        };
        if self.prints {
            println!("the proxy uses {used} after failover {failover}");
        }
        self.used = failover;
        Ok(())
    }

    // ---- the driver ----

    fn insert(&mut self, conn: Conn, end: End, is_open: bool) {
        let (to_proxy, from_proxy) = (Vec::new(), Vec::new());
        let opens_by = self.now + OPENS_WITHIN;
        self.wires
            .insert(conn, Wire { end, to_proxy, from_proxy, is_open, opens_by, is_lost: false });
    }

    fn turn(&mut self) {
        self.park.now = self.now;
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
            let end = end_at(to);
            self.insert(conn, end, false);
        }
        panic!("a turn does not end: 1000 rounds");
    }

    /// Runs one step of each connection, with this probability. Returns how many errors clients got.
    fn everything(&mut self, probability: f64, seen: &mut Seen) -> Result<usize, String> {
        let mut errors = 0;
        self.turn();
        for conn in self.wires.keys().copied().collect::<Vec<_>>() {
            let wire = &self.wires[&conn];
            let is_due = !wire.is_open && wire.opens_by <= self.now;
            if self.random.random_bool(probability) || is_due {
                self.arrive(conn);
            }
        }
        self.end_turn();
        self.check_used()?;
        for conn in self.wires.keys().copied().collect::<Vec<_>>() {
            if self.random.random_bool(probability) {
                errors += self.leave(conn, seen)?;
            }
        }
        self.turn();
        self.end_turn();
        Ok(errors)
    }

    /// Delivers bytes to the proxy, or what has happened to the connection.
    fn arrive(&mut self, conn: Conn) {
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        let accepts = match &wire.end {
            End::Server(server, _) => self.park.servers[*server].is_up,
            End::Sentinel(sentinel, _) => self.park.sentinels[*sentinel].state != State::Refusing,
            End::Client(_) => true,
        };
        if wire.is_lost || !wire.is_open && !accepts {
            self.core.failed(conn);
            return self.serve(conn);
        }
        if !mem::replace(&mut wire.is_open, true) {
            self.core.connected(conn);
            return self.serve(conn);
        }
        let most =
            if self.random.random_bool(0.3) { self.random.random_range(1..60) } else { 65_536 };
        let count = wire.to_proxy.len().min(most);
        if count == 0 || !self.core.wants_read(conn) {
            return;
        }
        let mut bytes: Vec<u8> = wire.to_proxy.drain(..count).collect();
        self.core.received(conn, &mut bytes);
        self.serve(conn);
    }

    fn serve(&mut self, conn: Conn) {
        loop {
            match self.core.next(conn, &Kernel(&self.wires)) {
                Next::Wait => break,
                Next::Write { .. } => {
                    let Some(wire) = self.wires.get_mut(&conn).filter(|wire| wire.is_open) else {
                        break;
                    };
                    let output = self.core.output(conn);
                    let count = output.len();
                    wire.from_proxy.extend_from_slice(output);
                    self.core.wrote(conn, count);
                }
                Next::ShutdownWrite => self.core.shutdown_completed(conn, true),
                Next::Close => {
                    self.wires.remove(&conn);
                    self.core.closed(conn);
                    return;
                }
            }
        }
        self.core.settle(conn);
    }

    /// Delivers bytes to a client, a server or a Sentinel, which may answer. Returns how many errors a client got.
    fn leave(&mut self, conn: Conn, seen: &mut Seen) -> Result<usize, String> {
        let Some(wire) = self.wires.get_mut(&conn).filter(|wire| wire.is_open && !wire.is_lost)
        else {
            return Ok(0);
        };
        let most =
            if self.random.random_bool(0.3) { self.random.random_range(1..60) } else { 65_536 };
        let count = wire.from_proxy.len().min(most);
        let bytes: Vec<u8> = wire.from_proxy.drain(..count).collect();
        let (random, prints) = (&mut self.random, self.prints);
        let out = &mut wire.to_proxy;
        let mut errors = 0;
        match &mut wire.end {
            End::Client(client) => errors = client.receive(&bytes, seen)?,
            End::Server(server, session) => {
                session.feed(&bytes);
                for _ in 0..random.random_range(1..8) {
                    let start = out.len();
                    let has_more =
                        self.park.ask_server((*server, &mut *session), out, seen, random)?;
                    if !has_more {
                        break;
                    }
                    if prints {
                        let reply = out[start..].escape_ascii();
                        let command = session.last.escape_ascii();
                        println!("{conn:?} server {server}: {command}: {reply}");
                    }
                }
            }
            End::Sentinel(sentinel, session) => {
                session.feed(&bytes);
                let mut start = out.len();
                while self.park.ask_sentinel((*sentinel, &mut *session), out, seen, random) {
                    if prints {
                        let reply = out[start..].escape_ascii();
                        let command = session.last.escape_ascii();
                        println!("{conn:?} Sentinel {sentinel}: {command}: {reply}");
                    }
                    start = out.len();
                }
            }
        }
        self.turn();
        self.serve(conn);
        self.end_turn();
        Ok(errors)
    }
}

/// Who is at this address.
fn end_at(to: SocketAddr) -> End {
    let server = (0..SERVERS).find(|server| address(*server) == to);
    let sentinel = (0..SENTINELS).find(|sentinel| sentinel_address(*sentinel) == to);
    match (server, sentinel) {
        (Some(server), _) => End::Server(server, Session::default()),
        (_, Some(sentinel)) => End::Sentinel(sentinel, Session::default()),
        _ => panic!("nobody is at {to}"),
    }
}
