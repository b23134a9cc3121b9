//! Driving a core by readiness, as the reactor of `regatta-serve` does.

use crate::Next;
use crate::simulator::{
    Fault, Scenario,
    line::Phase,
    wire::Read,
    world::{World, note},
};

/// Maximum reads, and maximum steps, for one connection before others are served.
const READS: usize = 2;
const WRITES: usize = 16;

impl<S: Scenario> World<S> {
    /// Handles the readiness that the kernel reports for a connection.
    pub fn ready_events(&mut self, who: usize) {
        let edge = self.stations[self.lines[who].station].edge;
        if matches!(self.lines[who].phase, Phase::Connecting(..)) {
            if self.connected(who) {
                self.lines[who].ready.readable = edge;
                self.serve_ready(who);
            }
            return;
        }
        let line = &mut self.lines[who];
        if line.phase != Phase::Up {
            return;
        }
        let ready = &mut line.ready;
        let mut event = std::mem::take(&mut ready.again);
        let watched = ready.watched_read || edge;
        let news = std::mem::take(&mut ready.news);
        if watched && line.wire.is_readable() && (!edge || news) {
            ready.readable = true;
            event = true;
        } else if !edge {
            ready.news = news;
        }
        if ready.watched_write && line.wire.is_writable() {
            ready.writable = true;
            event = true;
        }
        if event {
            self.serve_ready(who);
        }
    }

    /// Reads and writes what is possible, then waits for the rest.
    pub fn serve_ready(&mut self, who: usize) {
        if !self.lines[who].is_up() {
            return;
        }
        for _ in 0..READS {
            self.read(who);
            self.take_on_jobs(self.lines[who].station, who);
            if !self.advance(who) {
                return;
            }
            if !self.may_read(who) {
                break;
            }
        }
        self.watch(who);
    }

    fn may_read(&self, who: usize) -> bool {
        let line = &self.lines[who];
        let Some(conn) = line.conn else { return false };
        line.ready.readable
            && self.stations[line.station].core.wants_read(conn)
            && !self.is_held(line.station)
    }

    fn read(&mut self, who: usize) {
        if !self.may_read(who) {
            return;
        }
        let edge = self.stations[self.lines[who].station].edge;
        let line = &mut self.lines[who];
        match line.wire.read(&mut self.buffer) {
            Read::Bytes(read) => {
                let full = read == self.buffer.len();
                line.ready.readable = edge && (full || line.wire.is_readable());
                self.drained(who);
                self.hand(who, read);
            }
            Read::End => {
                line.ready.readable = false;
                self.hand_end(who);
            }
            Read::Blocked => line.ready.readable = false,
            Read::Failed => self.failed(who),
        }
    }

    /// Carries out what the core requests. Returns false when the connection is closed.
    fn advance(&mut self, who: usize) -> bool {
        let Some(conn) = self.conn(who) else { return false };
        let index = self.lines[who].station;
        for _ in 0..WRITES {
            match self.next(who, conn) {
                Next::Wait => return true,
                Next::Write { .. } => {
                    if !self.lines[who].ready.writable {
                        return true;
                    }
                    let output = self.stations[index].core.output(conn);
                    let bytes = output.len();
                    // The world cannot be changed while a core's output is borrowed.
                    let mut copy = std::mem::take(&mut self.stations[index].copy);
                    copy.clear();
                    copy.extend_from_slice(self.stations[index].core.output(conn));
                    let written = self.write(who, 0, &copy);
                    self.stations[index].copy = copy;
                    match written {
                        Some(written) => {
                            self.lines[who].ready.writable = written == bytes;
                            self.lines[who].watch.written += written;
                            self.stations[index].core.wrote(conn, written);
                            self.observe(who);
                        }
                        None => self.failed(who),
                    }
                    self.take_on_jobs(index, who);
                }
                Next::ShutdownWrite => {
                    let done = self.shutdown_write(who);
                    self.stations[index].core.shutdown_completed(conn, done);
                    self.observe(who);
                }
                Next::Close => {
                    if self.held == Some(who)
                        || self.held.is_none() && self.strikes(Fault::NeverCloses)
                    {
                        self.held = Some(who);
                        return false;
                    }
                    self.close(who);
                    return false;
                }
            }
        }
        self.lines[who].ready.again = true;
        self.wake(index);
        true
    }

    /// Registers the events that a connection waits for.
    fn watch(&mut self, who: usize) {
        let Some(conn) = self.conn(who) else { return };
        let index = self.lines[who].station;
        let is_held = self.is_held(index);
        let station = &mut self.stations[index];
        station.core.settle(conn);
        let read = station.core.wants_read(conn);
        let line = &mut self.lines[who];
        let connecting = matches!(line.phase, Phase::Connecting(..));
        let write = !line.ready.writable && (connecting || !station.core.output(conn).is_empty());
        line.ready.watched_read = read;
        line.ready.watched_write = write && !connecting;
        let more = if station.edge {
            read && line.ready.readable && !is_held
        } else {
            read && line.wire.is_readable()
        };
        if more {
            line.ready.again |= station.edge;
            self.wake(index);
        } else if write && line.wire.is_writable() {
            self.wake(index);
        }
        note!(self, "{who}: waits, reads {read}, writes {write}");
    }
}
