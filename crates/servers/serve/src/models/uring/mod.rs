//! `uring`: a thread and an io_uring(7) per core, each with its own listener (SO_REUSEPORT).
//!
//! A reactor gets readiness events; this driver gets completions: connections accepted, bytes
//! received, replies sent. A turn is usually one system call (in `sys::uring`), which submits the operations
//! queued here and in `receive` in the last turn, and waits. So all output of a turn to a connection is usually one
//! send at its end. Timeouts are the core's (`Core::tick`, at the end of a turn); before it closes a connection, the
//! driver cancels its operations.

mod accept;
mod needs;
mod receive;

use crate::{
    between::letters::Letters,
    clock,
    host::{Host, Seat, ServeError},
    sockets::Sockets,
    work::offload::Desk,
};
use regatta_engine::{Conn, Core, Engine, Job, Next, Task};
use regatta_sys::{
    net,
    uring::{self, Completion, Ring, SendKey},
};
use slab::Slab;
use std::{
    collections::VecDeque,
    io, mem,
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

pub(crate) fn run<E: Engine>(engine: impl Fn() -> E + Sync, host: &Host) -> Result<(), ServeError> {
    if let Some(because) = uring::refused() {
        return Err(ServeError::Refused { model: "uring", because });
    }
    host.on_each_core(E::POSTS, |seat| Driver::new(engine(), host, seat)?.run())
}

/// Size of the first read of a connection, and most bytes that one should receive in a turn.
const READ: usize = 16 * 1024;
/// How long a long job waits in each turn for the files of short ones, and in how many turns: so that it waits at
/// all events less than a long job takes, also if there is always another short one.
const FILE_WAIT: Duration = Duration::from_micros(500);
const MOST_PASSES: u32 = 8;
/// Tokens of watches for input. Watches for writability are for connections that are being opened;
/// their tokens are keys of `connecting`.
const STOP: u32 = 0;
const DONE: u32 = 1;
const LETTERS: u32 = 2;
const FAILURE: u32 = 3;

/// A job, whether its file could be read, and the content of the file.
type Loaded<J> = (Task<J>, io::Result<()>, Vec<u8>);

/// The driver of one core.
struct Driver<'h, E: Engine> {
    core: Core<E>,
    host: &'h Host,
    ring: Ring,
    seat: Seat<Letters<E::Letter>>,
    /// The listener; `None` once the server stops and accepting has ended.
    listener: Option<Rc<OwnedFd>>,
    /// Whether an accept is in flight.
    accepting: bool,
    /// Whether an accept continues after its first connection (multishot).
    many: bool,
    /// When accepting resumes, if out of descriptors or at the connection limit.
    resume_at: Option<Instant>,
    /// Accepted connections without a place; at most one.
    parked: VecDeque<OwnedFd>,
    sockets: Sockets<Rc<OwnedFd>, State>,
    /// Connections that are being opened. A connection may be gone before its watch completes.
    connecting: Slab<Conn>,
    /// Connections to be served before the end of the turn.
    changed: Vec<Conn>,
    /// Jobs whose file is being read.
    reading: Slab<Task<E::Job>>,
    /// Long jobs whose file has been read. One runs per turn.
    long: VecDeque<Loaded<E::Job>>,
    /// Number of short jobs whose files the ring reads.
    short_reads: usize,
    /// Number of turns in which the next long job has waited for them.
    passed_over: u32,
    /// Runs the long jobs, unless this thread runs them.
    desk: Option<Desk>,
    /// Connections whose receive found no free buffer, in order.
    starved: VecDeque<Conn>,
    /// Connections that are not read until pending letters have been taken.
    held: Vec<Conn>,
    /// Letters that were taken but not delivered yet.
    unheard: std::vec::IntoIter<E::Letter>,
    input: Box<[u8]>,
    /// Number of the turn. It may start again from 0.
    turn: u32,
}

