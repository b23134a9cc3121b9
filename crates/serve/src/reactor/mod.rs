//! The driver of an engine over readiness: waits, reads, hands over, writes. For all callback models
//! except `uring`.
//!
//! One read and one write for all that is buffered. What the engine writes to the connection that it
//! was called for leaves at once; what it writes to others leaves at the end of a turn, in slices if they are
//! many.

mod accept;
mod needs;

use crate::{
    clock,
    host::{Host, Seat, ServeError},
    letters::Letters,
    log::Refusals,
    mail::Mail,
    offload::Desk,
    sockets::Sockets,
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
/// Connections accepted before others get their turn.
const ACCEPTS: usize = 64;
/// Reads, and full replies, of a connection before others get their turn.
const READS: usize = 2;
const WRITES: usize = 16;

// No name of a connection has these numbers.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const DONE: u64 = u64::MAX - 2;
/// Of letters: this one, and those above that are none of the others.
const LETTERS: u64 = u64::MAX - (1 << 16);

/// Serves in this one thread, with a listener of its own.
pub(crate) fn run_alone<E: Engine, R: Readiness>(
    engine: E,
    host: &Host,
    readiness: R,
) -> Result<(), ServeError> {
    Ok(run(engine, host, host.alone::<Letters<_>>()?, readiness)?)
}

/// Serves connections until the host stops and they have drained.
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
        long: VecDeque::new(),
        input: vec![0; READ].into_boxed_slice(),
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
    /// The listener is not watched: no descriptor or no place is left.
    paused: bool,
    /// Who does the long jobs, if that is not this thread.
    desk: Option<Desk>,
    refusals: Refusals,
    sockets: Sockets<OwnedFd, State>,
    /// Connections that go on in the next turn, whatever happens.
    again: Vec<Conn>,
    /// Connections that are not read until there is room for letters.
    held: Vec<Conn>,
    /// Jobs that take long: one in a turn.
    long: VecDeque<Task<E::Job>>,
    /// Input space, shared by all connections: an idle one holds none.
    input: Box<[u8]>,
    /// When accepting resumes.
    resume_at: Option<Instant>,
}

/// What is known of a socket.
struct State {
    /// What it is watched for; `None`: not at all.
    watched: Option<Interest>,
    readable: bool,
    writable: bool,
    /// Once all input is read, a read reports its end.
    ended: bool,
    /// It is being connected.
    connecting: bool,
    /// It is among those that go on in the next turn.
    again: bool,
    /// It is among those that are not read for now.
    held: bool,
}

impl<E: Engine, R: Readiness, M: Mail<E::Letter>> Reactor<'_, E, R, M> {
    fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::new();
        let mut again = Vec::new();
        while self.seat.listener.is_some() || self.core.clients() > 0 {
            self.readiness.wait(&mut events, self.timeout())?;
            self.core.turn(clock::now());
            mem::swap(&mut again, &mut self.again);
            for event in &events {
                match event.token {
                    LISTENER => self.accept()?,
                    STOP => self.stop()?,
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

    /// Timers, the output of connections that others have written to, and one long job.
    fn end_of_turn(&mut self) -> io::Result<()> {
        let now = self.core.now().instant;
        if self.core.due().is_some_and(|due| due <= now) {
            self.core.tick(&self.sockets);
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
            // One that failed at once may have changed others.
            self.flush_changed(usize::MAX)?;
        }
        Ok(())
    }

    /// Writes the output of `most` of the connections that others have written to.
    fn flush_changed(&mut self, mut most: usize) -> io::Result<()> {
        loop {
            self.post();
            while most > 0
                && let Some(conn) = self.core.next_changed()
            {
                most -= 1;
                self.flush_one(conn)?;
            }
            // A connection that has room, or is closed, may post too.
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

    // ---- what happens to them ----

    fn ready(&mut self, event: &Event) -> io::Result<()> {
        let conn = Conn::from_bits(event.token);
        // One that was closed earlier in this turn may have had another event.
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

    /// Reads and writes what can be read and written, then waits for the rest.
    fn serve(&mut self, conn: Conn) -> io::Result<()> {
        for _ in 0..READS {
            self.read(conn)?;
            if E::POSTS && self.core.is_crowded() {
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
                // After a short read there is nothing more, except an end that is known of.
                state.readable = self.edge && (read == self.input.len() || state.ended);
                self.core.received(conn, &mut self.input[..read]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => state.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.core.failed(conn),
        }
        Ok(())
    }

    /// Does what the core says. Returns false when the connection is closed.
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
                Next::FinishWriting => {
                    let slot = self.sockets.get(conn);
                    let done = slot.is_some_and(|slot| net::finish_writing(&slot.fd).is_ok());
                    self.core.finished(conn, done);
                }
                Next::Close => {
                    self.close(conn)?;
                    return Ok(false);
                }
            }
        }
        self.go_on_later(conn);
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

    fn go_on_later(&mut self, conn: Conn) {
        if let Some(slot) = self.sockets.get_mut(conn)
            && !mem::replace(&mut slot.driver.again, true)
        {
            self.again.push(conn);
        }
    }

    /// Watches a connection for what it waits for.
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
                    self.go_on_later(conn);
                }
                return self.watch_for(conn, Some(Interest::READ));
            }
            // Room is hardly ever waited for. Once it was, it is reported for good.
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
