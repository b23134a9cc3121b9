//! The invariants of every history.
//!
//! - A peer receives exactly what the model predicts: no byte lost, doubled or reordered, and nothing
//!   after the end.
//! - An orderly end loses nothing. The end is orderly if the engine closed the connection, if the peer
//!   closed its side or fell silent, or if the server stopped and the peer acknowledged its output
//!   within the grace period. What is *due* then: a half-closed client is owed the replies to everything it
//!   sent; at a stop, to everything that had arrived; at a timeout, to all complete requests. A reset by
//!   the peer, a stalled peer and the end of the grace period cut the output. A peer that keeps sending
//!   after a timeout, after `Connection: close` or beyond the limits of lingering may lose the rest to a
//!   reset.
//! - A connection closes for a valid reason. A timeout fires not before its limit (except that of a
//!   connect, which is not checked). A timeout for silence, a stall or an incomplete request fires not
//!   later than 1.5 times its limit, plus some slack. The first two never fire while the peer keeps
//!   acknowledging output.
//! - A stop finishes within its grace period, plus some slack.
//! - Pending output and buffered input stay within the scenario's bounds.

use super::{
    Scenario,
    line::{Phase, Verdict, Watch},
    wire::Wire,
    world::{World, note},
};
use crate::{Engine, Limits, Side, connection::link::End};
use std::time::{Duration, Instant};

impl<S: Scenario> World<S> {
    // ---- the driver's reports to the core ----

    /// Reports bytes that were read into the buffer.
    pub fn hand(&mut self, who: usize, bytes: usize) {
        let now = self.now();
        let Some(conn) = self.conn(who) else { return };
        self.events += 1;
        note!(self, "{who}: {bytes} bytes reach the core");
        let line = &mut self.lines[who];
        let station = &mut self.stations[line.station];
        if station.core.link(conn).is_some_and(|link| link.is_open()) {
            line.watch.handed += bytes;
            line.watch.heard = Some(now.instant);
            let expected = &mut self.expected[..self.used];
            self.scenario.handed(who, now, &self.buffer[..bytes], expected);
        }
        let index = line.station;
        station.core.received(conn, &mut self.buffer[..bytes]);
        if S::Engine::POSTS || S::Engine::CONNECTS {
            self.observe_all(index);
        }
        self.observe(who);
    }

    /// Reports the end of input.
    pub fn hand_end(&mut self, who: usize) {
        let now = self.now();
        let Some(conn) = self.conn(who) else { return };
        self.events += 1;
        note!(self, "{who}: end of input");
        let line = &mut self.lines[who];
        let station = &mut self.stations[line.station];
        if station.core.link(conn).is_some_and(|link| link.is_open()) && !line.watch.ended {
            line.watch.ended = true;
            self.scenario.ended(who, now, &mut self.expected[..self.used]);
        }
        station.core.ended(conn);
        self.observe(who);
    }

    pub fn failed(&mut self, who: usize) {
        let Some(conn) = self.conn(who) else { return };
        self.events += 1;
        note!(self, "{who}: failed");
        self.stations[self.lines[who].station].core.failed(conn);
        self.observe(who);
    }

    /// Closes a socket.
    pub fn close(&mut self, who: usize) {
        let Some(conn) = self.conn(who) else { return };
        self.observe(who);
        let line = &mut self.lines[who];
        let station = &mut self.stations[line.station];
        let end = station.core.link(conn).and_then(|link| link.why());
        let Some(end) = end else {
            return self.fail(format!("{who}: closed without a reason"));
        };
        self.events += 1;
        note!(self, "{who}: closed, {end:?}");
        self.coverage.visit(end);
        let unacknowledged = line.wire.unacknowledged();
        if self.strikes(super::Fault::ReplyAfterTheEnd) {
            self.lines[who].wire.sending.push(b"late\n");
        }
        let line = &mut self.lines[who];
        line.wire.close();
        line.phase = Phase::Down(end);
        self.departed(who);
        self.check_reason(who, end, unacknowledged);
        self.stations[self.lines[who].station].core.closed(conn);
        if self.stations[self.lines[who].station].core.has(conn) {
            self.fail(format!("{who}: the core has a connection that was closed"));
        }
    }

