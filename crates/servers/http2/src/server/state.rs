//! The state of a connection. `receive` has what it receives, `respond` what it sends.

use super::{MAX_RESETS, answered::Answered, pending::Pending, request::Summary};
use crate::{
    code::ErrorCode,
    connection::{
        config::{Config, OutOfRange},
        memo::Memo,
        reader::Reader,
        state::Connection,
        streams::Slot,
    },
    frame::write,
    rule::Rule,
    settings::Settings,
    window::INITIAL_WINDOW,
};
use std::collections::VecDeque;

/// The number of gaps in the client's stream numbers that are remembered.
const GAPS: usize = 16;

/// The number of streams for which there is room at the start.
const STREAMS: u32 = 8;

/// What only a server knows about a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchange {
    /// Whether the request is complete.
    pub is_whole: bool,
    /// Where the unsent part of its response is; `None` before the response.
    pub unsent: Option<u32>,
}

/// The server end of one connection.
#[derive(Debug)]
pub struct Server {
    pub(super) connection: Connection<Exchange>,
    pub(super) head: Memo<Summary>,
    pub(super) answered: Answered,
    /// The largest stream that the client opened.
    pub(super) last_stream: u32,
    /// The last numbers that the client skipped: the first of each gap, and the one behind it.
    pub(super) gaps: VecDeque<(u32, u32)>,
    pub(super) pending: Pending,
    /// Number of bytes of the preface that have arrived.
    pub(super) preface: usize,
    /// Whether a GOAWAY frame was sent, so that later streams are ignored.
    pub(super) is_draining: bool,
    /// Whether field blocks empty the client's dynamic table: it became smaller, which the next block must
    /// acknowledge (RFC 9113, 4.3.1). All of them do, because a caller may send them in another order.
    pub(super) updates_table: bool,
    /// See [`MAX_RESETS`].
    pub(super) reset_streams: u32,
}

impl Server {
    /// Creates the state of a new connection.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(config: Config) -> Result<Self, OutOfRange> {
        let mut connection = Connection::new(config, STREAMS)?;
        // The client does not know the settings before it has acknowledged them (RFC 9113, 6.5.3 and 6.9.2).
        connection.stream_window = INITIAL_WINDOW;
        Ok(Server {
            connection,
            head: Memo::new(Summary::default()),
            answered: Answered::default(),
            last_stream: 0,
            gaps: VecDeque::new(),
            pending: Pending::default(),
            preface: 0,
            is_draining: false,
            updates_table: false,
            reset_streams: 0,
        })
    }

    /// The client's settings.
    pub fn peer(&self) -> &Settings {
        &self.connection.peer
    }

    /// Whether the client has sent its settings and acknowledged this server's. A caller with a clock may
    /// close a connection that is not settled in time, with [`ErrorCode::SETTINGS_TIMEOUT`] (RFC 9113,
    /// 6.5.3).
    pub fn is_settled(&self) -> bool {
        self.connection.is_settled && !self.connection.awaits_ack
    }

    /// Number of open streams: requests that are incomplete or not answered yet, and responses that are not
    /// sent completely.
    pub fn open_streams(&self) -> u32 {
        self.connection.streams.len()
    }

    /// Whether a stream can be answered.
    pub fn is_open(&self, stream: u32) -> bool {
        self.connection.streams.get(stream).is_some_and(|slot| slot.exchange.unsent.is_none())
    }

    /// Whether a GOAWAY frame was sent because of an error. Nothing more is interpreted.
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Appends GOAWAY without an error: later requests are not processed, and the client may send them again
    /// on another connection. Requests so far are answered. Does nothing the second time.
    pub fn drain(&mut self, out: &mut Vec<u8>) {
        if !self.is_draining && !self.is_closed() {
            self.open(out);
            self.is_draining = true;
            write::go_away(out, self.last_stream, ErrorCode::NO_ERROR);
        }
    }

    /// Ends the connection after the end of its input: incomplete requests are refused (`REFUSED_STREAM`), so
    /// that the client may send them again. Responses that wait for a window are cut off (`CANCEL`), because
    /// the window can no longer be raised. GOAWAY follows. Requests that are complete can still be answered.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_closed() {
            return;
        }
        self.open(out);
        let unfinished =
            |slot: &&Slot<Exchange>| !slot.exchange.is_whole || slot.exchange.unsent.is_some();
        let code = |slot: &Slot<Exchange>| match slot.exchange.unsent {
            Some(_) => ErrorCode::CANCEL,
            None => ErrorCode::REFUSED_STREAM,
        };
        let all =
            self.connection.streams.iter().filter(unfinished).map(|slot| (slot.id, code(slot)));
        for (stream, code) in all.collect::<Vec<_>>() {
            self.reset(stream, code, out);
        }
        self.close(ErrorCode::NO_ERROR, out);
    }

    /// Whether a field block has begun that is not complete: CONTINUATION must follow.
    #[inline]
    pub fn awaits_fields(&self) -> bool {
        self.connection.block.stream != 0
    }

    /// Appends GOAWAY. Nothing more is interpreted.
    pub fn close(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if self.is_closed() {
            return;
        }
        self.open(out);
        if code != ErrorCode::NO_ERROR || !self.is_draining {
            write::go_away(out, self.last_stream, code);
        }
        self.is_draining = true;
        self.connection.reader = Reader::Closed;
    }

    /// Appends what a server sends first, if it was not sent: SETTINGS and WINDOW_UPDATE (RFC 9113, 3.4).
    pub(super) fn open(&mut self, out: &mut Vec<u8>) {
        if self.connection.awaits_ack || self.connection.is_settled {
            return;
        }
        let most = self.connection.config.max_streams;
        self.connection.announce((Settings::MAX_CONCURRENT_STREAMS, most), out);
    }

    /// Resets an open stream. Returns `false`, and appends nothing, if it is not open.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        let is_open = self.remove(stream);
        if is_open {
            self.connection.reset(stream, code, out);
        }
        is_open
    }

    /// Removes a stream, and the unsent part of its response. Returns whether it was open.
    pub(super) fn remove(&mut self, stream: u32) -> bool {
        let Some(slot) = self.connection.streams.get(stream) else { return false };
        if let Some(at) = slot.exchange.unsent {
            self.pending.free(at);
            self.pending.forget(stream);
        }
        self.connection.streams.remove(stream);
        true
    }

    /// Counts a stream that ended early.
    pub(super) fn count_reset(&mut self) -> Result<(), Rule> {
        self.reset_streams += 1;
        if self.reset_streams > MAX_RESETS { Err(Rule::TooManyResets) } else { Ok(()) }
    }

    /// Remembers the numbers that the client skipped before it opened a stream.
    pub(super) fn remember_gap(&mut self, stream: u32) {
        let next = if self.last_stream == 0 { 1 } else { self.last_stream + 2 };
        if stream > next {
            if self.gaps.len() == GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back((next, stream));
        }
    }
}
