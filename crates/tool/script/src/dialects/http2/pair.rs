//! For tests: a connection of the load, and the server's end of it.

use super::{
    dialect::Dialect2, response::Response, talk::ConnectionState, thread_state::ThreadState,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Streamed, Unanswered},
    time::Nanos,
};
use regatta_http2::{
    client::{Client, Config},
    frame::{Header, Kind, write},
    hpack::{Decoder, Fields},
};
use regatta_record::Exchange;

/// A request that the server has received.
#[derive(Debug)]
pub(in crate::dialects) struct Asked {
    pub stream: u32,
    pub fields: Fields,
    pub content: Vec<u8>,
}

pub(in crate::dialects) struct Pair<R: Response> {
    pub dialect: Dialect2<R>,
    pub cursor: Cursor,
    pub talk: ConnectionState<R>,
    pub desk: ThreadState,
    pub decoder: Decoder,
    /// Number of right responses.
    pub answered: u32,
    /// Allocations of the load's side.
    pub allocations: u64,
    /// The settings of the server.
    pub settings: Vec<(u16, u32)>,
    /// When the next bytes are received.
    pub now: Nanos,
    /// The streams among the right responses.
    pub streamed: Vec<Streamed>,
}

impl<R: Response> Pair<R> {
    pub fn new(dialect: Dialect2<R>) -> Self {
        let (talk, desk) = (dialect.talk(0), dialect.desk(|| 0));
        let cursor = Cursor::new(dialect.script(), 0);
        let decoder = Decoder::new(1 << 16);
        let (answered, allocations, settings) = (0, 0, Vec::new());
        let streamed = Vec::with_capacity(1 << 12);
        let now = 0;
        Pair {
            dialect,
            cursor,
            talk,
            desk,
            decoder,
            answered,
            allocations,
            settings,
            now,
            streamed,
        }
    }

    /// Gives each stream a receive window of so many bytes, on a connection that has sent nothing.
    pub fn set_stream_window(&mut self, bytes: u32) {
        let config = Config { stream_window: bytes, ..Config::CLIENT };
        self.talk.client = Client::new(config).unwrap();
    }

    /// Takes the increments of the windows of streams that the load sends.
    pub fn window_updates(&mut self) -> Vec<(u32, u32)> {
        let Pair { dialect, cursor, talk, .. } = self;
        let bytes = dialect.unsent(cursor, talk, 0).to_vec();
        dialect.wrote(cursor, talk, bytes.len());
        let (mut input, mut updates) = (&bytes[..], Vec::new());
        while let Some((header, rest)) = input.split_first_chunk() {
            let Header { length, kind, stream, .. } = Header::read(header);
            let (payload, rest) = rest.split_at(length as usize);
            input = rest;
            if kind == Kind::WINDOW_UPDATE && stream > 0 {
                updates.push((stream, u32::from_be_bytes(payload.try_into().unwrap())));
            }
        }
        updates
    }

    /// Why the next request ended without a response.
    pub fn unanswered(&mut self) -> Option<Unanswered> {
        let Pair { dialect, cursor, talk, .. } = self;
        dialect.next_unanswered(cursor, talk).map(|(_, why)| why)
    }

    /// Opens a new connection.
    pub fn reconnect(&mut self) {
        self.dialect.renew(&mut self.talk, 0);
        self.cursor = Cursor::new(self.dialect.script(), 0);
        self.decoder = Decoder::new(1 << 16);
    }

    /// Fills all streams. Returns the requests, and appends what the server has to send first to `out`.
    pub fn asked(&mut self, out: &mut Vec<u8>) -> Vec<Asked> {
        let Pair { dialect, cursor, talk, .. } = self;
        let mut sent = Vec::with_capacity(1 << 16);
        let count = allocation_counter::measure(|| {
            cursor.ask(dialect.pipeline - cursor.owed());
            let bytes = dialect.unsent(cursor, talk, 0);
            sent.extend_from_slice(bytes);
            let n = bytes.len();
            dialect.wrote(cursor, talk, n);
        });
        self.allocations += count.count_total;
        let mut input = sent.strip_prefix(write::PREFACE).unwrap_or(&sent);
        if input.len() < sent.len() {
            write::settings(out, &self.settings);
        }
        let mut all: Vec<Asked> = Vec::new();
        while let Some((header, rest)) = input.split_first_chunk() {
            let Header { length, kind, stream, .. } = Header::read(header);
            let (payload, rest) = rest.split_at(length as usize);
            input = rest;
            match kind {
                Kind::HEADERS => {
                    let mut fields = Fields::default();
                    self.decoder.decode(payload, &mut fields).unwrap();
                    all.push(Asked { stream, fields, content: Vec::new() });
                }
                Kind::DATA => {
                    let asked = all.iter_mut().find(|asked| asked.stream == stream).unwrap();
                    asked.content.extend_from_slice(payload);
                }
                _ => {}
            }
        }
        all
    }

    /// Passes bytes of the server to the load, in pieces of this size, up to the first wrong response.
    pub fn try_receive(&mut self, bytes: &[u8], size: usize) -> Result<(), Box<Exchange>> {
        for piece in bytes.chunks(size) {
            let Pair { dialect, cursor, talk, desk, now, streamed, .. } = self;
            let mut right = Ok(0);
            let count = allocation_counter::measure(|| {
                let at = At { cursor, talk: &mut *talk, desk };
                right = dialect.receive(at, piece, *now, &mut ());
                for _ in 0..*right.as_ref().unwrap_or(&0) {
                    dialect.next_answered(talk).unwrap();
                    streamed.extend(dialect.streamed(talk));
                }
            });
            self.allocations += count.count_total;
            self.answered += right?;
            assert_eq!(self.dialect.next_answered(&mut self.talk), None);
        }
        Ok(())
    }

    /// Like [`Pair::try_receive`], if all responses are right.
    pub fn receive(&mut self, bytes: &[u8], size: usize) {
        self.try_receive(bytes, size).unwrap();
    }
}
