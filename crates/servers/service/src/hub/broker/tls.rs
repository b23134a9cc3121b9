//! TLS around the link: rustls performs no I/O itself, so this runs wherever a link does. Without TLS it passes everything
//! through.

use super::{
    link::Link,
    settings::{Broker, BrokerTls},
};
use crate::{
    hub::{broadcast::Broadcast, census::Census, live::Live},
    tls_engine::failure_words,
};
use regatta_engine::{RoomName, Ticket, Uplink, UplinkAct, UplinkTurn};
use rustls::{ClientConnection, Error};
use std::{
    io::{Read, Write},
    mem,
    sync::Arc,
    time::Instant,
};

type Turn<'a> = UplinkTurn<'a, Broadcast>;

/// The connection of a hub to its broker.
#[derive(Debug)]
pub struct BrokerLink {
    link: Link,
    tls: Option<Tls>,
}

/// TLS of the link.
#[derive(Debug)]
struct Tls {
    settings: BrokerTls,
    /// `None`: the link has no connection.
    connection: Option<Box<ClientConnection>>,
    /// The handshake is over, and the link uses the connection.
    is_open: bool,
    /// Reused for the plaintext of input.
    plain: Vec<u8>,
}

impl Tls {
    fn is_shaking(&self) -> bool {
        self.connection.is_some() && !self.is_open
    }

    /// Begins a handshake.
    fn starts(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let BrokerTls { config, name } = &self.settings;
        let mut connection = ClientConnection::new(config(), name.clone())?;
        // The link bounds its own output.
        connection.set_buffer_limit(None);
        self.connection = Some(Box::new(connection));
        self.is_open = false;
        self.flush(out);
        Ok(())
    }

    /// Appends all records that TLS has ready.
    fn flush(&mut self, out: &mut Vec<u8>) {
        let Some(connection) = &mut self.connection else { return };
        while connection.wants_write() {
            // Writing to memory cannot fail.
            let _ = connection.write_tls(out);
        }
    }

    /// Replaces the plaintext from `start` on with its records. Nothing leaves without TLS.
    fn seal(&mut self, out: &mut Vec<u8>, start: usize) {
        if out.len() == start {
            return;
        }
        if let Some(connection) = &mut self.connection {
            // Writes to memory, without a limit.
            let _ = connection.writer().write_all(&out[start..]);
        }
        out.truncate(start);
        self.flush(out);
    }

    /// Takes some of the input, and replaces `plain` by its plaintext. Returns whether the broker has ended its side.
    fn decrypt(&mut self, bytes: &mut &[u8]) -> Result<bool, Error> {
        self.plain.clear();
        let Some(connection) = &mut self.connection else { return Ok(true) };
        let read = connection.read_tls(bytes);
        let state = connection.process_new_packets()?;
        if !read.is_ok_and(|read| read > 0) {
            return Err(Error::General("TLS takes no more input".into()));
        }
        self.plain.resize(state.plaintext_bytes_to_read(), 0);
        let taken = connection.reader().read_exact(&mut self.plain);
        taken.map_err(|error| Error::General(error.to_string()))?;
        Ok(state.peer_has_closed())
    }
}

impl BrokerLink {
    /// Creates one that connects at its first [tick](Uplink::tick).
    pub(in super::super) fn new(
        broker: Arc<Broker>,
        live: Arc<Live>,
        census: Arc<Census>,
    ) -> BrokerLink {
        let tls = broker.tls.clone().map(|settings| Tls {
            settings,
            connection: None,
            is_open: false,
            plain: Vec::new(),
        });
        BrokerLink { link: Link::new(broker, live, census), tls }
    }

    /// Calls the link, and encrypts what it appends.
    fn call(&mut self, turn: &mut Turn<'_>, what: impl FnOnce(&mut Link, &mut Turn<'_>)) {
        let Some(tls) = &mut self.tls else { return what(&mut self.link, turn) };
        let (start, before) = (turn.out.len(), turn.acts.len());
        what(&mut self.link, turn);
        if turn.acts[before..].iter().any(|act| matches!(act, UplinkAct::Disconnect)) {
            tls.connection = None;
        }
        tls.seal(turn.out, start);
    }

    /// TLS has failed.
    fn fails(&mut self, error: &Error, turn: &mut Turn<'_>) {
        let is_shaking = self.tls.as_ref().is_some_and(Tls::is_shaking);
        let why = failure_words(error, is_shaking);
        self.call(turn, |link, turn| link.lose(&why, turn));
    }

    /// Decrypts input and passes it to the link.
    fn open(&mut self, mut bytes: &[u8], turn: &mut Turn<'_>) {
        while !bytes.is_empty()
            && let Some(tls) = self.tls.as_mut().filter(|tls| tls.connection.is_some())
        {
            let has_ended = match tls.decrypt(&mut bytes) {
                Ok(has_ended) => has_ended,
                Err(error) => return self.fails(&error, turn),
            };
            tls.flush(turn.out);
            let is_over = tls.connection.as_ref().is_some_and(|tls| !tls.is_handshaking());
            let plain = mem::take(&mut tls.plain);
            if is_over && !mem::replace(&mut tls.is_open, true) {
                self.call(turn, Link::opened);
            }
            if !plain.is_empty() {
                self.call(turn, |link, turn| link.received(&plain, turn));
            }
            if let Some(tls) = &mut self.tls {
                tls.plain = plain;
            }
            if has_ended {
                return self.closed(turn);
            }
        }
    }
}

impl Uplink<Broadcast> for BrokerLink {
    fn opened(&mut self, turn: &mut Turn<'_>) {
        let Some(tls) = &mut self.tls else { return self.link.opened(turn) };
        if let Err(error) = tls.starts(turn.out) {
            self.fails(&error, turn);
        }
    }

    fn received(&mut self, bytes: &[u8], turn: &mut Turn<'_>) {
        match self.tls {
            None => self.link.received(bytes, turn),
            Some(_) => self.open(bytes, turn),
        }
    }

    fn closed(&mut self, turn: &mut Turn<'_>) {
        if self.tls.as_ref().is_some_and(Tls::is_shaking) {
            let why = "the server closed the connection in the TLS handshake";
            return self.call(turn, |link, turn| link.lose(why, turn));
        }
        self.call(turn, Link::closed);
    }

    fn send(&mut self, room: &RoomName, push: &Broadcast, ticket: Ticket, turn: &mut Turn<'_>) {
        self.call(turn, |link, turn| link.send(room, push, ticket, turn));
    }

    fn due(&self) -> Option<Instant> {
        self.link.due()
    }

    fn tick(&mut self, turn: &mut Turn<'_>) {
        let is_late = self.link.must_act_at().is_some_and(|due| due <= turn.now.instant);
        if is_late && self.tls.as_ref().is_some_and(Tls::is_shaking) {
            let why = "the TLS handshake takes too long; the server may not speak TLS";
            return self.call(turn, |link, turn| link.lose(why, turn));
        }
        self.call(turn, Link::tick);
    }
}
