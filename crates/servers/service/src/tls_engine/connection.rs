//! The TLS of one connection: its handshake, its records, its end.

use crate::tls::Records;
use regatta_engine::{Conn, ConnInterest, Limits, Side};
use rustls::{Connection, Error};
use std::{
    io::{self, Read, Write},
    time::Instant,
};

/// Bytes of plaintext that are encrypted at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// Bytes by which a record is longer than its plaintext, at most, and bytes of plaintext in one.
const OVERHEAD: usize = 64;
const RECORD: usize = 16 * 1024;

/// Bytes of input from which on rustls may keep a longer buffer than it needs.
const LARGE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The connection to a server is being opened.
    Connecting,
    /// The TLS handshake is not over.
    Handshake,
    /// The engine uses it.
    Ready,
    /// It closes once its output is written.
    Closing,
}

/// One connection: with TLS records, or plaintext if no TLS is configured on its side.
#[derive(Debug)]
pub(super) struct TlsConn {
    /// The connection of the driver.
    pub(super) outer: Conn,
    /// The connection of the engine inside.
    pub(super) inner: Option<Conn>,
    pub(super) side: Side,
    pub(super) stage: Stage,
    /// `None`: the connection is without TLS, or TLS has failed.
    tls: Option<Box<Connection>>,
    /// When the handshake started.
    started: Instant,
    records: Records,
    /// When the current incomplete record started.
    inside: Option<Instant>,
    /// How many bytes of the output are encrypted but not written.
    pub(super) sealed: usize,
    /// The peer has ended its side, in TLS or without.
    pub(super) has_ended: bool,
    /// The peer has sent something.
    pub(super) has_sent: bool,
    /// The peer has sent something after the handshake.
    pub(super) was_heard: bool,
    /// What the driver knows.
    pub(super) interest: Option<ConnInterest>,
}

impl TlsConn {
    pub(super) fn new(outer: Conn, side: Side, now: Instant) -> Self {
        TlsConn {
            outer,
            inner: None,
            side,
            stage: Stage::Connecting,
            tls: None,
            started: now,
            records: Records::default(),
            inside: None,
            sealed: 0,
            has_ended: false,
            has_sent: false,
            was_heard: false,
            interest: None,
        }
    }

    /// Starts the handshake.
    pub(super) fn start(&mut self, mut tls: Connection, now: Instant) {
        // Output is flushed after each call, and input is taken after each read.
        tls.set_buffer_limit(None);
        self.tls = Some(Box::new(tls));
        self.stage = Stage::Handshake;
        self.started = now;
    }

    /// Whether its bytes are TLS records.
    pub(super) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the handshake has just ended.
    pub(super) fn has_shaken(&self) -> bool {
        self.stage == Stage::Handshake && self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking())
    }

    /// Follows the records of the input, for the time that one may take.
    pub(super) fn follow(&mut self, bytes: &[u8], now: Instant) {
        self.has_sent |= !bytes.is_empty();
        if self.records.follow(bytes) {
            self.inside = None;
        }
        if self.records.is_inside() {
            self.inside.get_or_insert(now);
        }
    }

    /// Takes some of the input, and replaces `plain` by its plaintext. Returns whether the peer has
    /// ended its side. `bytes` must not be empty.
    pub(super) fn decrypt(
        &mut self,
        bytes: &mut &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        plain.clear();
        let Some(tls) = &mut self.tls else { return Ok(true) };
        let read = tls.read_tls(bytes);
        let state = tls.process_new_packets()?;
        if !read.is_ok_and(|read| read > 0) {
            return Err(Error::General("TLS takes no more input".into()));
        }
        plain.resize(state.plaintext_bytes_to_read(), 0);
        let taken = tls.reader().read_exact(plain);
        taken.map_err(|error| Error::General(error.to_string()))?;
        Ok(state.peer_has_closed())
    }

    /// Encrypts plaintext, and appends its records.
    pub(super) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        match &mut self.tls {
            Some(tls) => {
                out.reserve(plain.len() + OVERHEAD * (plain.len() / RECORD + 1));
                // Writes to memory, without a limit.
                let _ = tls.writer().write_all(plain);
                self.flush(out);
            }
            None => out.extend_from_slice(plain),
        }
    }

    /// Appends all records that TLS has ready.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let Some(tls) = &mut self.tls else { return };
        while tls.wants_write() {
            // Writing to memory cannot fail.
            let _ = tls.write_tls(out);
        }
    }

    /// Appends the end of our side.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush(out);
    }

    /// Ends TLS after a failure.
    pub(super) fn fail(&mut self) {
        self.tls = None;
        self.stage = Stage::Closing;
    }

    /// Frees the buffer that rustls keeps after long records. `taken`: the bytes of the last input.
    pub(super) fn shrink(&mut self, taken: usize) {
        if taken > LARGE
            && self.stage == Stage::Ready
            && !self.records.is_inside()
            && let Some(tls) = &mut self.tls
        {
            // Before each read, rustls frees what an empty buffer has above 4 KiB.
            let _ = tls.read_tls(&mut Nothing);
        }
    }

    /// When the handshake or the record started that is not complete, for the request timeout of a
    /// client. Servers have deadlines of their own.
    pub(super) fn inside(&self) -> Option<Instant> {
        match (self.side, self.stage) {
            (Side::Client, Stage::Handshake) => Some(self.started),
            (Side::Client, Stage::Ready) if !self.has_ended => self.inside,
            _ => None,
        }
    }

    /// When the handshake with a server must be over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let is_waiting = self.side == Side::Upstream && self.stage == Stage::Handshake;
        is_waiting.then(|| self.started + Limits::CONNECT)
    }
}

/// A source without input at present.
struct Nothing;

impl Read for Nothing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}
