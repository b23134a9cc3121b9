//! One history: the proxy's core, its sockets, the clients and the cluster.

use super::{
    Fault, Seen,
    client::Client,
    node::{Cluster, Session, TAGS, address, slot_of, slot_of_key},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_engine::{Conn, Core, Limits, Next, Now, SocketProbe};
use regatta_proto::resp::write_command;
use regatta_shard::{Proxy, Settings, Shared};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

pub struct World {
    random: SmallRng,
    core: Core<Proxy>,
    now: Instant,
    shared: Arc<Shared>,
    cluster: Cluster,
    wires: BTreeMap<Conn, Wire>,
    /// Masters may die.
    is_mortal: bool,
    prints: bool,
}

/// A connection to a client or a node, and the bytes in flight.
struct Wire {
    end: End,
    to_proxy: Vec<u8>,
    from_proxy: Vec<u8>,
    /// The node has died.
    is_lost: bool,
}

enum End {
    Client(Client),
    /// A client whose replies are not checked, and the bytes that it has received.
    Plain(Vec<u8>),
    /// The node, and whether the connection is open.
    Node(usize, bool, Session),
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

/// A history has become quiet if nothing happens for this time.
const QUIET: Duration = Duration::from_millis(600);

impl World {
    pub fn new(seed: u64, fault: Option<Fault>, prints: bool) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let cluster = Cluster::new(random.random_range(3..6), fault, &mut random);
        let is_mortal = fault.is_none() && random.random_bool(0.3);
        let mut settings = Settings::of_cluster(vec![address(0), address(1)]);
        settings.node_timeout = Duration::from_secs(3000);
        let shared = Arc::new(Shared::new(settings));
        let now = Instant::now();
        let limits =
            Limits { idle: Duration::from_secs(36_000), request: Duration::from_secs(36_000) };
        let proxy = Proxy::new(Arc::clone(&shared), seed);
        let core = Core::new(proxy, limits, Now { instant: now, unix_s: 0 });
        let wires = BTreeMap::new();
        World { random, core, now, shared, cluster, wires, is_mortal, prints }
    }

    /// The cluster, to change it.
    pub fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Sends a command over a new connection and runs until nothing happens any longer. Returns the reply.
    pub fn say(&mut self, line: &str) -> String {
        self.turn();
        let conn = self.core.accept();
        self.insert(conn, End::Plain(Vec::new()));
        self.serve(conn);
        self.end_turn();
        let wire = self.wires.get_mut(&conn).expect("it is open");
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        write_command(words, &mut wire.to_proxy);
        self.settle(&mut Seen::default()).expect("it becomes quiet");
        match self.wires.get(&conn).map(|wire| &wire.end) {
            Some(End::Plain(bytes)) => String::from_utf8(bytes.clone()).expect("text"),
            _ => panic!("the connection was closed"),
        }
    }

    pub fn run(mut self, seen: &mut Seen) -> Result<(), String> {
        for number in 0..self.random.random_range(1..4) {
            self.turn();
            let conn = self.core.accept();
            let client = Client::new(number, &mut self.random);
            self.insert(conn, End::Client(client));
            self.serve(conn);
            self.end_turn();
        }
        for _ in 0..STEPS {
            self.now += Duration::from_micros(self.random.random_range(0..4000));
            if self.random.random_bool(0.4) {
                self.cluster.change(&mut self.random, seen);
            }
            if self.is_mortal && self.random.random_bool(0.02) {
                self.kill(seen);
            }
            for wire in self.wires.values_mut() {
                if let End::Client(client) = &mut wire.end {
                    client.send(&mut self.random, &mut wire.to_proxy);
                }
            }
            self.everything(0.6, seen)?;
        }
        self.cluster.settle(&mut self.random, seen);
        self.settle_clients(seen)?;
        self.check_clients()?;
        self.check_map(seen)?;
        for wire in self.wires.values_mut() {
            if let End::Client(client) = &mut wire.end {
                client.ask_all(&mut wire.to_proxy);
            }
        }
        self.settle_clients(seen)?;
        self.check_clients()
    }

    /// Runs until no request is pending. One that a node has sent to a master that has died waits for some seconds.
    fn settle_clients(&mut self, seen: &mut Seen) -> Result<(), String> {
        let owes = |wire: &Wire| matches!(&wire.end, End::Client(client) if client.owes() > 0);
        for _ in 0..10 {
            self.settle(seen)?;
            if !self.wires.values().any(owes) {
                break;
            }
            self.now += Duration::from_secs(1);
        }
        Ok(())
    }

    /// A master dies.
    fn kill(&mut self, seen: &mut Seen) {
        let master = self.cluster.owner(slot_of(self.random.random_range(0..TAGS)));
        if self.cluster.nodes.len() >= 8 {
            return;
        }
        let Some(slots) = self.cluster.die(master, &mut self.random, seen) else { return };
        if self.prints {
            println!("node {master} dies, with slots {slots:?}");
        }
        for wire in self.wires.values_mut() {
            match &mut wire.end {
                End::Client(client) => client.doubt(&slots),
                End::Node(node, ..) => wire.is_lost |= *node == master,
                End::Plain(_) => {}
            }
        }
    }

    /// Runs until nothing happens any longer. Without bytes in flight, only the proxy's timers can cause something.
    fn settle(&mut self, seen: &mut Seen) -> Result<(), String> {
        let mut until = self.now + QUIET;
        for _ in 0..2000 {
            if self.everything(1.0, seen)? {
                self.now += Duration::from_millis(20);
                until = self.now + QUIET;
                continue;
            }
            match self.core.due() {
                Some(due) if due <= until => {
                    self.now = due.max(self.now + Duration::from_millis(1))
                }
                _ => {
                    self.now = until;
                    return Ok(());
                }
            }
        }
        Err("the history did not become quiet".into())
    }

    /// All requests have their replies, and each key is where it belongs, with its value.
    fn check_clients(&mut self) -> Result<(), String> {
        for wire in self.wires.values_mut() {
            let End::Client(client) = &mut wire.end else { continue };
            if client.owes() > 0 {
                return Err(format!("a client never got {} replies", client.owes()));
            }
            for key in client.used() {
                let owner = self.cluster.owner(slot_of_key(&key));
                for (number, node) in self.cluster.nodes.iter().enumerate() {
                    let value = node.keys.get(&key);
                    let is_right = match number == owner {
                        true => client.permits(&key, value),
                        false => value.is_none(),
                    };
                    if !is_right {
                        return Err(format!("{} at node {number}: {value:?}", key.escape_ascii()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Once nothing moves, the proxy knows the slots as they are, whichever node it asks.
    fn check_map(&mut self, seen: &mut Seen) -> Result<(), String> {
        for _ in 0..self.cluster.nodes.len() + 1 {
            self.now += Duration::from_secs(40);
            self.settle(seen)?;
            let settings = self.shared.current();
            let map = settings.map.cluster().expect("a cluster");
            for slot in (0..TAGS).map(slot_of) {
                let known = settings.nodes.address(map.node_of(slot));
                let right = address(self.cluster.owner(slot));
                if known != right {
                    return Err(format!("slot {slot} is at {right}, and the map says {known}"));
                }
            }
        }
        Ok(())
    }

    // ---- the driver ----

    fn insert(&mut self, conn: Conn, end: End) {
        let (to_proxy, from_proxy) = (Vec::new(), Vec::new());
        self.wires.insert(conn, Wire { end, to_proxy, from_proxy, is_lost: false });
    }

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
            let node = self.node_at(to);
            self.insert(conn, End::Node(node, false, Session::default()));
        }
        panic!("a turn does not end: 1000 rounds");
    }

    fn node_at(&self, to: SocketAddr) -> usize {
        let nodes = 0..self.cluster.nodes.len();
        nodes.into_iter().find(|node| address(*node) == to).expect("the address of a node")
    }

    /// Runs one step of each connection, with this probability. Returns whether bytes moved.
    fn everything(&mut self, probability: f64, seen: &mut Seen) -> Result<bool, String> {
        let mut moved = false;
        self.turn();
        for conn in self.wires.keys().copied().collect::<Vec<_>>() {
            if self.random.random_bool(probability) {
                moved |= self.arrive(conn);
            }
        }
        self.end_turn();
        for conn in self.wires.keys().copied().collect::<Vec<_>>() {
            if self.random.random_bool(probability) {
                moved |= self.leave(conn, seen)?;
            }
        }
        Ok(moved)
    }

    /// Delivers bytes to the proxy, or that a connection is open.
    fn arrive(&mut self, conn: Conn) -> bool {
        let Some(wire) = self.wires.get_mut(&conn) else { return false };
        if let End::Node(node, is_open @ false, _) = &mut wire.end {
            if self.cluster.nodes[*node].is_dead {
                self.core.failed(conn);
            } else {
                *is_open = true;
                self.core.connected(conn);
            }
            self.serve(conn);
            return true;
        }
        // What it has sent before may still arrive.
        if wire.is_lost && (wire.to_proxy.is_empty() || self.random.random_bool(0.5)) {
            self.core.failed(conn);
            self.serve(conn);
            return true;
        }
        let most =
            if self.random.random_bool(0.3) { self.random.random_range(1..60) } else { 65_536 };
        let count = wire.to_proxy.len().min(most);
        if count == 0 || !self.core.wants_read(conn) {
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
                    let Some(wire) = self.wires.get_mut(&conn) else { break };
                    if matches!(wire.end, End::Node(_, false, _)) {
                        break;
                    }
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

    /// Delivers bytes to a client or a node, which may answer.
    fn leave(&mut self, conn: Conn, seen: &mut Seen) -> Result<bool, String> {
        let Some(wire) = self.wires.get_mut(&conn).filter(|wire| !wire.is_lost) else {
            return Ok(false);
        };
        let most =
            if self.random.random_bool(0.3) { self.random.random_range(1..60) } else { 65_536 };
        let count = wire.from_proxy.len().min(most);
        let bytes: Vec<u8> = wire.from_proxy.drain(..count).collect();
        let mut moved = count > 0;
        match &mut wire.end {
            End::Client(client) => client.receive(&bytes, seen)?,
            End::Plain(received) => received.extend_from_slice(&bytes),
            End::Node(node, true, session) => {
                session.feed(&bytes);
                for _ in 0..self.random.random_range(1..8) {
                    let start = wire.to_proxy.len();
                    let end = (*node, &mut *session);
                    let random = &mut self.random;
                    let out = &mut wire.to_proxy;
                    if !self.cluster.step(end, out, seen, random) {
                        break;
                    }
                    if self.prints {
                        let reply = wire.to_proxy[start..].escape_ascii();
                        let command = session.last.escape_ascii();
                        println!("{conn:?} node {node}: {command}: {reply}");
                    }
                    moved = true;
                }
            }
            End::Node(..) => {}
        }
        if moved {
            self.turn();
            self.serve(conn);
            self.end_turn();
        }
        Ok(moved)
    }
}