    // ---- checks after each call ----

    /// Observes what a call may have changed in any connection of a core.
    pub fn observe_all(&mut self, index: usize) {
        for who in 0..self.used {
            if self.lines[who].station == index && self.lines[who].is_up() {
                self.observe(who);
            }
        }
    }

    /// Observes what a call has changed in a connection.
    pub fn observe(&mut self, who: usize) {
        let now = self.now().instant;
        let line = &mut self.lines[who];
        let Some(link) = line.conn.and_then(|c| self.stations[line.station].core.link(c)) else {
            return;
        };
        self.coverage.visit(link.state());
        let watch = &mut line.watch;
        if self.expected[who].waits {
            watch.waited = Some(now);
        }
        if link.why().is_some() && watch.verdict.is_none() {
            let Watch { heard, took, owed, .. } = *watch;
            watch.verdict = Some(Verdict { at: now, heard, took, owed });
        }
        let pending = link.pending();
        // Output to a connection that is still being opened does not wait for its peer.
        let waits_for_peer = pending > 0 && !link.is_connecting();
        if watch.written + pending > watch.produced {
            watch.produced = watch.written + pending;
            watch.produced_at = Some(now);
        }
        if waits_for_peer {
            watch.stuck.get_or_insert(now);
        } else {
            watch.stuck = None;
        }
        if !waits_for_peer && line.wire.sending.is_empty() {
            watch.owed = None;
        } else {
            watch.owed.get_or_insert(now);
        }
        if pending > 0 || watch.jobs > 0 {
            watch.busy = Some(now);
        }
        if !link.is_open() && !link.is_connecting() && !watch.left {
            watch.left = true;
            watch.backlog = pending;
            self.scenario.left(who, &mut self.expected[..self.used]);
        }
    }

    /// Checks a connection at the end of a core's turn.
    pub fn check_turn(&mut self, who: usize) {
        let now = self.now().instant;
        let line = &mut self.lines[who];
        let Some(link) = line.conn.and_then(|c| self.stations[line.station].core.link(c)) else {
            return;
        };
        let expected = &self.expected[who];
        let watch = &mut line.watch;
        // After a stop, a driver returns once the last client is gone.
        let is_over = self.stations[line.station].core.clients() == 0;
        let most = S::PENDING + S::GROWTH * self.read;
        let mut wrong = None;
        if link.pending() > most {
            wrong = Some(format!("{} bytes of output pending, maximum {most}", link.pending()));
        }
        while expected.marks.get(watch.mark).is_some_and(|(_, out)| *out <= watch.produced) {
            watch.mark += 1;
        }
        let taken = watch.mark.checked_sub(1).map_or(0, |mark| expected.marks[mark].0);
        let held = watch.handed.saturating_sub(taken);
        let most = S::HELD + 2 * self.read;
        if held > most && !expected.closes && link.is_open() {
            wrong = Some(format!("{held} bytes of input are buffered; the limit is {most}"));
        }
        if let Some(stopped) = self.stopped.filter(|_| !is_over) {
            let slack = Duration::from_micros(8 * self.lag) + Duration::from_millis(20);
            let over = Duration::from_micros(self.time - stopped);
            let most = self.drain + self.grace;
            if over > most + slack {
                wrong = Some(format!("open {over:?} after a stop that may take {most:?}"));
            }
        }
        let late = self.late(who, now);
        if let Some(wrong) = wrong.or(late) {
            self.fail(format!("{who}: {wrong}"));
        }
    }

