//! One connection of `uring`: what is under way for it, and what each completion leads to.
//!
//! While a reply is on its way, what comes is held, up to a limit; beyond it receiving ends until
//! all is sent: a client that does not read stops being read.

use crate::host::{Host, Place};
use regatta_service::{Flow, JobId, Limits, style::Session};
use regatta_sys::{
    Interest, net,
    uring::{Received, Ring, SendKey},
};
use std::{io, os::fd::OwnedFd, sync::Weak, time::Instant};

/// Bytes that may come while a reply is on its way. What the ring's buffers hold may come on top,
/// until the cancelled receive has ended.
const HELD: usize = 16 * 1024;
/// Memory of replies that is kept for others: how many pieces, and the most bytes of one.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 64 * 1024;

/// The ring of a thread, and memory for replies: one that waits holds none.
pub(super) struct Io {
    pub(super) ring: Ring,
    spare: Vec<Vec<u8>>,
}

impl Io {
    pub(super) fn new(ring: Ring) -> Self {
        Io { ring, spare: Vec::with_capacity(SPARE) }
    }

    fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    fn keep(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < SPARE && bytes.capacity() <= SPARE_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

pub(super) struct Connection<S> {
    pub(super) socket: OwnedFd,
    session: S,
    state: State,
    receiving: Receiving,
    input: Input,
    /// What came while a reply was on its way.
    held: Vec<u8>,
    /// The reply on its way, of which so many bytes are sent; the socket last had room then.
    sending: Option<SendKey>,
    sent: usize,
    had_room: Instant,
    _place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// No more input is wanted; the connection closes once the reply is sent.
    Closing,
    /// Our direction has ended. What still comes is thrown away until the client ends its own,
    /// so that a reset does not overtake the last reply.
    Lingering {
        until: Instant,
        bytes: usize,
    },
    /// Ended by a stop; closes once the client has all that was sent.
    Delivering,
    /// Closes once nothing is under way.
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiving {
    No,
    Yes,
    /// Cancelled, and not ended yet.
    Ending,
    /// Waits for its turn to be started again.
    Starved,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// Its end has come, behind what is held.
    Ended,
    /// The session knows of the end.
    Told,
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lives,
    /// It is done with.
    Ends,
    /// It has ended, and nothing is under way.
    Gone,
}

impl<S: Session> Connection<S> {
    /// Starts to receive.
    pub(super) fn new(
        socket: OwnedFd,
        session: S,
        place: Place,
        token: u32,
        now: Instant,
        io: &mut Io,
    ) -> io::Result<Self> {
        io.ring.receive(&socket, token)?;
        Ok(Connection {
            socket,
            session,
            state: State::Open,
            receiving: Receiving::Yes,
            input: Input::Open,
            held: Vec::new(),
            sending: None,
            sent: 0,
            had_room: now,
            _place: place,
        })
    }

    /// Something was received, or receiving has ended (not `more`).
    #[inline]
    pub(super) fn received(
        &mut self,
        result: Received,
        more: bool,
        token: u32,
        now: Instant,
        io: &mut Io,
    ) -> io::Result<Fate> {
        if !more {
            self.receiving = Receiving::No;
        }
        if let State::Ended | State::Delivering = self.state {
            if let Received::Bytes(unwanted) = result {
                io.ring.give_back(unwanted);
            }
            return Ok(self.rest());
        }
        match result {
            Received::Bytes(buffer) => {
                let bytes = io.ring.bytes(&buffer);
                if let State::Lingering { bytes: left, .. } = &mut self.state {
                    *left = left.saturating_sub(bytes.len());
                    let over = *left == 0;
                    io.ring.give_back(buffer);
                    if over {
                        return Ok(Fate::Ends);
                    }
                } else if self.sending.is_some() || !self.session.wants_input() {
                    self.held.extend_from_slice(bytes);
                    io.ring.give_back(buffer);
                    if self.held.len() > HELD {
                        self.cancel_receive(token, io)?;
                    }
                } else {
                    let mut out = io.take();
                    let flow = self.session.on_bytes(now, io.ring.bytes(&buffer), &mut out);
                    io.ring.give_back(buffer);
                    return self.go_on(flow, out, token, now, io);
                }
            }
            Received::End => {
                self.input = Input::Ended;
                if let State::Lingering { .. } = self.state {
                    return Ok(Fate::Ends);
                }
                if self.sending.is_none() {
                    let out = io.take();
                    return self.go_on(Flow::Continue, out, token, now, io);
                }
            }
            Received::Starved => self.receiving = Receiving::Starved,
            Received::Cancelled => {}
            Received::Failed(_) => return Ok(Fate::Ends),
        }
        self.receive(token, io)?;
        Ok(Fate::Lives)
    }

    /// A send is over; `bytes` is the reply.
    #[inline]
    pub(super) fn sent(
        &mut self,
        result: io::Result<usize>,
        mut bytes: Vec<u8>,
        token: u32,
        now: Instant,
        io: &mut Io,
    ) -> io::Result<Fate> {
        self.sending = None;
        if let State::Ended | State::Delivering = self.state {
            return Ok(self.rest());
        }
        match result {
            Ok(sent) => {
                self.sent += sent;
                self.had_room = now;
            }
            Err(_) => return Ok(Fate::Ends),
        }
        if self.sent < bytes.len() {
            return self.send(bytes, token, io);
        }
        bytes.clear();
        let flow = match self.state {
            State::Closing => Flow::Close,
            _ => self.session.on_writable(now, &mut bytes),
        };
        self.go_on(flow, bytes, token, now, io)
    }

    /// The next job that the session has come upon.
    #[inline]
    pub(super) fn next_job(&mut self) -> Option<(JobId, S::Job)> {
        self.session.slots()?.next_job()
    }

    /// Gone once nobody waits for what its jobs come to.
    pub(super) fn wanted(&mut self) -> Weak<()> {
        self.session.slots().map(|slots| slots.wanted()).unwrap_or_default()
    }

    /// A job is done, or to be finished now; its reply is sent after what is on its way.
    pub(super) fn done(
        &mut self,
        id: JobId,
        finish: impl FnOnce(&mut Vec<u8>) -> Flow,
        token: u32,
        now: Instant,
        io: &mut Io,
    ) -> io::Result<Fate> {
        let Some(slots) = self.session.slots() else { return Ok(Fate::Lives) };
        slots.finish(id, finish);
        if self.sending.is_some() || self.state != State::Open {
            return Ok(Fate::Lives);
        }
        let mut out = io.take();
        let flow = self.session.on_writable(now, &mut out);
        self.go_on(flow, out, token, now, io)
    }

    /// Nothing is on its way: sends `out`, or else answers what is held, or else receives.
    fn go_on(
        &mut self,
        mut flow: Flow,
        mut out: Vec<u8>,
        token: u32,
        now: Instant,
        io: &mut Io,
    ) -> io::Result<Fate> {
        loop {
            if !out.is_empty() {
                if flow == Flow::Close {
                    self.state = State::Closing;
                }
                (self.sent, self.had_room) = (0, now);
                return self.send(out, token, io);
            }
            if flow == Flow::Close {
                io.keep(out);
                return self.linger(token, now, io);
            }
            let wants_input = self.session.wants_input();
            if !self.held.is_empty() && wants_input {
                let held = std::mem::take(&mut self.held);
                flow = self.session.on_bytes(now, &held, &mut out);
                io.keep(held);
            } else if self.input == Input::Ended && wants_input {
                self.input = Input::Told;
                flow = self.session.on_end(now, &mut out);
                if flow == Flow::Close && out.is_empty() {
                    io.keep(out);
                    return Ok(Fate::Ends);
                }
            } else {
                io.keep(out);
                self.receive(token, io)?;
                return Ok(Fate::Lives);
            }
        }
    }

    /// Queues the reply: it is sent with the next wait, so a turn is one system call however many
    /// replies it has. A send(2) here costs as much CPU in total, measured unpipelined and 16 deep,
    /// and is a call for each reply.
    fn send(&mut self, bytes: Vec<u8>, token: u32, io: &mut Io) -> io::Result<Fate> {
        self.sending = Some(io.ring.send(&self.socket, token, bytes, self.sent)?);
        Ok(Fate::Lives)
    }

    /// Receives, if that is not under way and input is wanted.
    #[inline]
    fn receive(&mut self, token: u32, io: &mut Io) -> io::Result<()> {
        let wanted =
            self.sending.is_none() && self.input == Input::Open && self.session.wants_input();
        if self.receiving == Receiving::No && wanted {
            io.ring.receive(&self.socket, token)?;
            self.receiving = Receiving::Yes;
        }
        Ok(())
    }

    fn cancel_receive(&mut self, token: u32, io: &mut Io) -> io::Result<()> {
        if self.receiving == Receiving::Yes {
            io.ring.cancel_receive(token)?;
            self.receiving = Receiving::Ending;
        }
        Ok(())
    }

    pub(super) fn is_starved(&self) -> bool {
        self.receiving == Receiving::Starved
    }

    /// There are buffers again.
    pub(super) fn feed(&mut self, token: u32, io: &mut Io) -> io::Result<()> {
        let wanted = !matches!(self.state, State::Ended | State::Delivering);
        if self.is_starved() && wanted {
            self.receiving = Receiving::No;
            self.receive(token, io)?;
        }
        Ok(())
    }

    /// Ends our direction and waits for the end of the other. One whose input has ended is closed:
    /// ending our direction too would, at a stop, answer what the client still sends with a reset
    /// that overtakes the last reply (RFC 1122, 4.2.2.13). One whose client has said that it sends
    /// no more is closed too.
    fn linger(&mut self, token: u32, now: Instant, io: &mut Io) -> io::Result<Fate> {
        let parted = self.session.has_parted() && self.held.is_empty();
        if parted || self.input != Input::Open || net::finish_writing(&self.socket).is_err() {
            return Ok(Fate::Ends);
        }
        let until = now + Limits::LINGER;
        self.state = State::Lingering { until, bytes: Limits::LINGER_BYTES };
        self.held = Vec::new();
        self.receive(token, io)?;
        Ok(Fate::Lives)
    }

    /// Ends the input: what has arrived is still received. One that lingers has ended its own
    /// direction already, and is left to that.
    pub(super) fn finish_reading(&self) {
        if !matches!(self.state, State::Lingering { .. }) {
            // One that is gone already tells so at its next receive.
            let _ = net::finish_reading(&self.socket);
        }
    }

    /// Whether its time has come.
    pub(super) fn is_due(&mut self, now: Instant, host: &Host) -> bool {
        match self.state {
            State::Ended => false,
            State::Lingering { until, .. } => now >= until,
            State::Delivering => host.stop.may_close(&self.socket),
            // Nothing is under way: it waits for its jobs, unless its client has gone.
            _ if self.sending.is_none() && self.receiving == Receiving::No => {
                net::is_gone(&self.socket)
            }
            // After a long stall of the process what came in time may not have been taken yet.
            _ if self.sending.is_some() => {
                now >= self.had_room + host.limits.idle
                    && !net::is_ready(&self.socket, Interest::Write)
            }
            _ => {
                now >= self.session.due()
                    && !net::is_ready(&self.socket, Interest::Read)
                    && self.session.on_tick(now) == Flow::Close
            }
        }
    }

    /// A stop has ended it: closes when the client has all that was sent.
    pub(super) fn deliver(&mut self, token: u32, io: &mut Io) -> io::Result<()> {
        self.state = State::Delivering;
        self.cancel(token, io)
    }

    /// Closes as soon as nothing is under way.
    pub(super) fn end(&mut self, token: u32, io: &mut Io) -> io::Result<Fate> {
        if self.state != State::Ended {
            self.state = State::Ended;
            self.cancel(token, io)?;
        }
        Ok(self.rest())
    }

    fn cancel(&mut self, token: u32, io: &mut Io) -> io::Result<()> {
        self.cancel_receive(token, io)?;
        if let Some(key) = self.sending {
            io.ring.cancel_send(key)?;
        }
        Ok(())
    }

    /// What becomes of one that has ended: its descriptor must outlive what is under way on it.
    fn rest(&self) -> Fate {
        let receiving = matches!(self.receiving, Receiving::Yes | Receiving::Ending);
        let busy = receiving || self.sending.is_some();
        if self.state == State::Ended && !busy { Fate::Gone } else { Fate::Lives }
    }
}
