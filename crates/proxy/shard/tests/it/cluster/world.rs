//! One history: the proxy's core, its sockets, the clients and the cluster.

use super::{
    Fault, Seen,
    client::Client,
    node::{Cluster, Session, TAGS, address, node_at, slot_of, slot_of_key},
};
use crate::driver::{Driver, Wire};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_engine::Conn;
use regatta_proto::resp::write_command;
use regatta_shard::Settings;
use std::time::Duration;

pub struct World {
    random: SmallRng,
    driver: Driver<End>,
    cluster: Cluster,
    /// Masters may die.
    is_mortal: bool,
    prints: bool,
}

enum End {
    Client(Client),
    /// A client whose replies are not checked, and the bytes that it has received.
    Plain(Vec<u8>),
    Node(usize, Session),
}

const STEPS: usize = 150;

/// A history has become quiet if nothing happens for this time.
const QUIET: Duration = Duration::from_millis(600);

impl World {
    pub fn new(seed: u64, fault: Option<Fault>, prints: bool) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let cluster = Cluster::new(random.random_range(3..6), fault, &mut random);
        let is_mortal = fault.is_none() && random.random_bool(0.3);
        let settings = Settings::of_cluster(vec![address(0), address(1)]);
        let driver = Driver::new(settings, seed, |to| End::Node(node_at(to), Session::default()));
        World { random, driver, cluster, is_mortal, prints }
    }

    /// The cluster, to change it.
    pub fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Sends a command over a new connection and runs until nothing happens any longer. Returns the reply.
    pub fn say(&mut self, line: &str) -> String {
        let conn = self.driver.accept(End::Plain(Vec::new()));
        let wire = self.driver.wires.get_mut(&conn).expect("it is open");
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        write_command(words, &mut wire.to_proxy);
        self.settle(&mut Seen::default()).expect("it becomes quiet");
        match self.driver.wires.get(&conn).map(|wire| &wire.end) {
            Some(End::Plain(bytes)) => String::from_utf8(bytes.clone()).expect("text"),
            _ => panic!("the connection was closed"),
        }
    }

    pub fn run(mut self, seen: &mut Seen) -> Result<(), String> {
        for number in 0..self.random.random_range(1..4) {
            let client = Client::new(number, &mut self.random);
            self.driver.accept(End::Client(client));
        }
        for _ in 0..STEPS {
            self.driver.now += Duration::from_micros(self.random.random_range(0..4000));
            if self.random.random_bool(0.4) {
                self.cluster.change(&mut self.random, seen);
            }
            if self.is_mortal && self.random.random_bool(0.02) {
                self.kill(seen);
            }
            for wire in self.driver.wires.values_mut() {
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
        for wire in self.driver.wires.values_mut() {
            if let End::Client(client) = &mut wire.end {
                client.ask_all(&mut wire.to_proxy);
            }
        }
        self.settle_clients(seen)?;
        self.check_clients()
    }

    /// Runs until no request is pending. One that a node has sent to a master that has died waits for some seconds.
    fn settle_clients(&mut self, seen: &mut Seen) -> Result<(), String> {
        let owes = |wire: &Wire<End>| matches!(&wire.end, End::Client(client) if client.owes() > 0);
        for _ in 0..10 {
            self.settle(seen)?;
            if !self.driver.wires.values().any(owes) {
                break;
            }
            self.driver.now += Duration::from_secs(1);
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
        for wire in self.driver.wires.values_mut() {
            match &mut wire.end {
                End::Client(client) => client.doubt(&slots),
                End::Node(node, ..) => wire.is_lost |= *node == master,
                End::Plain(_) => {}
            }
        }
    }

    /// Runs until nothing happens any longer. Without bytes in flight, only the proxy's timers can cause something.
    fn settle(&mut self, seen: &mut Seen) -> Result<(), String> {
        let mut until = self.driver.now + QUIET;
        for _ in 0..2000 {
            if self.everything(1.0, seen)? {
                self.driver.now += Duration::from_millis(20);
                until = self.driver.now + QUIET;
                continue;
            }
            match self.driver.core.due() {
                Some(due) if due <= until => {
                    self.driver.now = due.max(self.driver.now + Duration::from_millis(1))
                }
                _ => {
                    self.driver.now = until;
                    return Ok(());
                }
            }
        }
        Err("the history did not become quiet".into())
    }

    /// All requests have their replies, and each key is where it belongs, with its value.
    fn check_clients(&mut self) -> Result<(), String> {
        for wire in self.driver.wires.values_mut() {
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
            self.driver.now += Duration::from_secs(40);
            self.settle(seen)?;
            let settings = self.driver.shared.current();
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

    /// Runs one step of each connection, with this probability. Returns whether bytes moved.
    fn everything(&mut self, probability: f64, seen: &mut Seen) -> Result<bool, String> {
        let mut moved = false;
        self.driver.turn();
        for conn in self.driver.conns() {
            if self.random.random_bool(probability) {
                moved |= self.arrive(conn);
            }
        }
        self.driver.end_turn();
        for conn in self.driver.conns() {
            if self.random.random_bool(probability) {
                moved |= self.leave(conn, seen)?;
            }
        }
        Ok(moved)
    }

    /// Delivers bytes to the proxy, or what has happened to the connection. Returns whether there was anything.
    fn arrive(&mut self, conn: Conn) -> bool {
        let Some(wire) = self.driver.wires.get(&conn) else { return false };
        let fails = match &wire.end {
            End::Node(node, _) if !wire.is_open => self.cluster.nodes[*node].is_dead,
            // What it has sent before may still arrive.
            _ => wire.is_lost && (wire.to_proxy.is_empty() || self.random.random_bool(0.5)),
        };
        if fails {
            self.driver.fail(conn);
        }
        fails || self.driver.arrive(conn, &mut self.random)
    }

    /// Delivers bytes to a client or a node, which may answer.
    fn leave(&mut self, conn: Conn, seen: &mut Seen) -> Result<bool, String> {
        let Some(wire) = self.driver.wires.get_mut(&conn).filter(|wire| !wire.is_lost) else {
            return Ok(false);
        };
        let bytes = wire.leave(&mut self.random);
        let mut moved = !bytes.is_empty();
        match &mut wire.end {
            End::Client(client) => client.receive(&bytes, seen)?,
            End::Plain(received) => received.extend_from_slice(&bytes),
            End::Node(node, session) if wire.is_open => {
                session.received.feed(&bytes);
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
                        let command = session.received.last.escape_ascii();
                        println!("{conn:?} node {node}: {command}: {reply}");
                    }
                    moved = true;
                }
            }
            End::Node(..) => {}
        }
        if moved {
            self.driver.resume(conn);
        }
        Ok(moved)
    }
}