    /// Returns which timeout should have fired by now, if any.
    fn late(&self, who: usize, now: Instant) -> Option<String> {
        let line = &self.lines[who];
        let Watch { heard, took, produced_at, stuck, busy, jobs, owed, done_at, waited, .. } =
            line.watch;
        if !matches!(line.phase, Phase::Up) || self.held == Some(who) {
            return None;
        }
        let slack = Duration::from_micros(8 * self.lag) + Duration::from_millis(20);
        let Limits { idle, request } = self.limits;
        let over = |since: Option<Instant>, limit: Duration| {
            since.is_some_and(|since| now > since + limit + limit / 2 + slack)
        };
        if let Some(finished) = line.watch.finished_at {
            return (now > finished + Limits::LINGER + slack).then(|| "lingers too long".into());
        }
        if self.stopped.is_some() {
            return None; // the grace period bounds delivery
        }
        if let Some(since) = stuck
            && over(Some(since), idle)
            && over(took.or(Some(since)), idle)
        {
            return Some(format!("acknowledges nothing, and is still open after {idle:?}"));
        }
        if jobs > 0 || self.expected[who].waits {
            return None; // the peer waits for the server
        }
        if owed.is_some() && over(owed.max(heard).max(done_at).max(waited), idle) {
            return Some(format!("silent, acknowledges nothing, and still open after {idle:?}"));
        }
        let heard = heard.max(waited);
        let quiet = heard.max(took).max(produced_at).max(busy.filter(|_| stuck.is_none()));
        if over(quiet, idle) {
            return Some(format!("silent, and still open after {idle:?}"));
        }
        let inside = self.expected[who].inside.max(busy).max(produced_at);
        if self.expected[who].inside.is_some() && stuck.is_none() && over(inside, request) {
            return Some(format!("inside a request, and still open after {request:?}"));
        }
        None
    }

    /// Checks that a connection may be closed for this reason.
    fn check_reason(&mut self, who: usize, end: End, unacknowledged: usize) {
        let (line, expected) = (&self.lines[who], &self.expected[who]);
        let Watch { jobs, ended, finished_at, backlog, done_at, .. } = line.watch;
        let Some(Verdict { at: now, heard, took, owed }) = line.watch.verdict else {
            return self.fail(format!("{who}: the socket was closed while its link was open"));
        };
        let Wire { peer_ended, read_shut, reset, .. } = line.wire;
        let Limits { idle, request } = self.limits;
        let since = |at: Option<Instant>, limit: Duration| at.is_none_or(|at| now >= at + limit);
        let may_close = expected.closes || ended || expected.may_abort;
        let fine = match end {
            End::Close => may_close && finished_at.is_some() && (peer_ended || read_shut),
            End::ClosedByClient => expected.closes,
            End::HalfClosed => may_close && (peer_ended || read_shut),
            End::Drained | End::Delivered => {
                may_close && self.stopped.is_some() && unacknowledged == 0
            }
            End::Failed => reset || line.wire.peer_reset,
            // The engine may abort its own connections to other servers.
            End::Aborted if line.side == Some(Side::Upstream) => true,
            End::Aborted => expected.may_abort && backlog >= S::BACKLOG,
            End::Cut => {
                let least = self.drain + self.grace;
                self.stopped.is_some_and(|at| Duration::from_micros(self.time - at) >= least)
            }
            End::Idle => {
                since(heard, idle) && since(took, idle) && since(done_at, idle) && jobs == 0
            }
            End::Request => {
                since(expected.inside, request) && jobs == 0 && expected.inside.is_some()
            }
            End::Stalled => since(took, idle) && since(owed, idle) && owed.is_some(),
            End::Gone => line.wire.is_gone(),
            End::Linger => since(finished_at, Limits::LINGER) && finished_at.is_some(),
            End::Flooded => line.wire.arrived >= Limits::LINGER_BYTES,
            End::Connect => line.side == Some(Side::Upstream),
        };
        if !fine {
            self.fail(format!(
                "{who}: closed for {end:?}, not justified: {:?}, expected to close {}, inside {:?}",
                self.lines[who].watch, self.expected[who].closes, self.expected[who].inside
            ));
        }
    }

