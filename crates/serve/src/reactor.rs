//! The loop of the callback models: waits for readiness, reads, calls the session, writes.
//!
//! One read and one write for all that is buffered. Level-triggered, so a connection whose output
//! was cut short simply waits for room instead of input, and its client stops being read.

mod connection;

use crate::{
    host::{Host, PAUSE, Places, ServeError},
    log::Refusals,
    offload::{Desk, Pool},
};
use connection::{Connection, Fate, Io, State};
use regatta_service::{Limits, Program};
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

const LISTENER: usize = usize::MAX;
const STOP: usize = usize::MAX - 1;
const DONE: usize = usize::MAX - 2;

/// Serves in this one thread, with a listener of its own.
pub(crate) fn run_alone<P: Program, R: Readiness>(
    program: P,
    host: &Host,
    readiness: R,
) -> Result<(), ServeError> {
    let listener = host.listen(false)?;
    let places = Places::new(host)?;
    host.ready(&listener)?;
    let pool = Pool::of(host)?;
    Ok(run(program, host, places, listener, readiness, pool)?)
}

/// Serves connections of `listener` until the host stops and they have drained. `pool` does the long
/// jobs; where there is none, they are done here.
pub(crate) fn run<P: Program, R: Readiness>(
    program: P,
    host: &Host,
    places: Places,
    listener: OwnedFd,
    mut readiness: R,
    pool: Option<Pool>,
) -> io::Result<()> {
    readiness.add(host.stop.as_fd(), STOP, Interest::Read)?;
    readiness.add(listener.as_fd(), LISTENER, Interest::Read)?;
    let desk = pool.map(Desk::new).transpose()?;
    if let Some(desk) = &desk {
        readiness.add(desk.as_fd(), DONE, Interest::Read)?;
    }
    let sweep = host.limits.idle.min(host.limits.request).min(Limits::LINGER) / 8;
    Reactor {
        program,
        host,
        places,
        refusals: Refusals::default(),
        io: Io { readiness, desk },
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
    io: Io<R>,
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

impl<P: Program, R: Readiness> Reactor<'_, P, R> {
    fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::new();
        while self.listener.is_some() || !self.connections.is_empty() {
            self.io.readiness.wait(&mut events, self.timeout())?;
            let now = Instant::now();
            for event in &events {
                match event.token {
                    LISTENER => self.accept(now)?,
                    STOP => self.stop(now)?,
                    DONE => self.done(now)?,
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
                    if let Some(because) = self.io.readiness.refusal(socket.as_fd()) {
                        self.refusals.add(now, because);
                        continue;
                    }
                    let session = self.program.session(self.host.limits, now, self.host.defer());
                    let token =
                        self.connections.insert(Connection::new(socket, place, session, now));
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
        let fate = self.connections[token].read(now, &mut self.input, &mut self.out);
        if self.follow(token, fate).is_err() {
            self.connections.try_remove(token); // out of memory to watch it: it is closed
            self.pause(now)?;
        }
        Ok(())
    }

    /// Stops accepting until the next sweep.
    fn pause(&mut self, now: Instant) -> io::Result<()> {
        if let (Some(listener), false) = (&self.listener, self.paused) {
            self.io.readiness.remove(listener.as_fd())?;
            self.paused = true;
            self.next_sweep = self.next_sweep.min(now + PAUSE);
        }
        Ok(())
    }

    /// Ends the input of all connections; they answer what has arrived.
    fn stop(&mut self, now: Instant) -> io::Result<()> {
        self.io.readiness.remove(self.host.stop.as_fd())?;
        if let (Some(listener), false) = (self.listener.take(), self.paused) {
            self.io.readiness.remove(listener.as_fd())?;
        }
        self.paused = false;
        self.cut_at = Some(now + self.host.grace);
        self.sweep = self.sweep.min(PAUSE);
        self.next_sweep = now;
        for (_, connection) in self.connections.iter().filter(|(_, c)| !c.lingers()) {
            // One that is gone already tells so at its next read.
            let _ = net::finish_reading(&connection.socket);
        }
        Ok(())
    }

    fn ready(&mut self, token: usize, now: Instant) -> io::Result<()> {
        // A connection that ended earlier in this turn may have had another event.
        let Some(connection) = self.connections.get_mut(token) else { return Ok(()) };
        let Self { input, out, .. } = self;
        let fate = match connection.interest {
            None => return Ok(()),
            Some(Interest::Write) => connection.flush(now, out),
            Some(Interest::Read) if connection.lingers() => connection.discard(input),
            Some(Interest::Read) => connection.read(now, input, out),
        };
        self.follow(token, fate)
    }

    /// Jobs were done for some connections.
    fn done(&mut self, now: Instant) -> io::Result<()> {
        for done in self.io.take_done() {
            let token = done.token;
            // The connection may have ended meanwhile, and another one have its number.
            let Some(connection) = self.connections.get_mut(token) else { continue };
            let fate = connection.done(done, now, &mut self.out);
            self.follow(token, fate)?;
        }
        Ok(())
    }

    /// Watches a connection for what it wants next. One that is done with is closed, at once unless
    /// a stop is under way.
    fn follow(&mut self, token: usize, fate: Fate) -> io::Result<()> {
        let connection = &mut self.connections[token];
        if fate == Fate::Ends {
            if self.host.stop.may_close(&connection.socket) {
                return self.end(token);
            }
            connection.state = State::Delivering;
        }
        connection.settle(token, &mut self.io)
    }

    fn end(&mut self, token: usize) -> io::Result<()> {
        let connection = self.connections.remove(token);
        match connection.interest {
            Some(_) => self.io.readiness.closing(connection.socket.as_fd()),
            None => Ok(()),
        }
    }

    /// Ends the connections whose time has come, and resumes accepting.
    fn sweep(&mut self, now: Instant) -> io::Result<()> {
        let cut = self.cut_at.is_some_and(|at| now >= at);
        let over: Vec<usize> = self
            .connections
            .iter_mut()
            .filter_map(|(token, c)| (cut || c.is_due(now, self.host)).then_some(token))
            .collect();
        for token in over {
            self.end(token)?;
        }
        if let (Some(listener), true) = (&self.listener, self.paused) {
            self.io.readiness.add(listener.as_fd(), LISTENER, Interest::Read)?;
            self.paused = false;
        }
        self.next_sweep = now + self.sweep;
        Ok(())
    }
}