/// The operations in flight for a connection.
struct State {
    receiving: Receiving,
    /// The turn in which bytes were last received, and how many.
    received_in: u32,
    received: usize,
    /// How many more receives complete only once. A receive that stays armed completes as often in a turn as the
    /// peer has filled a buffer, so a peer that floods would have several times the share of the others.
    singly: u8,
    sending: Option<SendKey>,
    /// How many bytes of the output earlier sends have sent.
    sent: usize,
    /// No receive has started. It is read, and its last output is written, without the ring.
    fresh: bool,
    /// It is in `changed`.
    changed: bool,
    /// It is closed once no operation is in flight.
    closing: bool,
    /// It is in `held`.
    held: bool,
    /// The connection is being opened.
    connecting: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiving {
    No,
    /// Until it ends (multishot).
    Many,
    Once,
    /// Cancelled, but not completed yet.
    Ending,
    /// Waits to be restarted.
    Starved,
}

impl Receiving {
    /// Whether a receive is in flight that is not cancelled.
    fn is_armed(self) -> bool {
        matches!(self, Receiving::Many | Receiving::Once)
    }
}

impl<'h, E: Engine> Driver<'h, E> {
    fn new(engine: E, host: &'h Host, mut seat: Seat<Letters<E::Letter>>) -> io::Result<Self> {
        let mut ring = Ring::new()?;
        let listener = seat.listener.take().map(Rc::new);
        // Only one at a time if places are limited: connections that the kernel accepts beyond the
        // limit would wait here, bound to this core.
        let many = host.connections == usize::MAX;
        if let Some(listener) = &listener {
            // On a non-blocking descriptor an operation would fail rather than wait.
            net::set_blocking(listener)?;
            ring.accept(listener, many)?;
        }
        ring.watch(&host.stop, STOP)?;
        let desk = seat.pool.clone().map(Desk::new).transpose()?;
        if let Some(desk) = &desk {
            ring.watch(desk, DONE)?;
        }
        if let Some(letters) = &seat.letters {
            ring.watch(letters, LETTERS)?;
        }
        Ok(Driver {
            core: seat.core(engine, host.limits),
            host,
            ring,
            seat,
            listener,
            accepting: true,
            many,
            resume_at: None,
            parked: VecDeque::new(),
            sockets: Sockets::new(),
            connecting: Slab::new(),
            changed: Vec::new(),
            reading: Slab::new(),
            long: VecDeque::new(),
            short_reads: 0,
            passed_over: 0,
            desk,
            starved: VecDeque::new(),
            held: Vec::new(),
            unheard: Vec::new().into_iter(),
            input: vec![0; READ].into_boxed_slice(),
            turn: 0,
        })
    }

    fn run(mut self) -> io::Result<()> {
        while self.listener.is_some() || self.core.clients() > 0 || self.is_needed() {
            self.feed()?;
            self.ring.wait(self.timeout())?;
            self.turn = self.turn.wrapping_add(1);
            self.core.turn(clock::now());
            self.hear_first();
            while let Some(completion) = self.ring.completion() {
                self.completed(completion)?;
            }
            self.end_of_turn()?;
        }
        if E::CONNECTS { self.close_upstreams() } else { Ok(()) }
    }

    /// Closes the connections to other servers after the last client is gone. A ring that is
    /// dropped with operations in flight would keep their sockets open.
    fn close_upstreams(&mut self) -> io::Result<()> {
        for conn in self.sockets.names() {
            self.core.failed(conn);
            self.change(conn);
        }
        loop {
            while let Some(conn) = self.changed.pop() {
                if let Some(slot) = self.sockets.get_mut(conn) {
                    slot.driver.changed = false;
                    self.serve(conn)?;
                }
            }
            if self.sockets.is_empty() {
                return Ok(());
            }
            self.ring.wait(None)?;
            while let Some(completion) = self.ring.completion() {
                self.completed(completion)?;
            }
        }
    }

    /// How long to wait for completions.
    fn timeout(&self) -> Option<Duration> {
        if !(self.starved.is_empty() && self.long.is_empty()) {
            let waits = self.starved.is_empty() && self.long_waits();
            return Some(if waits { FILE_WAIT } else { Duration::ZERO });
        }
        if E::CONNECTS && self.core.connects() > 0 {
            return Some(Duration::ZERO);
        }
        if E::POSTS && (self.has_letters() || self.core.has_changed()) {
            return Some(Duration::ZERO);
        }
        let due = self.core.due().into_iter().chain(self.resume_at).min()?;
        Some(due.saturating_duration_since(self.core.now().instant))
    }

    #[inline]
    fn completed(&mut self, completion: Completion) -> io::Result<()> {
        match completion {
            Completion::Received { token, result, more } => {
                self.received(token, result, more);
                Ok(())
            }
            Completion::Sent { token, result, bytes } => self.sent(token, result, bytes),
            Completion::Accepted { result, more } => self.accepted(result, more),
            Completion::FileRead { token, result, content } => {
                let task = self.reading.remove(token as usize);
                if task.job.is_short() {
                    self.short_reads -= 1;
                    self.finish(task, result, content);
                } else {
                    self.long.push_back((task, result, content));
                }
                Ok(())
            }
            Completion::Readable { token: STOP } => self.stop(),
            Completion::Readable { token: FAILURE } => {
                self.fail();
                Ok(())
            }
            Completion::Readable { token: DONE } => self.take_done(),
            Completion::Readable { token: LETTERS } => self.hear(),
            Completion::Writable { token } => {
                self.connected(token);
                Ok(())
            }
            Completion::Readable { .. } => Ok(()),
        }
    }

    /// Serves timers and changed connections, and runs one long job.
    fn end_of_turn(&mut self) -> io::Result<()> {
        let now = self.core.now().instant;
        // Completions that the kernel could not deliver yet may be input of seemingly idle peers.
        if self.core.due().is_some_and(|due| due <= now) && !self.ring.has_overflown() {
            self.core.tick(&self.sockets);
            if self.core.is_drained() {
                self.end_input();
            }
        }
        self.settle_letters();
        self.flush()?;
        if E::Job::EVER && !self.long.is_empty() && self.long_waits() {
            self.passed_over += 1;
        } else if E::Job::EVER
            && let Some((task, result, content)) = self.long.pop_front()
        {
            self.passed_over = 0;
            // Earlier replies do not wait for this job.
            self.ring.submit()?;
            self.finish(task, result, content);
            self.flush()?;
        }
        if self.resume_at.is_some_and(|at| at <= now) {
            self.resume()?;
        }
        Ok(())
    }

