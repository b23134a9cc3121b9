//! What drives the proxy in the simulations of a cluster and of Sentinels: in place of sockets, the network and a clock.

use rand::{Rng, rngs::SmallRng};
use regatta_engine::{Conn, Core, Limits, Next, Now, SocketProbe};
use regatta_proto::resp::{CommandLimits, Commands};
use regatta_shard::{Proxy, Settings, Shared};
use std::{
    collections::BTreeMap,
    mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// The proxy's core, and its connections to these ends.
pub struct Driver<E> {
    pub core: Core<Proxy>,
    pub now: Instant,
    pub shared: Arc<Shared>,
    pub wires: BTreeMap<Conn, Wire<E>>,
    /// Who is at an address.
    end_at: fn(SocketAddr) -> E,
}

/// A connection, and the bytes in flight.
pub struct Wire<E> {
    pub end: E,
    pub to_proxy: Vec<u8>,
    pub from_proxy: Vec<u8>,
    pub is_open: bool,
    /// When it began.
    pub since: Instant,
    /// It was reset.
    pub is_lost: bool,
}

/// What the kernel would report.
struct Kernel<'w, E>(&'w BTreeMap<Conn, Wire<E>>);

impl<E> SocketProbe for Kernel<'_, E> {
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

impl<E> Driver<E> {
    /// A proxy whose nodes may be slow. Its own random numbers follow from `seed`.
    pub fn new(mut settings: Settings, seed: u64, end_at: fn(SocketAddr) -> E) -> Self {
        settings.node_timeout = Duration::from_secs(3000);
        let shared = Arc::new(Shared::new(settings));
        let proxy = Proxy::new(Arc::clone(&shared), seed);
        let now = Instant::now();
        let limits =
            Limits { idle: Duration::from_secs(36_000), request: Duration::from_secs(36_000) };
        let core = Core::new(proxy, limits, Now { instant: now, unix_s: 0 });
        Driver { core, now, shared, wires: BTreeMap::new(), end_at }
    }

    pub fn conns(&self) -> Vec<Conn> {
        self.wires.keys().copied().collect()
    }

    /// A client connects.
    pub fn accept(&mut self, end: E) -> Conn {
        self.turn();
        let conn = self.core.accept();
        self.insert(conn, end, true);
        self.serve(conn);
        self.end_turn();
        conn
    }

    fn insert(&mut self, conn: Conn, end: E, is_open: bool) {
        let (to_proxy, from_proxy, since) = (Vec::new(), Vec::new(), self.now);
        let wire = Wire { end, to_proxy, from_proxy, is_open, since, is_lost: false };
        self.wires.insert(conn, wire);
    }

    pub fn turn(&mut self) {
        self.core.turn(Now { instant: self.now, unix_s: 0 });
    }

    pub fn end_turn(&mut self) {
        if self.core.due().is_some_and(|due| due <= self.now) {
            self.core.tick(&Kernel(&self.wires));
        }
        for _ in 0..1000 {
            while let Some(conn) = self.core.next_changed() {
                self.serve(conn);
            }
            let Some((conn, to)) = self.core.next_connect() else { return };
            self.insert(conn, (self.end_at)(to), false);
        }
        panic!("a turn does not end: 1000 rounds");
    }

    /// A connection fails.
    pub fn fail(&mut self, conn: Conn) {
        self.core.failed(conn);
        self.serve(conn);
    }

    /// Delivers bytes to the proxy, or that a connection is open. Returns whether there was anything.
    pub fn arrive(&mut self, conn: Conn, random: &mut SmallRng) -> bool {
        let Some(wire) = self.wires.get_mut(&conn) else { return false };
        if !mem::replace(&mut wire.is_open, true) {
            self.core.connected(conn);
            self.serve(conn);
            return true;
        }
        let count = cut(wire.to_proxy.len(), random);
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

    /// Lets the proxy continue after an end has taken bytes, or has sent some.
    pub fn resume(&mut self, conn: Conn) {
        self.turn();
        self.serve(conn);
        self.end_turn();
    }
}

impl<E> Wire<E> {
    /// The next bytes that reach the end.
    pub fn leave(&mut self, random: &mut SmallRng) -> Vec<u8> {
        self.from_proxy.drain(..cut(self.from_proxy.len(), random)).collect()
    }
}

/// How many bytes of so many arrive at once.
fn cut(length: usize, random: &mut SmallRng) -> usize {
    length.min(if random.random_bool(0.3) { random.random_range(1..60) } else { 65_536 })
}

/// What a node has received over a connection.
#[derive(Default)]
pub struct Received {
    commands: Option<Commands>,
    input: Vec<u8>,
    /// The last command, as it was sent.
    pub last: Vec<u8>,
}

impl Received {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The next command, if it is whole.
    pub fn next(&mut self) -> Option<Vec<Vec<u8>>> {
        let commands = self.commands.get_or_insert_with(|| Commands::new(CommandLimits::default()));
        let (taken, command) = commands.next(&self.input).expect("the proxy speaks RESP");
        let args = command.map(|command| command.args().map(<[u8]>::to_vec).collect::<Vec<_>>());
        self.last.clear();
        self.last.extend(self.input.drain(..taken));
        args
    }
}
