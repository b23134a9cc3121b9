//! The readiness-based driver of an engine, for all callback models except `uring`. It waits,
//! reads, passes input to the engine, and writes.
//!
//! Up to 64 KiB of input are one read (16 KiB if the engine posts), and all buffered output is one
//! write. Output to the connection of the current call is written at once. Output to other connections
//! is written at the end of a turn, in slices if the engine posts to many connections, or earlier if it
//! is much.

mod accept;
mod needs;

use crate::{
    between::{letters::Letters, mail::Mail},
    clock,
    host::{Host, Seat, ServeError},
    log::Refusals,
    sockets::Sockets,
    work::offload::Desk,
};
use regatta_engine::{Conn, Core, Engine, Job, Next, Task};
use regatta_sys::{Event, Interest, Readiness, net};
use std::{
    collections::VecDeque,
    io, mem,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

/// Bytes of one read.
const READ: usize = 64 * 1024;
/// The same for an engine that posts, as on `uring`: what one connection sends may be pushed, and over TLS
/// encrypted, for thousands of others, and nothing else is served meanwhile.
const READ_TO_POST: usize = 16 * 1024;
/// Maximum number of accepts before other connections are served.
const ACCEPTS: usize = 64;
/// Maximum number of reads, and of steps such as writes, of one connection before others are
/// served.
const READS: usize = 2;
const WRITES: usize = 16;

// No connection has these tokens.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const DONE: u64 = u64::MAX - 2;
const FAILURE: u64 = u64::MAX - 3;
/// The tokens of letters: from this one up to those above.
const LETTERS: u64 = u64::MAX - (1 << 16);

/// Serves in the current thread only, with its own listener.
pub(crate) fn run_alone<E: Engine, R: Readiness>(
    engine: E,
    host: &Host,
    readiness: R,
) -> Result<(), ServeError> {
    Ok(run(engine, host, host.alone::<Letters<_>>()?, readiness)?)
}

/// Serves connections until the host has stopped and the connections have drained.
pub(crate) fn run<E: Engine, R: Readiness, M: Mail<E::Letter>>(
    engine: E,
    host: &Host,
    seat: Seat<M>,
    mut readiness: R,
) -> io::Result<()> {
    readiness.add(host.stop.as_fd(), STOP, Interest::READ)?;
    if let Some(listener) = &seat.listener {
        readiness.add(listener.as_fd(), LISTENER, Interest::READ)?;
    }
    let desk = seat.pool.clone().map(Desk::new).transpose()?;
    if let Some(desk) = &desk {
        readiness.add(desk.as_fd(), DONE, Interest::READ)?;
    }
    if let Some(letters) = &seat.letters {
        letters.watch(&mut readiness, LETTERS)?;
    }
    Reactor {
        core: seat.core(engine, host.limits),
        host,
        edge: readiness.is_edge_triggered(),
        readiness,
        paused: false,
        seat,
        desk,
        refusals: Refusals::default(),
        sockets: Sockets::new(),
        again: Vec::new(),
        held: Vec::new(),
        unheard: Vec::new().into_iter(),
        long: VecDeque::new(),
        input: vec![0; if E::POSTS { READ_TO_POST } else { READ }].into_boxed_slice(),
        resume_at: None,
    }
    .run()
}

struct Reactor<'h, E: Engine, R, M> {
    core: Core<E>,
    host: &'h Host,
    edge: bool,
    readiness: R,
    /// Its listener is `None` once the server stops.
    seat: Seat<M>,
    /// The listener is not watched: out of descriptors, or at the connection limit.
    paused: bool,
    /// Runs the long jobs, unless this thread runs them.
    desk: Option<Desk>,
    refusals: Refusals,
    sockets: Sockets<OwnedFd, State>,
    /// Connections that continue in the next turn without an event.
    again: Vec<Conn>,
    /// Connections that are not read until pending letters have been sent.
    held: Vec<Conn>,
    /// Letters that were taken but not delivered yet.
    unheard: std::vec::IntoIter<E::Letter>,
    /// Long jobs, of which one runs per turn.
    long: VecDeque<Task<E::Job>>,
    /// The input buffer, shared by all connections, so that an idle one needs none.
    input: Box<[u8]>,
    /// When accepting resumes.
    resume_at: Option<Instant>,
}

