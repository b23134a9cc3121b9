//! One connection of a reactor: what each event on its socket leads to, and what it is watched for
//! next.

use crate::{
    host::{Host, Place},
    offload::{Desk, Done},
};
use regatta_service::{Flow, Limits, style::Session};
use regatta_sys::{Interest, Readiness, net};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

/// Full replies that a connection may write before others get their turn.
const WRITES: usize = 16;

/// What connections are watched with, and who does their jobs.
pub(super) struct Io<R> {
    pub(super) readiness: R,
    pub(super) desk: Option<Desk>,
}

impl<R> Io<R> {
    /// Jobs that were done.
    pub(super) fn take_done(&self) -> Vec<Done> {
        self.desk.as_ref().map(Desk::take).unwrap_or_default()
    }
}

pub(super) struct Connection<S> {
    pub(super) socket: OwnedFd,
    _place: Place,
    session: S,
    /// What the socket is watched for; `None` before it has been looked at once, and while nothing
    /// but a job can change anything.
    pub(super) interest: Option<Interest>,
    /// Output that the socket had no room for; while there is any, room is waited for.
    unsent: Vec<u8>,
    /// When the socket last had room.
    sent: Instant,
    pub(super) state: State,
    /// No more input will come: the client has ended it, or a stop has.
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
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
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Lives,
    Ends,
}

impl<S: Session> Connection<S> {
    /// Not watched yet.
    pub(super) fn new(socket: OwnedFd, place: Place, session: S, now: Instant) -> Self {
        Connection {
            socket,
            _place: place,
            session,
            interest: None,
            unsent: Vec::new(),
            sent: now,
            state: State::Open,
            ended: false,
        }
    }

    pub(super) fn lingers(&self) -> bool {
        matches!(self.state, State::Lingering { .. })
    }

    /// There is input.
    pub(super) fn read(&mut self, now: Instant, input: &mut [u8], out: &mut Vec<u8>) -> Fate {
        out.clear();
        let flow = match net::read(&self.socket, input) {
            Ok(0) => {
                self.ended = true;
                let flow = self.session.on_end(now, out);
                if flow == Flow::Close && out.is_empty() {
                    return Fate::Ends;
                }
                flow
            }
            Ok(read) => self.session.on_bytes(now, &input[..read], out),
            Err(error) if is_retry(&error) => return Fate::Lives,
            Err(_) => return Fate::Ends,
        };
        self.deliver(flow, now, out)
    }

    /// A job is done: writes what is due now. What the client has not yet taken goes first.
    pub(super) fn done(&mut self, done: Done, now: Instant, out: &mut Vec<u8>) -> Fate {
        let Some(slots) = self.session.slots() else { return Fate::Lives };
        slots.finish(done.id, |out| {
            out.extend_from_slice(&done.reply);
            done.flow
        });
        if self.waits_for_room() || self.state != State::Open {
            return Fate::Lives;
        }
        out.clear();
        let flow = self.session.on_writable(now, out);
        self.deliver(flow, now, out)
    }

    /// Writes `out`, and what the session still holds after it.
    fn deliver(&mut self, mut flow: Flow, now: Instant, out: &mut Vec<u8>) -> Fate {
        for _ in 0..WRITES {
            if !out.is_empty() {
                let parts = flow == Flow::Close && self.session.has_parted();
                let write = if parts { net::write_last } else { net::write };
                let written = match write(&self.socket, out) {
                    Ok(written) => written,
                    Err(error) if is_retry(&error) => 0,
                    Err(_) => return Fate::Ends,
                };
                if written < out.len() {
                    return self.keep(flow, &out[written..], now);
                }
                out.clear();
                // Not left to the close: with something unread that would be a reset, and the last
                // bytes lost.
                if parts && net::finish_writing(&self.socket).is_err() {
                    return Fate::Ends;
                }
            }
            if flow == Flow::Close {
                return self.linger(now);
            }
            if self.session.had_its_turn() {
                break; // it goes on in the next one
            }
            flow = self.session.on_writable(now, out);
            if out.is_empty() {
                return if flow == Flow::Close { self.linger(now) } else { Fate::Lives };
            }
        }
        self.keep(flow, out, now)
    }

