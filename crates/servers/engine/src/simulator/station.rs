//! A core of the simulated server, and its sockets.

use super::{Random, line::Line};
use crate::{Conn, Core, Engine, SocketProbe};
use std::cell::Cell;

/// Marks an index without a connection.
const NONE: usize = usize::MAX;

pub(super) struct Station<E: Engine> {
    pub core: Core<E>,
    /// The number of each connection, indexed by [`Conn::index`].
    pub table: Vec<usize>,
    /// Letters that it has not received yet, and the cores that sent them.
    pub inbox: Vec<(usize, E::Letter)>,
    pub wake_at: Option<u64>,
    /// Driven by completions; otherwise by readiness.
    pub ring: bool,
    /// Readiness is edge-triggered.
    pub edge: bool,
    /// Connections to be accepted.
    pub accepts: Vec<usize>,
    /// A stop must be carried out.
    pub stops: bool,
    /// Scratch buffer for output that is being written.
    pub copy: Vec<u8>,
}

impl<E: Engine> Station<E> {
    pub fn new(core: Core<E>, random: &mut Random) -> Self {
        Station {
            core,
            table: Vec::new(),
            inbox: Vec::new(),
            wake_at: None,
            ring: random.chance(500),
            edge: random.chance(500),
            accepts: Vec::new(),
            stops: false,
            copy: Vec::new(),
        }
    }

    pub fn insert(&mut self, conn: Conn, who: usize) {
        if self.table.len() <= conn.index() {
            self.table.resize(conn.index() + 1, NONE);
        }
        self.table[conn.index()] = who;
    }
}

/// The sockets of a core, as the core queries them.
pub(super) struct Sockets<'a> {
    lines: &'a [Line],
    table: &'a [usize],
    asked: Cell<u32>,
}

impl<'a> Sockets<'a> {
    pub fn new(lines: &'a [Line], table: &'a [usize]) -> Self {
        Sockets { lines, table, asked: Cell::new(0) }
    }

    /// Returns how often [`SocketProbe::is_readable`] was called.
    pub fn asked(&self) -> u32 {
        self.asked.get()
    }

    fn line(&self, conn: Conn) -> Option<&Line> {
        let who = *self.table.get(conn.index())?;
        self.lines.get(who).filter(|line| line.conn == Some(conn))
    }
}

impl SocketProbe for Sockets<'_> {
    fn unacknowledged(&self, conn: Conn) -> usize {
        self.line(conn).map_or(0, |line| line.wire.unacknowledged())
    }

    fn is_readable(&self, conn: Conn) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.line(conn).is_some_and(|line| line.wire.is_readable())
    }

    fn is_gone(&self, conn: Conn) -> bool {
        self.line(conn).is_some_and(|line| line.wire.is_gone())
    }

    fn has_ended(&self, conn: Conn) -> bool {
        self.line(conn).is_some_and(|line| line.wire.input_has_ended())
    }
}