/// What is known about a socket.
struct State {
    /// What it is watched for; `None` if it is not watched.
    watched: Option<Interest>,
    readable: bool,
    writable: bool,
    /// Once all input is read, a read reports its end.
    ended: bool,
    /// The connection is being opened.
    connecting: bool,
    /// It is in `again`.
    again: bool,
    /// It is in `held`.
    held: bool,
}

impl<E: Engine, R: Readiness, M: Mail<E::Letter>> Reactor<'_, E, R, M> {
    fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::new();
        let mut again = Vec::new();
        while self.seat.listener.is_some() || self.core.clients() > 0 || self.is_needed() {
            self.readiness.wait(&mut events, self.timeout())?;
            self.core.turn(clock::now());
            self.hear_first()?;
            mem::swap(&mut again, &mut self.again);
            for event in &events {
                match event.token {
                    LISTENER => self.accept()?,
                    STOP => self.stop()?,
                    FAILURE => self.fail()?,
                    DONE => self.take_done()?,
                    token if token >= LETTERS => self.hear_of((token - LETTERS) as usize, event)?,
                    _ => self.ready(event)?,
                }
            }
            for conn in again.drain(..) {
                if let Some(slot) = self.sockets.get_mut(conn) {
                    slot.driver.again = false;
                    self.serve(conn)?;
                }
            }
            self.end_of_turn()?;
        }
        Ok(())
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        if !(self.again.is_empty() && self.long.is_empty()) {
            return Some(Duration::ZERO);
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

    /// Serves timers, writes the output of changed connections, and runs one long job.
    fn end_of_turn(&mut self) -> io::Result<()> {
        let now = self.core.now().instant;
        if self.core.due().is_some_and(|due| due <= now) {
            self.core.tick(&self.sockets);
            if self.core.is_drained() {
                self.end_input();
            }
        }
        self.flush()?;
        if E::Job::EVER
            && let Some(task) = self.long.pop_front()
            && task.wanted.strong_count() > 0
        {
            self.core.change(task.conn);
            self.do_now(task);
            self.flush()?;
        }
        if self.resume_at.is_some_and(|at| at <= now) {
            self.resume()?;
        }
        if E::POSTS { self.settle_letters() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let slice = self.core.slice();
        self.flush_changed(slice)?;
        if E::CONNECTS && self.core.connects() > 0 {
            self.connect()?;
            // A connection that failed at once may have changed others.
            self.flush_changed(usize::MAX)?;
        }
        Ok(())
    }

    /// Serves at most `most` of the connections that others have changed.
    fn flush_changed(&mut self, mut most: usize) -> io::Result<()> {
        loop {
            self.post();
            while most > 0
                && let Some(conn) = self.core.next_changed()
            {
                most -= 1;
                self.flush_one(conn)?;
            }
            // A connection that became writable or was closed may post too.
            if !(E::POSTS && self.core.has_letters()) {
                return Ok(());
            }
        }
    }

    /// Writes what can be written. Input is read in the next turn: otherwise two connections that
    /// write to each other could keep this turn from ending.
    fn flush_one(&mut self, conn: Conn) -> io::Result<()> {
        if E::Job::EVER {
            self.take_on_jobs(conn);
        }
        if self.advance(conn)? { self.watch(conn) } else { Ok(()) }
    }

    // ---- events of connections ----

    fn ready(&mut self, event: &Event) -> io::Result<()> {
        let conn = Conn::from_bits(event.token);
        // A connection that was closed earlier in this turn may have another event.
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let state = &mut slot.driver;
        state.readable |= event.readable;
        state.writable |= event.writable;
        state.ended |= event.ended;
        if E::CONNECTS && state.connecting && state.writable {
            state.connecting = false;
            match net::opened(&slot.fd) {
                Ok(()) => self.core.connected(conn),
                Err(_) => self.core.failed(conn),
            }
        }
        self.serve(conn)
    }

    /// Reads and writes what is possible, then waits for the rest.
    fn serve(&mut self, conn: Conn) -> io::Result<()> {
        for _ in 0..READS {
            self.read(conn)?;
            if E::POSTS && self.core.take_flush_request() {
                self.flush_changed(usize::MAX)?;
            }
            if E::Job::EVER {
                self.take_on_jobs(conn);
            }
            if !self.advance(conn)? {
                return Ok(());
            }
            if !self.may_read(conn) {
                break;
            }
        }
        self.watch(conn)
    }

    #[inline]
    fn may_read(&self, conn: Conn) -> bool {
        self.sockets.get(conn).is_some_and(|slot| slot.driver.readable)
            && self.core.wants_read(conn)
            && !(E::POSTS && self.is_held())
    }

    #[inline]
    fn read(&mut self, conn: Conn) -> io::Result<()> {
        if !self.may_read(conn) {
            return Ok(());
        }
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let read = net::read(&slot.fd, &mut self.input);
        self.hear_first()?;
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let state = &mut slot.driver;
        match read {
            Ok(0) => {
                state.readable = false;
                self.core.ended(conn);
            }
            Ok(read) => {
                // After a short read the socket is empty, except for an end of input that was
                // reported.
                state.readable = self.edge && (read == self.input.len() || state.ended);
                self.core.received(conn, &mut self.input[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => state.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.core.failed(conn),
        }
        Ok(())
    }

    /// Carries out what the core requests. Returns false if the connection was closed.
    #[inline]
    fn advance(&mut self, conn: Conn) -> io::Result<bool> {
        for _ in 0..WRITES {
            match self.core.next(conn, &self.sockets) {
                Next::Wait => return Ok(true),
                Next::Write { last } => {
                    self.post();
                    let Some(slot) = self.sockets.get_mut(conn) else { break };
                    if !slot.driver.writable {
                        return Ok(true);
                    }
                    let output = self.core.output(conn);
                    let write = if last { net::write_last } else { net::write };
                    match write(&slot.fd, output) {
                        Ok(written) => {
                            slot.driver.writable = written == output.len();
                            self.core.wrote(conn, written);
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            slot.driver.writable = false;
                            self.core.wrote(conn, 0);
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => self.core.failed(conn),
                    }
                    if E::Job::EVER {
                        self.take_on_jobs(conn);
                    }
                }
                Next::ShutdownWrite => {
                    let slot = self.sockets.get(conn);
                    let done = slot.is_some_and(|slot| net::shutdown_write(&slot.fd).is_ok());
                    self.core.shutdown_completed(conn, done);
                }
                Next::Close => {
                    self.close(conn)?;
                    return Ok(false);
                }
            }
        }
        self.continue_later(conn);
        Ok(true)
    }

    fn close(&mut self, conn: Conn) -> io::Result<()> {
        if let Some(slot) = self.sockets.remove(conn)
            && slot.driver.watched.is_some()
        {
            self.readiness.closing(slot.fd.as_fd())?;
        }
        self.core.closed(conn);
        Ok(())
    }

    fn continue_later(&mut self, conn: Conn) {
        if let Some(slot) = self.sockets.get_mut(conn)
            && !mem::replace(&mut slot.driver.again, true)
        {
            self.again.push(conn);
        }
    }

    /// Registers the events that a connection waits for.
    #[inline]
    fn watch(&mut self, conn: Conn) -> io::Result<()> {
        self.core.settle(conn);
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let state = &mut slot.driver;
        let read = self.core.wants_read(conn);
        let write = !state.writable && (state.connecting || !self.core.output(conn).is_empty());
        let wanted = if self.edge {
            if read && state.readable {
                if E::POSTS && self.is_held() {
                    self.hold(conn);
                } else {
                    self.continue_later(conn);
                }
                return self.watch_for(conn, Some(Interest::READ));
            }
            // A connection rarely waits for writability. Once it has, it stays registered for that.
            match state.watched {
                Some(watched) if !write || watched.write => return Ok(()),
                _ if write => Some(Interest::BOTH),
                _ => Some(Interest::READ),
            }
        } else {
            (read || write).then_some(Interest { read, write })
        };
        self.watch_for(conn, wanted)
    }

    fn watch_for(&mut self, conn: Conn, wanted: Option<Interest>) -> io::Result<()> {
        let Some(slot) = self.sockets.get_mut(conn) else { return Ok(()) };
        let (fd, token) = (slot.fd.as_fd(), conn.to_bits());
        match (slot.driver.watched, wanted) {
            (before, wanted) if before == wanted => return Ok(()),
            (Some(before), Some(Interest::READ)) if self.edge && before.read => return Ok(()),
            (None, Some(wanted)) => {
                if self.readiness.add(fd, token, wanted).is_err() {
                    // Out of memory to watch it.
                    self.core.failed(conn);
                    self.close(conn)?;
                    return self.pause();
                }
            }
            (Some(_), Some(wanted)) => self.readiness.modify(fd, token, wanted)?,
            (_, None) => self.readiness.remove(fd)?,
        }
        slot.driver.watched = wanted;
        Ok(())
    }
}
