//! What happens on one connection of a load thread: connect, write, read, check, close. This is the
//! hot path: per ready connection one read, one write, and one clock read between them, without
//! allocation. `worker/ends.rs` handles connections whose close the server announced.

use super::{
    driver::Driver,
    heard::{hear, streams},
    holding::Back,
    loss::Loss,
    sealed::send_sealed,
    state::{KEPT, Worker},
};
use crate::{
    clock,
    sockets::{
        connection::{Connection, SHORTEST_PAUSE, State},
        poller::Interest,
        socket::{self, Received},
        tls::{Fault, Session},
    },
};
use regatta_record::Exchange;
use regatta_script::{At, Cursor, Dialect};
use rustix::fd::{AsFd, OwnedFd};
use std::ops::Range;

/// Receive buffer in bytes of a connection that does not read; the kernel doubles it (socket(7)).
const STALLED_BUFFER: usize = 4096;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Reads the available bytes: usually once, and again only if the buffer was filled or the `end` of
    /// input was reported. If there may be still more, the poller reports the socket again, after
    /// others.
    #[inline]
    pub(super) fn read_all(&mut self, slot: u32, end: bool) {
        const READS: usize = 16;
        for _ in 0..READS {
            let n = self.read(slot);
            if n == 0 || (n < self.buffer.len() && !end) {
                return;
            }
        }
        self.reads_all = false;
        let Connection { socket, waits_to_write, .. } = &self.connections[slot as usize];
        let interest = if *waits_to_write { Interest::ReadAndWrite } else { Interest::Read };
        if let Some(socket) = socket
            && let Err(error) = self.poller.change(socket, slot, interest)
        {
            self.lost(slot, Loss::Read(error));
        }
    }

    /// Reads what has arrived on a connection by now, and not what arrives meanwhile: a server that never
    /// pauses could otherwise keep the thread here.
    #[cold]
    pub(super) fn read_arrived_on(&mut self, slot: u32) {
        let Connection { socket, tls, .. } = &self.connections[slot as usize];
        let size = if tls.is_some() { self.sealed.len() } else { self.buffer.len() };
        let unread = socket.as_ref().map_or(0, socket::unread);
        for _ in 0..unread.div_ceil(size as u64) {
            if !self.connections[slot as usize].is_read() {
                return;
            }
            self.read(slot);
            V::between(self);
        }
    }

    /// Reads once, checks the bytes, and lets the drive send further requests. Returns the number of
    /// bytes read: 0 if there is nothing more to read now, and always with TLS.
    // `take` calls it for each event. Since `read_arrived_on` calls it, too, it was a call, which cost 3% of the CPU of
    // a load with one request in flight on each connection.
    #[inline(always)]
    fn read(&mut self, slot: u32) -> usize {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return 0 };
        if connection.tls.is_some() {
            self.read_sealed(slot);
            return 0;
        }
        match socket::receive_some(socket, &mut self.buffer) {
            Ok(Received::Bytes(n)) => {
                self.count.received += n as u64;
                self.handle_bytes(slot, n);
                return n;
            }
            Ok(Received::Nothing) => {}
            Ok(Received::End) => self.end_of_input(slot),
            Err(error) => self.lost(slot, Loss::Read(error)),
        }
        0
    }

    /// Checks the `n` bytes that were read into the buffer.
    #[inline]
    pub(super) fn handle_bytes(&mut self, slot: u32, n: usize) {
        self.now = clock::now();
        if const { D::MULTIPLEXED } {
            return self.handle_streams(slot, n);
        }
        if const { D::OPENS } && self.connections[slot as usize].opening {
            return self.continue_opening(slot, n);
        }
        match self.receive(slot, 0..n) {
            Ok(0) => self.close_if_announced(slot),
            Ok(replies) => match self.too_early(slot, n) {
                None => self.answered(slot, replies),
                Some(exchange) => {
                    self.settle(slot, replies);
                    self.wrong(slot, exchange);
                }
            },
            Err(exchange) => match self.nothing_but_early(slot, n) {
                None => self.unexpected(slot, exchange, n),
                Some(exchange) => self.wrong(slot, exchange),
            },
        }
        if const { D::OPENS } {
            self.send_answers(slot);
        }
    }

    /// Checks bytes of the buffer against the expected replies. Returns the number of completed replies.
    #[inline]
    pub(super) fn receive(&mut self, slot: u32, bytes: Range<usize>) -> Result<u32, Box<Exchange>> {
        let Connection { cursor, talk, replies, .. } = &mut self.connections[slot as usize];
        let at = At { cursor, talk, desk: &mut self.desk };
        let (came, operations) = (&self.buffer[bytes], &mut self.count.operations);
        let received = hear(self.dialect, at, came, self.now, operations);
        let received = received.map_err(|mut exchange| {
            exchange.reply_index += *replies;
            exchange
        });
        if const { D::PUSHES } {
            self.count_wrong_pushes();
        }
        received
    }

    /// Writes the pending bytes. After a partial write, the poller reports when there is room again.
    pub(super) fn write(&mut self, slot: u32) {
        match self.send(slot) {
            Ok(cut) => self.wait_to_write(slot, cut),
            Err(loss) => self.broken(slot, loss),
        }
    }

    /// Sends requests until the connection has as many outstanding as this phase permits.
    #[inline]
    pub(super) fn fill(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        let k = self.depth_of(slot).saturating_sub(connection.cursor.owed());
        let k = u64::from(k).min(self.left) as u32;
        if k == 0 {
            return;
        }
        self.ask(slot, k);
    }

    /// Sends `k` more requests now.
    #[inline]
    pub(super) fn ask(&mut self, slot: u32, k: u32) {
        self.announce(slot, k, self.now);
        let connection = &mut self.connections[slot as usize];
        connection.cursor.ask(k);
        if let Some(held) = &mut connection.held {
            held.asks(k);
        }
        self.times.push(&mut connection.sent, k, self.now);
        self.left -= u64::from(k);
        self.awaited += u64::from(k);
        if !connection.waits_to_write {
            self.write(slot);
        }
    }

    /// Opens the connection of a free slot. Sends its first request at once if the kernel connects
    /// immediately, as it does over loopback.
    pub(super) fn connect(&mut self, slot: u32) {
        let receives = self.stalls(slot).then_some(STALLED_BUFFER);
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Connecting;
        connection.cursor.ask(1);
        self.drive.connects(slot, connection, &self.times);
        let now = clock::now();
        self.announce(slot, 1, now);
        if const { D::OPENS } {
            self.begin_opening(slot);
        }
        let connection = &mut self.connections[slot as usize];
        self.times.push(&mut connection.sent, 1, now);
        self.left -= 1;
        let passes = self.passing.has(slot);
        let number = slot as usize * self.part.threads + self.part.thread;
        let source = self.sources.next(number, passes);
        let opened = match &self.plan.unix {
            None => socket::open(self.plan.target_of(number), source, !V::CHURNS, receives),
            Some(path) => socket::open_unix(path, receives),
        };
        match opened {
            Ok(socket) => connection.socket = Some(socket),
            Err(error) => return self.lost(slot, Loss::Connect(error)),
        }
        if let Some(tls) = &self.plan.tls {
            match Session::new(tls) {
                Ok(session) => connection.tls = Some(Box::new(session)),
                Err(error) => return self.lost(slot, Loss::Tls(error)),
            }
        }
        let watched = self.send(slot).and_then(|cut| {
            let connection = &mut self.connections[slot as usize];
            connection.waits_to_write = cut;
            let interest = if cut { Interest::ReadAndWrite } else { Interest::Read };
            let socket = connection.socket.as_ref().ok_or(Loss::Closed)?;
            self.poller.add(socket, slot, interest).map_err(Loss::Connect)
        });
        if let Err(loss) = watched {
            self.broken(slot, loss);
        }
    }

    /// Closes a connection in any state. Another connection may send a request that was never written
    /// here; requests that were written count as settled.
    pub(super) fn close(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let owed = u64::from(connection.cursor.owed());
        if connection.state == State::Closed {
            return;
        }
        self.drive.closes(slot, connection, &self.times);
        match connection.state {
            State::Closed => {}
            State::Connecting => self.left += owed,
            State::Unanswered | State::Open => {
                self.awaited -= owed;
                self.settled += owed;
            }
        }
        if connection.state != State::Open {
            if !V::CHURNS {
                self.shared.opening_done();
            }
        } else if !self.passing.has(slot) {
            self.open -= 1;
        }
        self.passing.record_disconnect(slot);
        let script = self.dialect.script();
        let start = connection.cursor.next_start(script, connection.refused);
        if let (Some(session), Some(socket)) = (connection.tls.take(), &connection.socket) {
            session.end(socket.as_fd());
        }
        connection.socket = None;
        connection.state = State::Closed;
        connection.waits_to_write = false;
        connection.cursor = Cursor::new(script, start);
        let number = slot * self.part.threads as u32 + self.part.thread as u32;
        self.dialect.renew(&mut connection.talk, number);
        connection.held = None;
        connection.opening = false;
        connection.aside.clear();
        connection.ended = false;
        (connection.replies, connection.refused) = (0, 0);
        connection.sent.clear();
    }

    #[inline]
    pub(super) fn answered(&mut self, slot: u32, replies: u32) {
        self.settle(slot, replies);
        self.go_on(slot);
        self.ask_once_more(slot);
    }

    /// Continues with a connection after replies.
    #[inline]
    pub(super) fn go_on(&mut self, slot: u32) {
        if self.dialect.ends(&self.connections[slot as usize].talk) {
            return self.announced_close(slot);
        }
        if slot < self.active {
            V::goes_on(self, slot);
        }
    }

    /// Counts received replies.
    #[inline]
    pub(super) fn settle(&mut self, slot: u32, replies: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.replies += u64::from(replies);
        self.replies += u64::from(replies);
        self.settled += u64::from(replies);
        self.awaited -= u64::from(replies);
        let opens = connection.state == State::Unanswered;
        match () {
            () if const { streams::<D>() } => self.count_streams(slot, replies),
            () if const { D::MULTIPLEXED } => self.count_answered(slot, replies),
            () if const { D::REFUSES } => self.count_unless_refused(slot, replies),
            () => V::answered(self, slot, replies),
        }
        if opens {
            self.opened(slot);
        }
    }

    /// Counts replies received inside the window. Records latencies of requests sent inside the window,
    /// also if the reply comes after it. Otherwise a pause at the start of the window would count for
    /// requests sent before it, and the slowest of the last requests would be missing.
    #[inline]
    pub(super) fn record(&mut self, slot: u32, replies: u32) {
        let connection = &mut self.connections[slot as usize];
        let mut rest = replies;
        while rest > 0 {
            let (sent_at, run) = self.times.pop_run(&mut connection.sent, rest);
            rest -= run;
            if slot >= self.active {
                continue;
            }
            if self.counts {
                self.count.record_replies(self.now, run);
            }
            if self.count.sends.contain(sent_at) {
                self.count.record_latency(self.now - sent_at, run);
            }
        }
    }

    /// Records the first reply: the server has accepted the connection.
    pub(super) fn opened(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Open;
        // If the first reply of an idle connection announces its close, the pause keeps growing.
        if slot < self.active || !self.dialect.ends(&connection.talk) {
            connection.pause = SHORTEST_PAUSE;
        }
        if slot >= self.active {
            self.inactive_replies += connection.replies;
        }
        if self.passing.has(slot) {
            self.passing.comes(slot, self.now);
        } else {
            self.open += 1;
            self.count.connections_opened += 1;
        }
        V::opened(self, slot);
        if !V::CHURNS {
            self.shared.opening_done();
        }
        if self.stalls(slot) {
            self.stall(slot);
        }
    }

    /// Whether this slot stops reading after its first reply.
    pub(super) fn stalls(&self, slot: u32) -> bool {
        let idle = slot.checked_sub(self.active).map(|nth| nth as usize);
        idle.is_some_and(|nth| nth * self.part.threads + self.part.thread < self.plan.stalled)
    }

    /// Stops reading from this connection.
    fn stall(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        self.dialect.stall(&mut connection.talk);
        if let Some(socket) = &connection.socket
            && let Err(error) = self.poller.remove(socket)
        {
            self.lost(slot, Loss::Read(error));
        }
    }

    /// Whether this connection, which is no longer used, stays open.
    pub(super) fn keeps(&mut self, slot: u32) -> bool {
        let keeps = self.kept < KEPT && !self.connections[slot as usize].ended;
        self.kept += u32::from(keeps);
        keeps
    }

    /// Sends the unsent bytes. Returns true after a partial write.
    #[inline]
    fn send(&mut self, slot: u32) -> Result<bool, Loss> {
        if const { D::OPENS }
            && let Some(cut) = self.send_aside(slot)?
        {
            return Ok(cut);
        }
        let back = self.holds_back(slot);
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else { return Ok(false) };
        let bytes = self.dialect.unsent(&connection.cursor, &mut connection.talk, self.now);
        let bytes = match back {
            Back::Nothing => bytes,
            Back::LastByte => &bytes[..bytes.len() - 1],
            Back::All => return Ok(false),
        };
        let (n, cut) = send_bytes(socket, &mut connection.tls, connection.state, bytes)?;
        self.dialect.wrote(&mut connection.cursor, &mut connection.talk, n);
        if n > 0 {
            self.wrote_first(slot);
        }
        Ok(cut)
    }

    /// Records a write on a connection. The first one changes its state.
    #[inline]
    pub(super) fn wrote_first(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        if connection.state == State::Connecting {
            connection.state = State::Unanswered;
            self.awaited += 1;
            self.begins_now(slot);
        }
    }

    /// Sets the send time of a connection's first request to now, so that its latency excludes
    /// connecting. The latency includes it with a connection per request, and for a request that was due
    /// and had to open its connection.
    pub(super) fn begins_now(&mut self, slot: u32) {
        let connection = &self.connections[slot as usize];
        let is_due = V::SCHEDULED && !connection.extra;
        if !V::CHURNS && !is_due {
            self.times.set_oldest(&connection.sent, clock::now());
        }
    }

    #[inline]
    fn wait_to_write(&mut self, slot: u32, cut: bool) {
        let connection = &mut self.connections[slot as usize];
        if connection.waits_to_write == cut {
            return;
        }
        connection.waits_to_write = cut;
        let interest = if cut { Interest::ReadAndWrite } else { Interest::Read };
        let changed = match &connection.socket {
            Some(socket) => self.poller.change(socket, slot, interest),
            None => Ok(()),
        };
        if let Err(error) = changed {
            self.lost(slot, Loss::Write(error));
        }
    }
}

/// Sends as many bytes as the socket accepts, encrypted if the connection uses TLS. Returns their
/// number, and whether anything still waits for room in the socket.
#[inline]
pub(super) fn send_bytes(
    socket: &OwnedFd,
    tls: &mut Option<Box<Session>>,
    state: State,
    bytes: &[u8],
) -> Result<(usize, bool), Loss> {
    let failed = match state {
        State::Connecting => Loss::Connect,
        _ => Loss::Write,
    };
    match tls {
        None => {
            let n = socket::send_some(socket, bytes).map_err(failed)?;
            Ok((n, n < bytes.len()))
        }
        Some(session) => send_sealed(session, socket.as_fd(), bytes).map_err(|fault| match fault {
            Fault::System(errno) => failed(errno),
            fault => fault.into(),
        }),
    }
}
