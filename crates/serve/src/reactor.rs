//! The loop of the callback models: waits for readiness, reads, calls the session, writes.
//!
//! One read and one write for all that is buffered. Level-triggered, so a connection whose output
//! was cut short simply waits for room instead of input, and its client stops being read.

use crate::{
    host::{Host, PAUSE, Place, Places, ServeError},
    log::Refusals,
};
use regatta_service::{Flow, Limits, Program, style::Session};
use regatta_sys::{Event, Interest, Readiness, net};
use slab::Slab;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Connections accepted before others get their turn.
const ACCEPTS: usize = 64;
/// Full replies that a connection may write before others get their turn.
const WRITES: usize = 16;

const LISTENER: usize = usize::MAX;
const STOP: usize = usize::MAX - 1;

/// Serves in this one thread, with a listener of its own.
pub(crate) fn run_alone<P: Program, R: Readiness>(
    program: P,
    host: &Host,
    readiness: R,
) -> Result<(), ServeError> {
    let listener = host.listen(false)?;
    let places = Places::new(host)?;
    host.ready(&listener)?;
    Ok(run(program, host, places, listener, readiness)?)
}

/// Serves connections of `listener` until the host stops and they have drained.
pub(crate) fn run<P: Program, R: Readiness>(
    program: P,
    host: &Host,
    places: Places,
    listener: OwnedFd,
    mut readiness: R,
) -> io::Result<()> {
    readiness.add(host.stop.as_fd(), STOP, Interest::Read)?;
    readiness.add(listener.as_fd(), LISTENER, Interest::Read)?;
    let sweep = host.limits.idle.min(host.limits.request).min(Limits::LINGER) / 8;
    Reactor {
        program,
        host,
        places,
        refusals: Refusals::default(),
        readiness,
        listener: Some(listener),
        paused: false,
        connections: Slab::new(),
        input: vec![0; READ].into_boxed_slice(),
        out: Vec::new(),
        sweep: sweep.clamp(Duration::from_millis(1), Duration::from_secs(1)),
        next_sweep: Instant::now(),
        cut_at: None,
    }
    .run()
}

struct Reactor<'h, P: Program, R> {
    program: P,
    host: &'h Host,
    places: Places,
    refusals: Refusals,
    readiness: R,
    /// `None` once the server stops.
    listener: Option<OwnedFd>,
    /// The listener is not watched: no descriptor or no place is left.
    paused: bool,
    connections: Slab<Connection<P::Session>>,
    /// Input and output space, shared by all connections: an idle one holds neither.
    input: Box<[u8]>,
    out: Vec<u8>,
    /// How often all connections are asked whether they are due. Asking all once a second costs
    /// less than a timer that moves with every request.
    sweep: Duration,
    next_sweep: Instant,
    /// When a stopping server cuts what is left.
    cut_at: Option<Instant>,
}

struct Connection<S> {
    socket: OwnedFd,
    _place: Place,
    session: S,
    /// What the socket is watched for; `None` before it has been looked at once.
    interest: Option<Interest>,
    /// Output that the socket had no room for; while there is any, room is waited for.
    unsent: Vec<u8>,
    /// When the socket last had room.
    sent: Instant,
    state: State,
    /// No more input will come: the client has ended it, or a stop has.
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// No more input is wanted; the connection closes once `unsent` is written.
    Closing,
    /// Our direction has ended. What still comes is thrown away until the client ends its own,
    /// so that a reset does not overtake the last reply.
    Lingering {
        until: Instant,
        bytes: usize,
    },
    /// Ended by a stop and no longer watched; closes once the client has all that was sent.
    Delivering,
}

/// Whether a connection is done with.
#[derive(PartialEq, Eq)]
enum Fate {
    Lives,
    Ends,
}