    /// Whether the next long job waits for the files of short ones. The ring reads a file in several steps, each of
    /// which would otherwise wait for a long job.
    fn long_waits(&self) -> bool {
        self.short_reads > 0 && self.passed_over < MOST_PASSES
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_changed()?;
        if E::CONNECTS && self.core.connects() > 0 {
            self.connect()?;
            // A connection that failed at once may have changed others.
            self.flush_changed()?;
        }
        Ok(())
    }

    fn flush_changed(&mut self) -> io::Result<()> {
        let mut slice = self.core.slice();
        loop {
            self.post();
            while let Some(conn) = self.changed.pop() {
                if let Some(slot) = self.sockets.get_mut(conn) {
                    slot.driver.changed = false;
                    self.serve(conn)?;
                }
            }
            while slice > 0
                && let Some(conn) = self.core.next_changed()
            {
                slice -= 1;
                self.serve(conn)?;
            }
            // A connection that became writable or was closed may post too.
            if !(E::POSTS && self.core.has_letters()) {
                return Ok(());
            }
        }
    }

    fn change(&mut self, conn: Conn) {
        if let Some(slot) = self.sockets.get_mut(conn)
            && !mem::replace(&mut slot.driver.changed, true)
        {
            self.changed.push(conn);
        }
    }

    // ---- events of connections ----

    /// Handles a completed send; `bytes` is the output.
    #[inline]
    fn sent(&mut self, place: u32, result: io::Result<usize>, bytes: Vec<u8>) -> io::Result<()> {
        let Some(conn) = self.sockets.at(place) else { return Ok(()) };
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        slot.driver.sending = None;
        match result {
            Ok(sent) if slot.driver.sent + sent < bytes.len() && !slot.driver.closing => {
                slot.driver.sent += sent;
                self.core.completed(conn, sent, None);
                return self.send(conn, bytes, false);
            }
            Ok(sent) => {
                slot.driver.sent = 0;
                let receives = slot.driver.receiving.is_armed();
                self.core.completed(conn, sent, Some(bytes));
                if !E::Job::EVER && receives && self.core.is_at_rest(conn) {
                    return Ok(());
                }
            }
            Err(_) => self.core.failed(conn),
        }
        self.change(conn);
        Ok(())
    }

    fn send(&mut self, conn: Conn, bytes: Vec<u8>, last: bool) -> io::Result<()> {
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let (place, from) = (conn.index() as u32, slot.driver.sent);
        slot.driver.sending = Some(self.ring.send(&slot.fd, place, bytes, from, last)?);
        Ok(())
    }

    /// Carries out what the core requests, and receives if input is wanted.
    fn serve(&mut self, conn: Conn) -> io::Result<()> {
        if E::Job::EVER {
            self.take_on_jobs();
        }
        loop {
            let next = self.core.next(conn, &self.sockets);
            let Some(slot) = self.sockets.get_mut(conn) else {
                // The connection is not open yet, or could not be opened.
                match next {
                    Next::Close => self.core.closed(conn),
                    _ => self.core.settle(conn),
                }
                return Ok(());
            };
            if slot.driver.closing {
                return self.close(conn);
            }
            match next {
                Next::Wait => break,
                // A connection with a single request costs only two additional system calls.
                Next::Write { last } if last && slot.driver.fresh => {
                    let output = self.core.output(conn);
                    match net::write_now(&slot.fd, output, last) {
                        Ok(written) => {
                            slot.driver.fresh = written == output.len();
                            self.core.wrote(conn, written);
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            slot.driver.fresh = false;
                        }
                        Err(_) => self.core.failed(conn),
                    }
                }
                Next::Write { last } => {
                    let output = self.core.take_output(conn);
                    self.send(conn, output, last)?;
                }
                Next::ShutdownWrite => {
                    let done = net::shutdown_write(&slot.fd).is_ok();
                    self.core.shutdown_completed(conn, done);
                }
                Next::Close => {
                    slot.driver.closing = true;
                    return self.close(conn);
                }
            }
        }
        self.core.settle(conn);
        self.receive(conn)
    }

    /// Cancels the operations in flight, and closes once there are none.
    fn close(&mut self, conn: Conn) -> io::Result<()> {
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let state = &mut slot.driver;
        if state.receiving.is_armed() {
            state.receiving = Receiving::Ending;
            self.ring.cancel_receive(conn.index() as u32)?;
        }
        if let Some(key) = state.sending {
            self.ring.cancel_send(key)?;
        }
        if state.receiving != Receiving::Ending && state.sending.is_none() {
            if state.connecting {
                // Its watch keeps the socket open; the shutdown ends both.
                let _ = net::shutdown_both(&slot.fd);
            }
            self.sockets.remove(conn);
            self.core.closed(conn);
        }
        Ok(())
    }
}
