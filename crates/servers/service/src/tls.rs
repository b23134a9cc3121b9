//! TLS around a session. rustls performs no I/O itself, so this runs on every model that carries
//! sessions.

use crate::{Flow, Now, Session, SessionFactory};
use regatta_engine::{Bounds, Context, Never, OutputState, PushOutcome, RemoteOutcome, RoomName};
use rustls::{ServerConfig, ServerConnection};
use std::{
    io::{Read, Write},
    mem,
    sync::Arc,
    time::Instant,
};

/// Starts sessions over TLS.
#[derive(Clone, Debug)]
pub struct TlsSessionFactory<F> {
    start: F,
    config: Arc<ServerConfig>,
}

impl<F> TlsSessionFactory<F> {
    /// Wraps the sessions of `start`, with the certificates and versions of `config`.
    pub fn new(start: F, config: Arc<ServerConfig>) -> Self {
        TlsSessionFactory { start, config }
    }
}

impl<F: SessionFactory<Session: Session<Job = Never>>> SessionFactory for TlsSessionFactory<F> {
    type Session = TlsSession<F::Session>;

    fn session(&self, now: Now) -> Self::Session {
        // Fails only if the configuration has no TLS versions, which is never built.
        let tls = ServerConnection::new(Arc::clone(&self.config)).ok().map(|mut tls| {
            // The session bounds its own output.
            tls.set_buffer_limit(None);
            Box::new(tls)
        });
        TlsSession {
            inner: self.start.session(now),
            tls,
            started: now.instant,
            records: Records::default(),
            inside: None,
            ended: false,
        }
    }

    fn bounds(&self, room: &RoomName) -> Bounds {
        self.start.bounds(room)
    }

    fn arrived(
        &self,
        room: &RoomName,
        push: <F::Session as Session>::Push,
    ) -> <F::Session as Session>::Push {
        self.start.arrived(room, push)
    }
}

/// A session over TLS.
#[derive(Debug)]
pub struct TlsSession<S: Session> {
    inner: S,
    /// `None` after TLS has failed.
    tls: Option<Box<ServerConnection>>,
    started: Instant,
    records: Records,
    /// When the current incomplete record started.
    inside: Option<Instant>,
    /// `on_end` of the session was called.
    ended: bool,
}

impl<S: Session<Job = Never>> TlsSession<S> {
    /// Calls the session and encrypts what it appends. The session sees how much output is pending.
    fn call(
        &mut self,
        context: &mut Context<'_, Self>,
        what: impl FnOnce(&mut S, &mut Context<'_, S>) -> Flow,
    ) -> Flow {
        let start = context.out.len();
        let mut inner = Context {
            now: context.now,
            local: &mut *context.local,
            out: &mut *context.out,
            posts: &mut *context.posts,
        };
        let flow = what(&mut self.inner, &mut inner);
        if self.seal(context.out, start, flow != Flow::Continue) { flow } else { Flow::Close }
    }

    /// Replaces the plaintext from `start` on with its records. Returns `false` if TLS has failed.
    fn seal(&mut self, out: &mut Vec<u8>, start: usize, last: bool) -> bool {
        let Some(tls) = &mut self.tls else {
            out.truncate(start);
            return false;
        };
        if out.len() > start {
            let plain = out.split_off(start);
            // Writes to memory, without a limit.
            if tls.writer().write_all(&plain).is_err() {
                return false;
            }
        }
        if last {
            tls.send_close_notify();
        }
        flush(tls, out);
        true
    }

    /// Decrypts input and passes it to the session. Input after the end is discarded, because TLS
    /// takes no more bytes after a `close_notify`.
    fn open(&mut self, context: &mut Context<'_, Self>, mut bytes: &[u8]) -> Flow {
        while !bytes.is_empty() && !self.ended {
            let Some(tls) = &mut self.tls else { return Flow::Close };
            let read = tls.read_tls(&mut bytes).is_ok_and(|taken| taken > 0);
            let Some(state) = tls.process_new_packets().ok().filter(|_| read) else {
                // Sends the alert that describes the error.
                flush(tls, context.out);
                self.tls = None;
                return Flow::Close;
            };
            flush(tls, context.out);
            // At most what was read at once, and no more than rustls buffers.
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            if !plain.is_empty() {
                if tls.reader().read_exact(&mut plain).is_err() {
                    return Flow::Close;
                }
                let flow = self.call(context, |inner, context| inner.on_bytes(context, &mut plain));
                if flow != Flow::Continue {
                    return flow;
                }
            }
            if state.peer_has_closed() && !mem::replace(&mut self.ended, true) {
                return self.call(context, |inner, context| inner.on_end(context));
            }
        }
        Flow::Continue
    }
}

/// Tracks the record boundaries of an input (RFC 8446, 5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Records {
    /// Bytes of the current record's header read so far.
    header: u8,
    /// Bytes of the content still missing. While the header is read: the part of the length read so
    /// far.
    missing: usize,
}

impl Records {
    /// Bytes of a header: the type, a version, and the length in two bytes.
    const HEADER: u8 = 5;

