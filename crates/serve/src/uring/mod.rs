//! `uring`: a thread and an io_uring(7) per core, each with a listener of its own (SO_REUSEPORT).
//!
//! Where a reactor is told what it may do, here it is told what was done: connections accepted,
//! bytes received, replies sent. A turn is one system call, which hands over what the last turn
//! queued and waits for more.

mod connection;

use crate::{
    host::{Host, PAUSE, Places, ServeError},
    offload::{Desk, Done, Pool},
};
use connection::{Connection, Fate, Io};
use regatta_service::{Defer, Flow, Job, JobId, Limits, MAX_FILE, Program, style::Session};
use regatta_sys::{
    net,
    uring::{self, Completion, Ring},
};
use slab::Slab;
use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    if let Some(because) = uring::refused() {
        return Err(ServeError::Refused { model: "uring", because });
    }
    let pool = Pool::of(host)?;
    host.on_each_core(|places, listener| {
        let desk = pool.clone().map(Desk::new).transpose()?;
        Core::new(program.clone(), host, places, listener, desk)?.run()
    })
}

/// Starved receives that start again in a turn: not more than there are buffers.
const FEED: usize = 64;

/// Tokens of what is watched.
const STOP: u32 = 0;
const DONE: u32 = 1;

type JobOf<P> = <<P as Program>::Session as Session>::Job;

/// What a thread has.
struct Core<'h, P: Program> {
    program: P,
    host: &'h Host,
    places: Places,
    io: Io,
    /// `None` once the server stops and accepting has ended.
    listener: Option<OwnedFd>,
    /// Whether connections are being accepted.
    accepting: bool,
    /// Whether an accept goes on after its first connection.
    many: bool,
    /// When accepting resumes, if no descriptor or no place is left.
    resume_at: Option<Instant>,
    /// Accepted, but without a place: at most one.
    parked: VecDeque<OwnedFd>,
    connections: Slab<Connection<P::Session>>,
    /// Jobs whose file is being read, with the connection that each is for.
    jobs: Slab<(u32, JobId, JobOf<P>)>,
    /// Who does the long jobs, if that is not this thread.
    desk: Option<Desk>,
    /// Connections for whose input no buffer was left, in their order.
    starved: VecDeque<u32>,
    /// How often all connections are asked whether they are due.
    sweep: Duration,
    next_sweep: Instant,
    /// When a stopping server cuts what is left.
    cut_at: Option<Instant>,
}

impl<'h, P: Program> Core<'h, P> {
    fn new(
        program: P,
        host: &'h Host,
        places: Places,
        listener: OwnedFd,
        desk: Option<Desk>,
    ) -> io::Result<Self> {
        let mut ring = Ring::new()?;
        // On a non-blocking descriptor an operation would fail rather than wait.
        net::set_blocking(&listener)?;
        ring.watch(&host.stop, STOP)?;
        if let Some(desk) = &desk {
            ring.watch(desk, DONE)?;
        }
        // One at a time where places are limited: what the kernel accepts beyond them would wait
        // here, and on this core.
        let many = host.connections == usize::MAX;
        ring.accept(&listener, many)?;
        let sweep = host.limits.idle.min(host.limits.request).min(Limits::LINGER) / 8;
        Ok(Core {
            program,
            host,
            places,
            io: Io::new(ring),
            listener: Some(listener),
            accepting: true,
            many,
            resume_at: None,
            parked: VecDeque::new(),
            connections: Slab::new(),
            jobs: Slab::new(),
            desk,
            starved: VecDeque::new(),
            sweep: sweep.clamp(Duration::from_millis(1), Duration::from_secs(1)),
            next_sweep: Instant::now(),
            cut_at: None,
        })
    }