impl<P: Program, R: Readiness> Reactor<'_, P, R> {
    fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::new();
        while self.listener.is_some() || !self.connections.is_empty() {
            self.readiness.wait(&mut events, self.timeout())?;
            let now = Instant::now();
            for event in &events {
                match event.token {
                    LISTENER => self.accept(now)?,
                    STOP => self.stop(now)?,
                    token => self.ready(token, now)?,
                }
            }
            if now >= self.next_sweep {
                self.sweep(now)?;
            }
        }
        Ok(())
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        let wanted = self.paused || !self.connections.is_empty();
        wanted.then(|| self.next_sweep.saturating_duration_since(Instant::now()))
    }

    fn accept(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { return Ok(()) };
            let Some(place) = self.places.take() else { return self.pause(now) };
            match net::accept(listener) {
                Ok(socket) => {
                    if let Some(because) = self.readiness.refusal(socket.as_fd()) {
                        self.refusals.add(now, because);
                        continue;
                    }
                    let session = self.program.session(self.host.limits, now);
                    let token = self.connections.insert(Connection {
                        socket,
                        _place: place,
                        session,
                        interest: None,
                        unsent: Vec::new(),
                        sent: now,
                        state: State::Open,
                        ended: false,
                    });
                    self.first(token, now)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if net::is_transient(&error) => {}
                // Out of descriptors or memory: who waits stays in the kernel's queue.
                Err(_) => return self.pause(now),
            }
        }
        // The first connection of an idle server starts the sweeps.
        self.next_sweep = self.next_sweep.clamp(now, now + self.sweep);
        Ok(())
    }

    /// A fresh connection often has its first request already. It is looked at before it is watched,
    /// so that one which is done with at once is never watched at all.
    fn first(&mut self, token: usize, now: Instant) -> io::Result<()> {
        let Self { readiness, input, out, connections, .. } = self;
        let connection = &mut connections[token];
        let read = connection.read(token, now, readiness, input, out);
        let watched = read.and_then(|fate| match (fate, connection.interest) {
            (Fate::Lives, None) => connection.watch(Interest::Read, token, readiness),
            (fate, _) => Ok(fate),
        });
        match watched {
            Ok(fate) => self.follow(token, fate),
            Err(_) => {
                self.connections.remove(token); // out of memory to watch it: it is closed
                self.pause(now)
            }
        }
    }

    /// Stops accepting until the next sweep.
    fn pause(&mut self, now: Instant) -> io::Result<()> {
        if let (Some(listener), false) = (&self.listener, self.paused) {
            self.readiness.remove(listener.as_fd())?;
            self.paused = true;
            self.next_sweep = self.next_sweep.min(now + PAUSE);
        }
        Ok(())
    }

    /// Ends the input of all connections; they answer what has arrived.
    fn stop(&mut self, now: Instant) -> io::Result<()> {
        self.readiness.remove(self.host.stop.as_fd())?;
        if let (Some(listener), false) = (self.listener.take(), self.paused) {
            self.readiness.remove(listener.as_fd())?;
        }
        self.paused = false;
        self.cut_at = Some(now + self.host.grace);
        self.sweep = self.sweep.min(PAUSE);
        self.next_sweep = now;
        let lingers = |c: &Connection<P::Session>| matches!(c.state, State::Lingering { .. });
        for (_, connection) in self.connections.iter().filter(|(_, c)| !lingers(c)) {
            // One that is gone already tells so at its next read.
            let _ = net::finish_reading(&connection.socket);
        }
        Ok(())
    }

    fn ready(&mut self, token: usize, now: Instant) -> io::Result<()> {
        // A connection that ended earlier in this turn may have had another event.
        let Some(connection) = self.connections.get_mut(token) else { return Ok(()) };
        if connection.state == State::Delivering {
            return Ok(());
        }
        let Self { readiness, input, out, .. } = self;
        let fate = if connection.interest == Some(Interest::Write) {
            connection.flush(token, now, readiness, out)?
        } else if let State::Lingering { .. } = connection.state {
            connection.discard(input)
        } else {
            connection.read(token, now, readiness, input, out)?
        };
        self.follow(token, fate)
    }

    /// Closes a connection that is done with, at once unless a stop is under way.
    fn follow(&mut self, token: usize, fate: Fate) -> io::Result<()> {
        if fate == Fate::Lives {
            return Ok(());
        }
        let connection = &mut self.connections[token];
        if self.host.stop.may_close(&connection.socket) {
            return self.end(token);
        }
        connection.state = State::Delivering;
        match connection.interest.take() {
            Some(_) => self.readiness.remove(connection.socket.as_fd()),
            None => Ok(()),
        }
    }

    fn end(&mut self, token: usize) -> io::Result<()> {
        let connection = self.connections.remove(token);
        match connection.interest {
            Some(_) => self.readiness.closing(connection.socket.as_fd()),
            None => Ok(()),
        }
    }

    /// Ends the connections whose time has come, and resumes accepting.
    fn sweep(&mut self, now: Instant) -> io::Result<()> {
        let cut = self.cut_at.is_some_and(|at| now >= at);
        let idle = self.host.limits.idle;
        let due = |c: &mut Connection<P::Session>| match c.state {
            State::Lingering { until, .. } => now >= until,
            State::Delivering => self.host.stop.may_close(&c.socket),
            // After a long stall of the process what came in time may not have been read yet.
            _ if !c.unsent.is_empty() => {
                now >= c.sent + idle && !net::is_ready(&c.socket, Interest::Write)
            }
            _ => {
                now >= c.session.due()
                    && !net::is_ready(&c.socket, Interest::Read)
                    && c.session.on_tick(now) == Flow::Close
            }
        };
        let over: Vec<usize> = self
            .connections
            .iter_mut()
            .filter_map(|(token, c)| (cut || due(c)).then_some(token))
            .collect();
        for token in over {
            self.end(token)?;
        }
        if let (Some(listener), true) = (&self.listener, self.paused) {
            self.readiness.add(listener.as_fd(), LISTENER, Interest::Read)?;
            self.paused = false;
        }
        self.next_sweep = now + self.sweep;
        Ok(())
    }
}

