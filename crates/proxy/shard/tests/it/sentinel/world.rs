//! One history: the proxy's core, its sockets, the clients, the servers and the Sentinels.

use super::{
    Fault, Seen,
    client::Client,
    park::{Park, SENTINELS, SERVERS, Session, State, address, sentinel_address},
};
use crate::driver::Driver;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_engine::{Conn, Limits};
use regatta_keyspace::map::{Map, Slots};
use regatta_shard::{Sentinels, Settings};
use std::{mem, net::SocketAddr, time::Duration};

pub struct World {
    random: SmallRng,
    driver: Driver<End>,
    park: Park,
    /// The failover whose master the proxy uses.
    used: usize,
    prints: bool,
}

enum End {
    Client(Client),
    Server(usize, Session),
    Sentinel(usize, Session),
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
        let settings = Settings::of_sentinels(map, vec!["one".into(), "two".into()], sentinels);
        let driver = Driver::new(settings, seed, end_at);
        let park = Park::new(fault, driver.now);
        World { random, driver, park, used: 0, prints }
    }

    pub fn run(mut self, seen: &mut Seen) -> Result<(), String> {
        for _ in 0..200 {
            self.driver.now += Duration::from_millis(20);
            self.everything(1.0, seen)?;
            if self.driver.shared.knows_masters() {
                break;
            }
        }
        if !self.driver.shared.knows_masters() {
            return Err("the masters are not known".into());
        }
        for number in 0..self.random.random_range(1..4) {
            self.driver.accept(End::Client(Client::new(number)));
        }
        for _ in 0..STEPS {
            let most = Duration::from_millis(50);
            let most = if self.random.random_bool(0.1) { LONGEST_STEP } else { most };
            self.driver.now += self.random.random_range(Duration::ZERO..most);
            if self.random.random_bool(0.4) {
                self.park.change(&mut self.random, seen);
                self.follow_park(seen);
            }
            for wire in self.driver.wires.values_mut() {
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
        let (until, mut errors) = (self.driver.now + FOLLOWS_WITHIN, 0);
        while self.driver.now < until {
            errors += self.everything(1.0, seen)?;
            self.driver.now += Duration::from_millis(100);
        }
        Ok(errors)
    }

    /// The proxy uses the present masters, and all requests have their replies.
    fn check_end(&mut self, seen: &mut Seen) -> Result<(), String> {
        let master = address(*self.park.elected.last().expect("one"));
        let used = self.driver.shared.current().nodes.address(0);
        if used != master {
            return Err(format!("the master is {master}, and the proxy uses {used}"));
        }
        for wire in self.driver.wires.values_mut() {
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
        for wire in self.driver.wires.values_mut() {
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
        let used = self.driver.shared.current().nodes.address(0);
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

    /// Runs one step of each connection, with this probability. Returns how many errors clients got.
    fn everything(&mut self, probability: f64, seen: &mut Seen) -> Result<usize, String> {
        let mut errors = 0;
        self.park.now = self.driver.now;
        self.driver.turn();
        for conn in self.driver.conns() {
            let wire = &self.driver.wires[&conn];
            let is_due = !wire.is_open && wire.since + OPENS_WITHIN <= self.driver.now;
            if self.random.random_bool(probability) || is_due {
                self.arrive(conn);
            }
        }
        self.driver.end_turn();
        self.check_used()?;
        for conn in self.driver.conns() {
            if self.random.random_bool(probability) {
                errors += self.leave(conn, seen)?;
            }
        }
        self.driver.turn();
        self.driver.end_turn();
        Ok(errors)
    }

    /// Delivers bytes to the proxy, or what has happened to the connection.
    fn arrive(&mut self, conn: Conn) {
        let Some(wire) = self.driver.wires.get(&conn) else { return };
        let accepts = match &wire.end {
            End::Server(server, _) => self.park.servers[*server].is_up,
            End::Sentinel(sentinel, _) => self.park.sentinels[*sentinel].state != State::Refusing,
            End::Client(_) => true,
        };
        if wire.is_lost || !wire.is_open && !accepts {
            self.driver.fail(conn);
        } else {
            self.driver.arrive(conn, &mut self.random);
        }
    }

    /// Delivers bytes to a client, a server or a Sentinel, which may answer. Returns how many errors a client got.
    fn leave(&mut self, conn: Conn, seen: &mut Seen) -> Result<usize, String> {
        let wire = self.driver.wires.get_mut(&conn);
        let Some(wire) = wire.filter(|wire| wire.is_open && !wire.is_lost) else { return Ok(0) };
        let bytes = wire.leave(&mut self.random);
        let (random, prints) = (&mut self.random, self.prints);
        let out = &mut wire.to_proxy;
        let mut errors = 0;
        match &mut wire.end {
            End::Client(client) => errors = client.receive(&bytes, seen)?,
            End::Server(server, session) => {
                session.received.feed(&bytes);
                for _ in 0..random.random_range(1..8) {
                    let start = out.len();
                    let has_more =
                        self.park.ask_server((*server, &mut *session), out, seen, random)?;
                    if !has_more {
                        break;
                    }
                    if prints {
                        let reply = out[start..].escape_ascii();
                        let command = session.received.last.escape_ascii();
                        println!("{conn:?} server {server}: {command}: {reply}");
                    }
                }
            }
            End::Sentinel(sentinel, session) => {
                session.received.feed(&bytes);
                let mut start = out.len();
                while self.park.ask_sentinel((*sentinel, &mut *session), out, seen, random) {
                    if prints {
                        let reply = out[start..].escape_ascii();
                        let command = session.received.last.escape_ascii();
                        println!("{conn:?} Sentinel {sentinel}: {command}: {reply}");
                    }
                    start = out.len();
                }
            }
        }
        self.driver.resume(conn);
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