    /// Keeps what could not be sent: room is waited for instead of input.
    fn keep(&mut self, flow: Flow, rest: &[u8], now: Instant) -> Fate {
        self.unsent.extend_from_slice(rest);
        self.sent = now;
        if flow == Flow::Close {
            self.state = State::Closing;
        }
        Fate::Lives
    }

    /// Room is waited for, or just the next turn.
    #[inline]
    fn waits_for_room(&self) -> bool {
        !self.unsent.is_empty() || self.session.had_its_turn()
    }

    /// There is room: writes what was kept, then what the session holds.
    pub(super) fn flush(&mut self, now: Instant, out: &mut Vec<u8>) -> Fate {
        if !self.unsent.is_empty() {
            match net::write(&self.socket, &self.unsent) {
                Ok(written) => {
                    self.unsent.drain(..written);
                    self.sent = now;
                }
                Err(error) if is_retry(&error) => {}
                Err(_) => return Fate::Ends,
            }
            if !self.unsent.is_empty() {
                return Fate::Lives;
            }
            self.unsent = Vec::new();
        }
        out.clear();
        let flow = match self.state {
            State::Closing => Flow::Close,
            _ => self.session.on_writable(now, out),
        };
        self.deliver(flow, now, out)
    }

    /// After all of these: hands over the jobs that the session has come upon, and watches the socket
    /// for what is wanted next.
    #[inline]
    pub(super) fn settle<R: Readiness>(&mut self, token: usize, io: &mut Io<R>) -> io::Result<()> {
        if let (Some(slots), Some(desk)) = (self.session.slots(), &io.desk) {
            while let Some((id, job)) = slots.next_job() {
                desk.submit(token, id, job, slots.wanted());
            }
        }
        let wanted = match self.state {
            State::Delivering => None,
            State::Lingering { .. } => Some(Interest::Read),
            _ if self.waits_for_room() => Some(Interest::Write),
            _ => (!self.ended && self.session.wants_input()).then_some(Interest::Read),
        };
        let socket = self.socket.as_fd();
        match (self.interest, wanted) {
            (before, wanted) if before == wanted => return Ok(()),
            (None, Some(wanted)) => io.readiness.add(socket, token, wanted)?,
            (Some(_), Some(wanted)) => io.readiness.modify(socket, token, wanted)?,
            (_, None) => io.readiness.remove(socket)?,
        }
        self.interest = wanted;
        Ok(())
    }

    /// Ends our direction and waits for the end of the other. One whose input has ended is closed:
    /// ending our direction too would, at a stop, answer what the client still sends with a reset
    /// that overtakes the last reply (RFC 1122, 4.2.2.13). One whose client has said that it sends
    /// no more is closed too.
    fn linger(&mut self, now: Instant) -> Fate {
        if self.ended || self.session.has_parted() || net::finish_writing(&self.socket).is_err() {
            return Fate::Ends;
        }
        let until = now + Limits::LINGER;
        self.state = State::Lingering { until, bytes: Limits::LINGER_BYTES };
        Fate::Lives
    }

    pub(super) fn discard(&mut self, input: &mut [u8]) -> Fate {
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

    /// Whether its time has come.
    pub(super) fn is_due(&mut self, now: Instant, host: &Host) -> bool {
        match self.state {
            State::Lingering { until, .. } => now >= until,
            State::Delivering => host.stop.may_close(&self.socket),
            // Not watched: it waits for its jobs, unless its client has gone.
            _ if self.interest.is_none() => net::is_gone(&self.socket),
            // After a long stall of the process what came in time may not have been read yet.
            _ if self.waits_for_room() => {
                now >= self.sent + host.limits.idle && !net::is_ready(&self.socket, Interest::Write)
            }
            _ => {
                now >= self.session.due()
                    && !net::is_ready(&self.socket, Interest::Read)
                    && self.session.on_tick(now) == Flow::Close
            }
        }
    }
}

fn is_retry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
