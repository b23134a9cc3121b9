//! A manual driver of a core: sockets are buffers, and a test advances the time.
#![allow(dead_code)] // each test uses its own part

use regatta_engine::{Conn, Core, Engine, Limits, Next, Now};
use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// How a driver writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// At once, like a reactor.
    AtOnce,
    /// Output is taken and completed later, like a ring.
    Later,
}

pub const BOTH: [Writes; 2] = [Writes::AtOnce, Writes::Later];

/// A core, and the peers at the other side of its sockets.
pub struct ByHand<E: Engine> {
    pub core: Core<E>,
    writes: Writes,
    now: Now,
    peers: BTreeMap<Conn, Peer>,
    dialled: VecDeque<(Conn, SocketAddr)>,
}

/// The other side of a connection.
#[derive(Default)]
struct Peer {
    /// Sent to the core, but not read yet.
    input: VecDeque<u8>,
    ended: bool,
    /// Written by the core.
    got: Vec<u8>,
    /// How many more bytes may be written; `None` if unlimited.
    room: Option<usize>,
    /// Taken by the driver, but not written yet.
    taken: VecDeque<u8>,
    /// The core has shut down its sending side, or closed.
    finished: bool,
    closed: bool,
}

impl<E: Engine> ByHand<E> {
    pub fn new(engine: E, writes: Writes) -> Self {
        let now = Now { instant: Instant::now(), unix_s: 0 };
        let core = Core::new(engine, Limits::default(), now);
        ByHand { core, writes, now, peers: BTreeMap::new(), dialled: VecDeque::new() }
    }

    /// A client connects.
    pub fn client(&mut self) -> Conn {
        let conn = self.core.accept();
        self.peers.insert(conn, Peer::default());
        self.turn();
        conn
    }

    /// A client connects that has already sent `bytes` when it is accepted.
    pub fn client_with(&mut self, bytes: &str) -> Conn {
        let conn = self.core.accept();
        let input = bytes.bytes().collect();
        self.peers.insert(conn, Peer { input, ..Peer::default() });
        self.turn();
        conn
    }

    /// Returns the next connection that the engine requested.
    pub fn dialled(&mut self) -> Option<Conn> {
        self.dialled.pop_front().map(|(conn, _)| conn)
    }

    /// A requested connection is open.
    pub fn open(&mut self, conn: Conn) {
        self.peers.insert(conn, Peer::default());
        self.core.connected(conn);
        self.carry_out(conn);
        self.turn();
    }

    /// The peer sends something.
    pub fn send(&mut self, conn: Conn, text: &str) {
        self.peer(conn).input.extend(text.bytes());
        self.turn();
    }

    /// Returns how many bytes from the peer have not been read.
    pub fn unread(&mut self, conn: Conn) -> usize {
        self.peer(conn).input.len()
    }

    /// The peer closes its sending side.
    pub fn end(&mut self, conn: Conn) {
        self.peer(conn).ended = true;
        self.turn();
    }

    /// The connection breaks, or cannot be opened.
    pub fn fail(&mut self, conn: Conn) {
        self.core.failed(conn);
        self.carry_out(conn);
        self.turn();
    }

    /// The connection breaks. The engine is notified at the end of the turn, as with completions.
    pub fn breaks(&mut self, conn: Conn) {
        self.core.failed(conn);
        self.core.change(conn);
    }

    /// A client's bytes are read as the first event of the turn.
    pub fn receives(&mut self, conn: Conn, text: &str) {
        self.core.received(conn, &mut text.as_bytes().to_vec());
        self.core.change(conn);
    }

    /// The turn ends.
    pub fn turn_ends(&mut self) {
        self.turn();
    }

    /// The peer accepts only this many more bytes; `None` if unlimited.
    pub fn room(&mut self, conn: Conn, bytes: Option<usize>) {
        self.peer(conn).room = bytes;
        self.carry_out(conn);
        self.turn();
    }

    /// Returns what has been written to the peer since the last call.
    pub fn got(&mut self, conn: Conn) -> String {
        String::from_utf8(std::mem::take(&mut self.peer(conn).got)).unwrap()
    }

    /// Whether the core has shut down its sending side, or closed.
    pub fn finished(&mut self, conn: Conn) -> bool {
        self.peer(conn).finished
    }

    /// Whether the core has closed the connection.
    pub fn closed(&mut self, conn: Conn) -> bool {
        self.peer(conn).closed
    }

    /// Time passes.
    pub fn pass(&mut self, time: Duration) {
        self.now.instant += time;
        self.turn();
    }

    /// The server stops.
    pub fn stop(&mut self, grace: Duration) {
        self.core.stop(grace);
        for conn in self.core.to_drain().collect::<Vec<_>>() {
            self.peer(conn).ended = true;
        }
        self.turn();
    }

    fn peer(&mut self, conn: Conn) -> &mut Peer {
        self.peers.get_mut(&conn).expect("a connection that was opened")
    }

    /// Runs turns until nothing more happens.
    fn turn(&mut self) {
        loop {
            self.core.turn(self.now);
            let mut busy = false;
            for conn in self.peers.keys().copied().collect::<Vec<_>>() {
                busy |= self.read(conn);
                self.carry_out(conn);
            }
            if self.core.due().is_some_and(|due| due <= self.now.instant) {
                self.core.tick(&());
            }
            while let Some(conn) = self.core.next_changed() {
                busy = true;
                self.carry_out(conn);
            }
            while let Some((conn, to)) = self.core.next_connect() {
                self.dialled.push_back((conn, to));
            }
            if !busy {
                return;
            }
        }
    }

    fn read(&mut self, conn: Conn) -> bool {
        if !self.core.wants_read(conn) {
            return false;
        }
        let peer = self.peer(conn);
        let mut input: Vec<u8> = peer.input.drain(..).collect();
        if !input.is_empty() {
            self.core.received(conn, &mut input);
            return true;
        }
        if std::mem::take(&mut peer.ended) {
            self.core.ended(conn);
            return true;
        }
        false
    }

    fn carry_out(&mut self, conn: Conn) {
        loop {
            if self.writes == Writes::Later && self.complete(conn) {
                continue;
            }
            match self.core.next(conn, &()) {
                Next::Wait => break,
                Next::Write { .. } if self.writes == Writes::Later => {
                    let output = self.core.take_output(conn);
                    self.peer(conn).taken.extend(output);
                }
                Next::Write { .. } => {
                    let output = self.core.output(conn).to_vec();
                    let peer = self.peer(conn);
                    let fits = peer.room.unwrap_or(usize::MAX).min(output.len());
                    peer.got.extend_from_slice(&output[..fits]);
                    peer.room = peer.room.map(|room| room - fits);
                    self.core.wrote(conn, fits);
                    if fits < output.len() {
                        break;
                    }
                }
                Next::ShutdownWrite => {
                    self.peer(conn).finished = true;
                    self.core.shutdown_completed(conn, true);
                }
                Next::Close => {
                    if let Some(peer) = self.peers.get_mut(&conn) {
                        (peer.finished, peer.closed) = (true, true);
                    }
                    self.core.closed(conn);
                    break;
                }
            }
        }
        self.core.settle(conn);
    }

    /// Completes as much of the taken output as fits.
    fn complete(&mut self, conn: Conn) -> bool {
        let Some(peer) = self.peers.get_mut(&conn) else { return false };
        let fits = peer.room.unwrap_or(usize::MAX).min(peer.taken.len());
        if fits == 0 {
            return false;
        }
        peer.got.extend(peer.taken.drain(..fits));
        peer.room = peer.room.map(|room| room - fits);
        self.core.completed(conn, fits, None);
        true
    }
}
