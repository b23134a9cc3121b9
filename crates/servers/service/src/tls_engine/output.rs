//! Output, and what the engine inside has changed: its connections' ends, and new ones to servers.

use super::{
    config::Upstreams,
    connection::{CHUNK, Stage, TlsConn},
    state::{Fx, TlsEngine},
};
use regatta_engine::{ConnInterest, End, Flow, Never, Next, Side};
use std::mem;

impl<E: Upstreams<Job = Never, Letter = Never>> TlsEngine<E> {
    /// Starts to handle an event.
    pub(super) fn turn(&mut self, effects: &Fx<E>) {
        if self.core.now() != effects.now() {
            self.core.turn(effects.now());
        }
    }

    /// Carries out what the engine inside has changed. Called at the end of each event.
    pub(super) fn settle(&mut self, effects: &mut Fx<E>) {
        loop {
            while let Some((inner, to)) = self.core.next_connect() {
                let outer = effects.connect(to);
                let mut conn = Box::new(TlsConn::new(outer, Side::Upstream, effects.now().instant));
                conn.inner = Some(inner);
                self.conns.link(inner, outer);
                self.finish(conn, effects);
            }
            let Some(inner) = self.core.next_changed() else { return };
            match self.conns.take_inner(inner) {
                Some(conn) => self.finish(conn, effects),
                // The engine has abandoned it before it was opened.
                None => {
                    if self.core.next(inner, &()) == Next::Close {
                        self.core.closed(inner);
                    }
                }
            }
        }
    }

    /// Ends the handling of an event of a connection.
    pub(super) fn finish(&mut self, mut conn: Box<TlsConn>, effects: &mut Fx<E>) {
        self.update(&mut conn, effects);
        self.conns.put(conn);
    }

    /// Does with the outer connection what the engine wants for the inner one.
    fn update(&mut self, conn: &mut TlsConn, effects: &mut Fx<E>) {
        if conn.stage == Stage::Closing {
            // An abort does not wait until the peer closes its side.
            if conn.inner.is_some_and(|inner| self.core.end(inner) == Some(End::Aborted)) {
                effects.abort(conn.outer);
            }
            return;
        }
        let mut has_output = false;
        if let Some(inner) = conn.inner {
            match self.core.next(inner, &()) {
                Next::Wait => self.core.free_unused(inner),
                Next::Write { .. } => has_output = conn.stage == Stage::Ready,
                Next::ShutdownWrite => return self.close(conn, effects),
                Next::Close if self.core.end(inner) == Some(End::HalfClosed) => {
                    return self.close(conn, effects);
                }
                Next::Close => {
                    conn.stage = Stage::Closing;
                    return effects.abort(conn.outer);
                }
            }
        }
        let interest = self.interest(conn, has_output);
        if conn.interest != Some(interest) {
            conn.interest = Some(interest);
            effects.set(conn.outer, interest);
        }
    }

    fn interest(&self, conn: &TlsConn, has_output: bool) -> ConnInterest {
        let inner = conn.inner.and_then(|inner| self.core.interest(inner)).unwrap_or_default();
        let inside = conn.inside().into_iter().chain(inner.inside).min();
        // After a `close_notify`, only the end of the connection is still of interest.
        let reads = match (conn.stage, conn.inner) {
            (Stage::Ready, Some(inner)) => conn.has_ended || self.core.wants_read(inner),
            _ => true,
        };
        ConnInterest {
            reads,
            // The peer that must finish its handshake or record is not waiting.
            waits: inner.waits && inside.is_none(),
            // Once everything before is written, more is encrypted.
            wants_drained: has_output,
            inside,
            alarm: conn.deadline().or(inner.alarm),
            gone_at_end: inner.gone_at_end,
            cut_at: inner.cut_at,
        }
    }

    /// The engine has closed a connection, and all of its output is written.
    fn close(&mut self, conn: &mut TlsConn, effects: &mut Fx<E>) {
        conn.stage = Stage::Closing;
        if let Some(out) = effects.out(conn.outer) {
            conn.end(out);
        }
        effects.close(conn.outer, Flow::Close);
    }

    /// All records so far are written: encrypts more.
    pub(super) fn drained(&mut self, conn: &mut TlsConn, effects: &mut Fx<E>) {
        let (Stage::Ready, Some(inner)) = (conn.stage, conn.inner) else { return };
        let written = mem::take(&mut conn.sealed);
        if written > 0 {
            self.core.wrote(inner, written);
        }
        if let Next::Write { .. } = self.core.next(inner, &())
            && let Some(out) = effects.out(conn.outer)
        {
            let output = self.core.output(inner);
            let chunk = &output[..output.len().min(CHUNK)];
            conn.encrypt(chunk, out);
            conn.sealed = chunk.len();
        }
    }
}