    // ---- what the peers receive ----

    /// Checks what a peer has received, from this index of its buffer.
    pub fn check_received(&mut self, who: usize, from: usize) {
        let now = self.now();
        let World { lines, expected, scenario, .. } = self;
        let (peer, expected) = (&mut lines[who].peer, &expected[who]);
        let until = peer.received.len();
        if until > expected.output.len() {
            let more = &peer.received[expected.output.len().max(from)..];
            let more = more[..more.len().min(60)].escape_ascii().to_string();
            return self.fail(format!("{who}: received \"{more}\", which is not expected"));
        }
        let before = peer.input.len();
        let mut input = std::mem::take(&mut peer.input);
        let same = scenario.received(who, now, expected, &peer.received, from..until, &mut input);
        peer.input = input;
        if peer.ended {
            peer.input.truncate(before);
        }
        if peer.input.len() > before && !peer.blocked && !peer.ended && !peer.done {
            peer.send_at.get_or_insert(self.time);
        }
        if let Err(wrong) = same {
            self.fail(format!("{who}: {wrong}"));
        }
    }

    /// Checks the final state, when no event is left.
    pub fn check_the_end(&mut self) {
        for who in 0..self.used {
            let line = &mut self.lines[who];
            let end = match line.phase {
                Phase::Down(end) => end,
                Phase::Unused => continue,
                _ if line.side == Some(Side::Upstream)
                    && (self.stopped.is_some() || self.expected[who].stays) =>
                {
                    continue;
                }
                phase => {
                    return self.fail(format!("{who}: never closed ({phase:?})"));
                }
            };
            // Bytes in flight arrive, whether the peer reads them or not.
            let from = line.peer.received.len();
            let Wire { delivered, sending, .. } = &line.wire;
            line.peer.received.extend_from_slice(delivered.front(delivered.len()));
            line.peer.received.extend_from_slice(sending.front(sending.len()));
            self.check_received(who, from);
            self.check_complete(who, end);
            if self.wrong.is_some() {
                return;
            }
        }
        if let Err(wrong) = self.scenario.over() {
            return self.fail(wrong);
        }
        let clients: usize = self.stations.iter().map(|station| station.core.clients()).sum();
        if clients > 0 {
            self.fail(format!("the cores count {clients} clients at the end"));
        }
    }

    /// Checks that everything that was due has arrived.
    fn check_complete(&mut self, who: usize, end: End) {
        let (line, expected) = (&self.lines[who], &self.expected[who]);
        let refused = line.wire.peer_reset;
        let whole = match end {
            _ if line.peer.left => false,
            End::Close | End::HalfClosed | End::Drained | End::Delivered => true,
            // A client that keeps sending after `Connection: close` may lose replies.
            End::ClosedByClient => !refused && line.wire.arrived == line.watch.handed,
            // Output that others append in the turn in which a connection times out is lost.
            End::Idle | End::Request if S::Engine::POSTS || S::Engine::CONNECTS => {
                !refused && line.watch.backlog == 0
            }
            End::Idle | End::Request | End::Linger | End::Flooded => !refused,
            _ => false,
        };
        if whole && line.peer.received.len() < expected.output.len() {
            let rest = &expected.output[line.peer.received.len()..];
            let rest = rest[..rest.len().min(60)].escape_ascii().to_string();
            return self.fail(format!("{who}: ended ({end:?}) without \"{rest}\""));
        }
        let due = match end {
            _ if expected.closes || line.peer.left => 0,
            End::HalfClosed | End::Drained | End::Delivered | End::Close => {
                line.watch.due_at_stop.unwrap_or(line.wire.arrived)
            }
            _ => 0,
        };
        if line.watch.handed < due {
            self.fail(format!(
                "{who}: ended ({end:?}) with {} bytes of {due} interpreted",
                line.watch.handed
            ));
        }
    }
}
