//! Driving a core by completions, as the ring of `regatta-serve` does.

use crate::Next;
use crate::simulator::{
    Fault, Scenario,
    line::{Phase, Receiving, sooner},
    wire::Read,
    world::{World, note},
};
use std::mem;

impl<S: Scenario> World<S> {
    /// Serves a connection that was just accepted. It is read once before a receive is submitted
    /// for it.
    pub fn ring_accepted(&mut self, who: usize) {
        self.lines[who].ring.fresh = true;
        if self.is_held(self.lines[who].station) {
            return self.serve_ring(who);
        }
        match self.lines[who].wire.read(&mut self.buffer) {
            Read::Bytes(read) => {
                self.drained(who);
                self.hand(who, read);
            }
            Read::End => self.hand_end(who),
            Read::Blocked | Read::Failed => {}
        }
        self.serve_ring(who);
    }

    /// Handles the completions of a connection that are due.
    pub fn ring_events(&mut self, who: usize) {
        if matches!(self.lines[who].phase, Phase::Connecting(..)) {
            if self.connected(who) {
                self.ring_change(who);
            }
            return;
        }
        if self.lines[who].phase != Phase::Up {
            return;
        }
        let due = |at: Option<u64>| at.is_some_and(|at| at <= self.time);
        let ring = &self.lines[who].ring;
        let (receives, cancelled) = (due(ring.receive_at), due(ring.cancelled_at));
        if due(ring.sent_at) {
            self.ring_sent(who);
        }
        if receives {
            self.ring_receives(who);
        }
        if cancelled {
            let ring = &mut self.lines[who].ring;
            (ring.receiving, ring.cancelled_at, ring.receive_at) = (Receiving::No, None, None);
            self.ring_change(who);
        }
        let ring = &self.lines[who].ring;
        let rest = [ring.receive_at, ring.cancelled_at, ring.sent_at];
        if let Some(at) = rest.into_iter().flatten().min() {
            sooner(&mut self.stations[self.lines[who].station].wake_at, at);
        }
    }

    fn ring_receives(&mut self, who: usize) {
        let most = match self.random.chance(500) {
            true => self.buffer.len(),
            false => 1 + self.random.below(self.buffer.len()),
        };
        let line = &mut self.lines[who];
        line.ring.receive_at = None;
        if line.ring.receiving == Receiving::No {
            return;
        }
        match line.wire.read(&mut self.buffer[..most]) {
            Read::Bytes(read) => {
                if line.wire.is_readable() {
                    line.ring.receive_at = Some(self.time + self.lag / 2);
                }
                self.drained(who);
                self.hand(who, read);
            }
            Read::End => {
                (line.ring.receiving, line.ring.cancelled_at) = (Receiving::No, None);
                self.hand_end(who);
            }
            Read::Blocked => {}
            Read::Failed => {
                (line.ring.receiving, line.ring.cancelled_at) = (Receiving::No, None);
                self.failed(who);
            }
        }
        self.ring_change(who);
    }

    /// Handles the completion of a send.
    fn ring_sent(&mut self, who: usize) {
        let Some(conn) = self.conn(who) else { return };
        let index = self.lines[who].station;
        let ring = &mut self.lines[who].ring;
        ring.sent_at = None;
        let Some(bytes) = ring.sending.take() else { return };
        let sent = mem::take(&mut ring.taken);
        self.events += 1;
        if sent == 0 {
            // It was cancelled, or failed.
            ring.sent = 0;
            self.stations[index].core.failed(conn);
        } else if ring.sent + sent < bytes.len() && !ring.closing {
            ring.sent += sent;
            self.lines[who].watch.written += sent;
            self.stations[index].core.completed(conn, sent, None);
            self.observe(who);
            return self.ring_send(who, bytes);
        } else {
            ring.sent = 0;
            self.lines[who].watch.written += sent;
            self.stations[index].core.completed(conn, sent, Some(bytes));
        }
        self.observe(who);
        self.ring_change(who);
    }