impl<S: Session> Connection<S> {
    fn read<R: Readiness>(
        &mut self,
        token: usize,
        now: Instant,
        readiness: &mut R,
        input: &mut [u8],
        out: &mut Vec<u8>,
    ) -> io::Result<Fate> {
        out.clear();
        let flow = match net::read(&self.socket, input) {
            Ok(0) => {
                self.ended = true;
                let flow = self.session.on_end(now, out);
                if flow == Flow::Close && out.is_empty() {
                    return Ok(Fate::Ends);
                }
                flow
            }
            Ok(read) => self.session.on_bytes(now, &input[..read], out),
            Err(error) if is_retry(&error) => return Ok(Fate::Lives),
            Err(_) => return Ok(Fate::Ends),
        };
        self.deliver(flow, token, now, readiness, out)
    }

    /// Writes `out`, and what the session still holds after it.
    fn deliver<R: Readiness>(
        &mut self,
        mut flow: Flow,
        token: usize,
        now: Instant,
        readiness: &mut R,
        out: &mut Vec<u8>,
    ) -> io::Result<Fate> {
        for _ in 0..WRITES {
            if !out.is_empty() {
                let written = match net::write(&self.socket, out) {
                    Ok(written) => written,
                    Err(error) if is_retry(&error) => 0,
                    Err(_) => return Ok(Fate::Ends),
                };
                if written < out.len() {
                    return self.keep(flow, &out[written..], token, now, readiness);
                }
                out.clear();
            }
            if flow == Flow::Close {
                return Ok(self.linger(now));
            }
            flow = self.session.on_writable(now, out);
            if out.is_empty() {
                return Ok(if flow == Flow::Close { self.linger(now) } else { Fate::Lives });
            }
        }
        self.keep(flow, out, token, now, readiness)
    }

    /// Keeps what could not be sent, and waits for room instead of input.
    fn keep<R: Readiness>(
        &mut self,
        flow: Flow,
        rest: &[u8],
        token: usize,
        now: Instant,
        readiness: &mut R,
    ) -> io::Result<Fate> {
        self.unsent.extend_from_slice(rest);
        self.sent = now;
        if flow == Flow::Close {
            self.state = State::Closing;
        }
        self.watch(Interest::Write, token, readiness)
    }

    /// There is room: writes what was kept, then what the session holds, then waits for input.
    fn flush<R: Readiness>(
        &mut self,
        token: usize,
        now: Instant,
        readiness: &mut R,
        out: &mut Vec<u8>,
    ) -> io::Result<Fate> {
        match net::write(&self.socket, &self.unsent) {
            Ok(written) => {
                self.unsent.drain(..written);
                self.sent = now;
            }
            Err(error) if is_retry(&error) => {}
            Err(_) => return Ok(Fate::Ends),
        }
        if !self.unsent.is_empty() {
            return Ok(Fate::Lives);
        }
        self.unsent = Vec::new();
        out.clear();
        let flow = match self.state {
            State::Closing => Flow::Close,
            _ => self.session.on_writable(now, out),
        };
        if self.deliver(flow, token, now, readiness, out)? == Fate::Ends {
            return Ok(Fate::Ends);
        }
        if !self.unsent.is_empty() {
            return Ok(Fate::Lives);
        }
        self.watch(Interest::Read, token, readiness)
    }

    fn watch<R: Readiness>(
        &mut self,
        interest: Interest,
        token: usize,
        readiness: &mut R,
    ) -> io::Result<Fate> {
        match self.interest {
            None => readiness.add(self.socket.as_fd(), token, interest)?,
            Some(before) if before != interest => {
                readiness.modify(self.socket.as_fd(), token, interest)?;
            }
            Some(_) => {}
        }
        self.interest = Some(interest);
        Ok(Fate::Lives)
    }

    /// Ends our direction and waits for the end of the other. One whose input has ended is closed:
    /// ending our direction too would, at a stop, answer what the client still sends with a reset
    /// that overtakes the last reply (RFC 1122, 4.2.2.13). One whose client has said that it sends
    /// no more is closed too.
    fn linger(&mut self, now: Instant) -> Fate {
        if self.ended || self.session.has_parted() {
            return Fate::Ends;
        }
        match net::finish_writing(&self.socket) {
            Ok(()) => {
                let until = now + Limits::LINGER;
                self.state = State::Lingering { until, bytes: Limits::LINGER_BYTES };
                Fate::Lives
            }
            Err(_) => Fate::Ends,
        }
    }

    fn discard(&mut self, input: &mut [u8]) -> Fate {
        let State::Lingering { bytes, .. } = &mut self.state else { return Fate::Ends };
        match net::read(&self.socket, input) {
            Ok(read @ 1..) if read < *bytes => {
                *bytes -= read;
                Fate::Lives
            }
            Err(error) if is_retry(&error) => Fate::Lives,
            _ => Fate::Ends,
        }
    }
}

fn is_retry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