    /// Processes the next input bytes. Returns whether they complete a record.
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) -> bool {
        let mut whole = false;
        while let Some((first, rest)) = bytes.split_first() {
            if self.header < Self::HEADER {
                self.header += 1;
                if self.header > Self::HEADER - 2 {
                    self.missing = self.missing << 8 | usize::from(*first);
                }
                bytes = rest;
            } else {
                let taken = self.missing.min(bytes.len());
                self.missing -= taken;
                bytes = &bytes[taken..];
            }
            if self.header == Self::HEADER && self.missing == 0 {
                (*self, whole) = (Records::default(), true);
            }
        }
        whole
    }

    /// Returns whether the last record is incomplete.
    pub(crate) fn is_inside(&self) -> bool {
        self.header > 0
    }
}

/// Appends all records that TLS has ready.
fn flush(tls: &mut ServerConnection, out: &mut Vec<u8>) {
    while tls.wants_write() {
        // Writing to memory cannot fail.
        let _ = tls.write_tls(out);
    }
}

impl<S: Session<Job = Never>> Session for TlsSession<S> {
    type Job = Never;
    type Push = S::Push;
    type Local = S::Local;

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        if self.records.follow(bytes) {
            self.inside = None;
        }
        if self.records.is_inside() {
            self.inside.get_or_insert(context.now.instant);
        }
        let flow = self.open(context, bytes);
        if self.ended {
            self.inside = None;
        }
        flow
    }

    fn on_drained(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.call(context, |inner, context| inner.on_drained(context))
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        if mem::replace(&mut self.ended, true) {
            // The session knows of the end, but may have more to send.
            let has_more = self.inner.wants_drained() || self.inner.is_working();
            return if has_more { Flow::Continue } else { Flow::Close };
        }
        self.call(context, |inner, context| inner.on_end(context))
    }

    fn on_retire(&mut self, context: &mut Context<'_, Self>, random: u32) -> Flow {
        // A client in its handshake has sent no request yet.
        let opening = self.tls.as_ref().is_some_and(|tls| tls.is_handshaking());
        if opening || self.ended {
            return Flow::Continue;
        }
        self.call(context, |inner, context| inner.on_retire(context, random))
    }

    fn on_output(&mut self, output: OutputState) {
        self.inner.on_output(output);
    }

    fn on_push(&mut self, now: Now, push: &S::Push, out: &mut Vec<u8>) -> PushOutcome {
        let start = out.len();
        let heard = self.inner.on_push(now, push, out);
        match self.seal(out, start, heard == PushOutcome::Close) {
            true => heard,
            false => PushOutcome::Close,
        }
    }

    fn on_room_push(
        &mut self,
        now: Now,
        room: &RoomName,
        push: &S::Push,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        let start = out.len();
        let heard = self.inner.on_room_push(now, room, push, out);
        match self.seal(out, start, heard == PushOutcome::Close) {
            true => heard,
            false => PushOutcome::Close,
        }
    }

    fn on_overrun(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        self.inner.on_overrun(out);
        self.seal(out, start, true);
    }

    fn on_queued(&mut self, context: &mut Context<'_, Self>, ticket: u64, members: u32) -> Flow {
        self.call(context, |inner, context| inner.on_queued(context, ticket, members))
    }

    fn on_sent(
        &mut self,
        context: &mut Context<'_, Self>,
        ticket: u64,
        outcome: RemoteOutcome,
    ) -> Flow {
        self.call(context, |inner, context| inner.on_sent(context, ticket, outcome))
    }

    fn on_close(&mut self) -> Option<S::Push> {
        self.inner.on_close()
    }

    fn on_exit(&mut self, room: &RoomName) -> Option<S::Push> {
        self.inner.on_exit(room)
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.call(context, |inner, context| inner.on_alarm(context))
    }

    fn wants_input(&self) -> bool {
        self.inner.wants_input()
    }

    fn is_cut(&self) -> bool {
        self.inner.is_cut()
    }

    fn cut_at(&self) -> Option<Instant> {
        self.inner.cut_at()
    }

    fn must_leave(&self) -> bool {
        self.inner.must_leave()
    }

    fn wants_drained(&self) -> bool {
        self.inner.wants_drained()
    }

    fn is_working(&self) -> bool {
        self.inner.is_working()
    }

    /// An incomplete handshake or record counts as an incomplete request for the request timeout.
    fn inside(&self) -> Option<Instant> {
        let opening = self.tls.as_ref().is_some_and(|tls| tls.is_handshaking());
        if opening {
            return Some(self.started);
        }
        self.inside.into_iter().chain(self.inner.inside()).min()
    }

    fn alarm(&self) -> Option<Instant> {
        self.inner.alarm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_are_tracked_however_input_is_split(
            lengths in proptest::collection::vec(0..600_usize, 1..6),
            cuts in proptest::collection::vec(1..50_usize, 1..20),
        ) {
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            for length in lengths {
                bytes.extend([23, 3, 3, (length >> 8) as u8, length as u8]);
                bytes.resize(bytes.len() + length, 3);
                ends.push(bytes.len());
            }
            let (mut records, mut at) = (Records::default(), 0);
            for cut in cuts.into_iter().cycle() {
                let to = (at + cut).min(bytes.len());
                let whole = ends.iter().any(|end| (at + 1..=to).contains(end));
                prop_assert_eq!(records.follow(&bytes[at..to]), whole);
                prop_assert_eq!(records.is_inside(), !ends.contains(&to));
                at = to;
                if at == bytes.len() {
                    break;
                }
            }
        }
    }
}