    /// Starts to send the rest of these bytes.
    fn ring_send(&mut self, who: usize, bytes: Vec<u8>) {
        let from = self.lines[who].ring.sent;
        let written = self.write(who, from, &bytes);
        let soon = self.soon();
        let line = &mut self.lines[who];
        line.ring.taken = written.unwrap_or(0);
        line.ring.sending = Some(bytes);
        if written != Some(0) {
            line.ring.sent_at = Some(soon);
            sooner(&mut self.stations[line.station].wake_at, soon);
        }
    }

    /// The peer has acknowledged something, so a send that waits for buffer space continues.
    pub fn ring_has_room(&mut self, who: usize) {
        let ring = &mut self.lines[who].ring;
        if ring.taken == 0
            && ring.sent_at.is_none()
            && let Some(bytes) = ring.sending.take()
        {
            self.ring_send(who, bytes);
        }
    }

    pub fn ring_change(&mut self, who: usize) {
        self.lines[who].ring.changed = true;
    }

    /// Serves the connections that have changed.
    pub fn ring_changed(&mut self, index: usize) {
        for who in 0..self.used {
            if self.lines[who].station == index && mem::take(&mut self.lines[who].ring.changed) {
                self.serve_ring(who);
            }
        }
    }

    /// Carries out what the core requests, and receives if input is wanted.
    pub fn serve_ring(&mut self, who: usize) {
        if !self.lines[who].is_up() {
            return;
        }
        let Some(conn) = self.conn(who) else { return };
        let index = self.lines[who].station;
        self.take_on_jobs(index, who);
        loop {
            let next = self.next(who, conn);
            if self.lines[who].ring.closing {
                return self.ring_close(who);
            }
            match next {
                Next::Wait => break,
                Next::Write { last } if last && self.lines[who].ring.fresh => {
                    let output = self.stations[index].core.output(conn).to_vec();
                    match self.write(who, 0, &output) {
                        Some(written) => {
                            let line = &mut self.lines[who];
                            line.ring.fresh = written == output.len();
                            line.watch.written += written;
                            if written > 0 {
                                self.stations[index].core.wrote(conn, written);
                            }
                            self.observe(who);
                        }
                        None => self.failed(who),
                    }
                }
                Next::Write { .. } => {
                    let output = self.stations[index].core.take_output(conn);
                    self.ring_send(who, output);
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
                        return;
                    }
                    self.lines[who].ring.closing = true;
                    return self.ring_close(who);
                }
            }
        }
        if matches!(self.lines[who].phase, Phase::Connecting(..)) {
            return self.stations[index].core.settle(conn);
        }
        self.stations[index].core.settle(conn);
        self.ring_receive(who);
    }

    fn ring_receive(&mut self, who: usize) {
        let Some(conn) = self.conn(who) else { return };
        let soon = self.soon();
        let is_held = self.is_held(self.lines[who].station);
        let line = &mut self.lines[who];
        let station = &mut self.stations[line.station];
        let wants = station.core.wants_read(conn) && !is_held;
        match (line.ring.receiving, wants) {
            (Receiving::No, true) => {
                line.ring.fresh = false;
                line.ring.receiving = Receiving::Yes;
                if line.wire.is_readable() {
                    line.ring.receive_at = Some(soon);
                    sooner(&mut station.wake_at, soon);
                }
            }
            (Receiving::Yes, false) => {
                line.ring.receiving = Receiving::Ending;
                line.ring.cancelled_at = Some(soon);
                sooner(&mut station.wake_at, soon);
            }
            _ => {}
        }
        note!(self, "{who}: waits, receives {wants}");
    }

    /// Cancels operations in flight, and closes once there are none.
    fn ring_close(&mut self, who: usize) {
        let soon = self.soon();
        let line = &mut self.lines[who];
        let ring = &mut line.ring;
        if ring.receiving == Receiving::Yes {
            ring.receiving = Receiving::Ending;
            ring.cancelled_at = Some(soon);
        }
        if ring.sending.is_some() && ring.sent_at.is_none() {
            ring.sent_at = Some(soon);
        }
        if let Some(at) = ring.cancelled_at.into_iter().chain(ring.sent_at).min() {
            sooner(&mut self.stations[line.station].wake_at, at);
        }
        if ring.receiving != Receiving::Ending && ring.sending.is_none() {
            self.close(who);
        }
    }
}
