//! What happens at each event of an outer connection.

use super::{
    config::Upstreams,
    connection::Stage,
    failure::Failure,
    handshake::CLIENT_LOST,
    state::{Fx, TlsEngine},
};
use regatta_engine::{Conn, Engine, Limits, Never};
use std::{
    io,
    time::{Duration, Instant},
};

impl<E: Upstreams<Job = Never, Letter = Never>> Engine for TlsEngine<E> {
    type Job = Never;
    type Letter = Never;
    const CONNECTS: bool = E::CONNECTS;

    fn opened(&mut self, outer: Conn, effects: &mut Fx<E>) {
        self.turn(effects);
        let conn = match self.conns.take(outer) {
            Some(mut conn) => {
                self.connected(&mut conn, effects);
                conn
            }
            None => self.accepted(outer, effects),
        };
        self.finish(conn, effects);
        self.settle(effects);
    }

    fn received(&mut self, outer: Conn, bytes: &mut [u8], effects: &mut Fx<E>) {
        self.turn(effects);
        let Some(mut conn) = self.conns.take(outer) else { return };
        if conn.is_tls() {
            self.open(&mut conn, bytes, effects);
        } else if let (Stage::Ready, Some(inner)) = (conn.stage, conn.inner) {
            self.core.received(inner, bytes);
        }
        self.finish(conn, effects);
        self.settle(effects);
    }

    fn room(&mut self, outer: Conn, effects: &mut Fx<E>) {
        self.turn(effects);
        let Some(mut conn) = self.conns.take(outer) else { return };
        self.drained(&mut conn, effects);
        self.finish(conn, effects);
        self.settle(effects);
    }

    fn ended(&mut self, outer: Conn, effects: &mut Fx<E>) {
        self.turn(effects);
        let Some(mut conn) = self.conns.take(outer) else { return };
        self.peer_ended(&mut conn, effects);
        self.finish(conn, effects);
        self.settle(effects);
    }

    fn closed(&mut self, outer: Conn, effects: &mut Fx<E>) {
        self.turn(effects);
        let Some(conn) = self.conns.take(outer) else { return };
        self.note_refusal(&conn, CLIENT_LOST);
        if let Some(inner) = conn.inner {
            if conn.stage == Stage::Handshake {
                self.lose(inner, conn.side, &Failure::ended());
            } else {
                self.conns.unlink(inner);
                self.core.closed(inner);
            }
        }
        self.settle(effects);
    }

    fn not_opened(&mut self, outer: Conn, why: &io::Error) {
        if let Some(conn) = self.conns.take(outer) {
            if let Some(inner) = conn.inner {
                self.core.not_opened(inner, why);
            }
            self.conns.put(conn);
        }
    }

    fn alarm(&mut self, outer: Conn, effects: &mut Fx<E>) {
        self.turn(effects);
        let Some(mut conn) = self.conns.take(outer) else { return };
        if let Some(interest) = &mut conn.interest {
            interest.alarm = None;
        }
        match (conn.stage, conn.inner) {
            (Stage::Handshake, _) => {
                self.fail(&mut conn, &Failure::late(Limits::CONNECT), effects);
            }
            (_, Some(inner)) => self.core.ring(inner),
            _ => {}
        }
        self.finish(conn, effects);
        self.settle(effects);
    }

    fn drain_begins(&mut self, over: Duration, effects: &mut Fx<E>) {
        self.turn(effects);
        self.core.drain_begins(over);
        self.settle(effects);
    }

    /// One whose handshake is incomplete has sent no request: it is closed at the end of the drain.
    fn retire(&mut self, outer: Conn, random: u32, effects: &mut Fx<E>) {
        self.turn(effects);
        let Some(conn) = self.conns.take(outer) else { return };
        if let (Stage::Ready, Some(inner)) = (conn.stage, conn.inner) {
            self.core.retire(inner, random);
        }
        self.finish(conn, effects);
        self.settle(effects);
    }

    fn due(&self) -> Option<Instant> {
        self.core.due()
    }

    fn tick(&mut self, effects: &mut Fx<E>) {
        self.turn(effects);
        self.core.tick(&());
        self.settle(effects);
    }

    fn set_core(&mut self, core: u32, cores: u32) {
        self.core.set_core(core, cores);
    }
}