    fn run(mut self) -> io::Result<()> {
        while self.listener.is_some() || !self.connections.is_empty() {
            self.feed()?;
            self.io.ring.wait(self.timeout())?;
            let now = Instant::now();
            while let Some(completion) = self.io.ring.completion() {
                self.completed(completion, now)?;
            }
            // What the kernel holds back for want of room may be the input of one that seems idle.
            if now >= self.next_sweep && !self.io.ring.has_overflown() {
                self.sweep(now)?;
            }
            if self.resume_at.is_some_and(|at| now >= at) {
                self.resume(now)?;
            }
        }
        Ok(())
    }

    /// How long to wait for completions.
    fn timeout(&self) -> Option<Duration> {
        if !self.starved.is_empty() {
            return Some(Duration::ZERO);
        }
        let sweep = (!self.connections.is_empty()).then_some(self.next_sweep);
        let next = sweep.into_iter().chain(self.resume_at).min();
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }

    #[inline]
    fn completed(&mut self, completion: Completion, now: Instant) -> io::Result<()> {
        match completion {
            Completion::Received { token, result, more } => {
                let connection = &mut self.connections[token as usize];
                let fate = connection.received(result, more, token, now, &mut self.io)?;
                if connection.is_starved() {
                    self.starved.push_back(token);
                }
                self.follow(fate, token)
            }
            Completion::Sent { token, result, bytes } => {
                let connection = &mut self.connections[token as usize];
                let fate = connection.sent(result, bytes, token, now, &mut self.io)?;
                self.follow(fate, token)
            }
            Completion::Accepted { result, more } => self.accepted(result, more, now),
            Completion::FileRead { token, result, content } => {
                let (token, id, job) = self.jobs.remove(token as usize);
                let (file, short) = (result.map(|()| &content[..]), job.is_short());
                self.done(token, id, now, |reply| job.finish(file, reply))?;
                self.io.ring.give_back_content(content);
                // The reply of one that took its time does not wait for the next one's.
                if short { Ok(()) } else { self.io.ring.hand_over() }
            }
            Completion::Readable { token: DONE } => self.done_elsewhere(now),
            Completion::Readable { .. } => self.stop(now),
        }
    }

    /// Takes on the jobs that a session has come upon: the ring reads the file, and who computes is
    /// this thread, or, where it takes long, who is there for that.
    #[inline]
    fn take_on(&mut self, token: u32) {
        let Some(connection) = self.connections.get_mut(token as usize) else { return };
        while let Some((id, job)) = connection.next_job() {
            match &self.desk {
                Some(desk) if Defer::Long.takes(&job) => {
                    desk.submit(token as usize, id, job, connection.wanted());
                }
                _ => {
                    let file = Arc::clone(job.file());
                    let key = self.jobs.insert((token, id, job)) as u32;
                    self.io.ring.read_file(file, key, MAX_FILE);
                }
            }
        }
    }

    /// A job is done, or to be finished now.
    fn done(
        &mut self,
        token: u32,
        id: JobId,
        now: Instant,
        finish: impl FnOnce(&mut Vec<u8>) -> Flow,
    ) -> io::Result<()> {
        // The connection may have ended meanwhile, and another one have its number.
        let Some(connection) = self.connections.get_mut(token as usize) else { return Ok(()) };
        let fate = connection.done(id, finish, token, now, &mut self.io)?;
        self.follow(fate, token)
    }

    fn done_elsewhere(&mut self, now: Instant) -> io::Result<()> {
        let Some(desk) = &self.desk else { return Ok(()) };
        let done = desk.take();
        self.io.ring.watch(desk, DONE)?;
        for Done { token, id, reply, flow } in done {
            self.done(token as u32, id, now, |out| {
                out.extend_from_slice(&reply);
                flow
            })?;
        }
        Ok(())
    }

    #[inline]
    fn follow(&mut self, fate: Fate, token: u32) -> io::Result<()> {
        match fate {
            Fate::Lives => {
                self.take_on(token);
                Ok(())
            }
            Fate::Ends => {
                let connection = &mut self.connections[token as usize];
                if self.host.stop.may_close(&connection.socket) {
                    return self.end(token);
                }
                connection.deliver(token, &mut self.io)
            }
            Fate::Gone => {
                self.connections.remove(token as usize);
                Ok(())
            }
        }
    }

    /// Cancels what is under way on a connection; it is closed once nothing is.
    fn end(&mut self, token: u32) -> io::Result<()> {
        if self.connections[token as usize].end(token, &mut self.io)? == Fate::Gone {
            self.connections.remove(token as usize);
        }
        Ok(())
    }

    /// Receives again where no buffer was left. By now all have been given back.
    fn feed(&mut self) -> io::Result<()> {
        for _ in 0..self.starved.len().min(FEED) {
            let Some(token) = self.starved.pop_front() else { break };
            // It may have ended meanwhile, and another one have come.
            if let Some(connection) = self.connections.get_mut(token as usize) {
                connection.feed(token, &mut self.io)?;
            }
        }
        Ok(())
    }

    fn accepted(
        &mut self,
        result: io::Result<OwnedFd>,
        more: bool,
        now: Instant,
    ) -> io::Result<()> {
        self.accepting = more;
        if self.cut_at.is_some() {
            if !more {
                self.listener = None;
            }
            return Ok(()); // it came too late: it is closed
        }
        match result {
            Ok(socket) => {
                self.parked.push_back(socket);
                if !self.admit(now)? {
                    self.pause(now)?;
                }
            }
            Err(error) if net::is_transient(&error) => {}
            Err(_) if self.resume_at.is_some() => {} // cancelled by a pause
            // Out of descriptors or memory: who waits stays in the kernel's queue.
            Err(_) => self.pause(now)?,
        }
        self.accept()
    }

    /// Gives those who wait their places. `false`: there are too few.
    fn admit(&mut self, now: Instant) -> io::Result<bool> {
        while !self.parked.is_empty() {
            let Some(place) = self.places.take() else { return Ok(false) };
            let Some(socket) = self.parked.pop_front() else { break };
            let entry = self.connections.vacant_entry();
            let token = entry.key() as u32;
            let session = self.program.session(self.host.limits, now, Defer::All);
            entry.insert(Connection::new(socket, session, place, token, now, &mut self.io)?);
            // The first connection of an idle server starts the sweeps.
            self.next_sweep = self.next_sweep.clamp(now, now + self.sweep);
        }
        Ok(true)
    }

    fn accept(&mut self) -> io::Result<()> {
        if let (Some(listener), false, None) = (&self.listener, self.accepting, self.resume_at) {
            self.io.ring.accept(listener, self.many)?;
            self.accepting = true;
        }
        Ok(())
    }

    /// Stops accepting for a while.
    fn pause(&mut self, now: Instant) -> io::Result<()> {
        if self.resume_at.is_none() && self.accepting {
            self.io.ring.cancel_accept()?;
        }
        self.resume_at = Some(now + PAUSE);
        Ok(())
    }

    fn resume(&mut self, now: Instant) -> io::Result<()> {
        if !self.admit(now)? || self.places.are_full() {
            return self.pause(now);
        }
        self.resume_at = None;
        self.accept()
    }

    /// Ends the input of all connections; they answer what has arrived.
    fn stop(&mut self, now: Instant) -> io::Result<()> {
        if self.accepting {
            self.io.ring.cancel_accept()?;
        } else {
            self.listener = None;
        }
        self.parked.clear();
        self.resume_at = None;
        self.cut_at = Some(now + self.host.grace);
        self.sweep = self.sweep.min(PAUSE);
        self.next_sweep = now;
        for (_, connection) in &self.connections {
            connection.finish_reading();
        }
        Ok(())
    }

    /// Ends the connections whose time has come.
    fn sweep(&mut self, now: Instant) -> io::Result<()> {
        let cut = self.cut_at.is_some_and(|at| now >= at);
        let over: Vec<usize> = self
            .connections
            .iter_mut()
            .filter_map(|(token, c)| (cut || c.is_due(now, self.host)).then_some(token))
            .collect();
        for token in over {
            self.end(token as u32)?;
        }
        self.next_sweep = now + self.sweep;
        Ok(())
    }
}
