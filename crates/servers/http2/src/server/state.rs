//! The state of a connection. `receive` has what it receives, `respond` what it sends.

use super::{
    MAX_RESETS, answered::Answered, config::Config, pending::Pending, request::Summary, slot::Slot,
};
use crate::{
    code::ErrorCode,
    connection::{
        memo::Memo,
        range::OutOfRange,
        reader::{Block, Reader},
        resets::Resets,
        streams::Streams,
    },
    frame::write,
    hpack::Decoder,
    rule::Rule,
    settings::Settings,
    window::{INITIAL_WINDOW, Window},
};
use std::collections::VecDeque;

/// The number of gaps in the client's stream numbers that are remembered.
const GAPS: usize = 16;

/// The number of streams for which there is room at the start.
const STREAMS: u32 = 8;

/// The server end of one connection.
#[derive(Debug)]
pub struct Server {
    pub(super) config: Config,
    pub(super) peer: Settings,
    pub(super) streams: Streams<Slot>,
    pub(super) resets: Resets,
    pub(super) answered: Answered,
    /// The largest stream that the client opened.
    pub(super) last_stream: u32,
    /// The last numbers that the client skipped: the first of each gap, and the one behind it.
    pub(super) gaps: VecDeque<(u32, u32)>,
    pub(super) send_window: Window,
    pub(super) pending: Pending,
    /// Bytes received since the last WINDOW_UPDATE of the connection.
    pub(super) uncredited: u32,
    pub(super) reader: Reader,
    pub(super) block: Block,
    pub(super) decoder: Decoder,
    pub(super) head: Memo<Summary>,
    pub(super) trailers: Memo<()>,
    /// Number of bytes of the preface that have arrived.
    pub(super) preface: usize,
    /// Whether the client's first SETTINGS frame has arrived.
    pub(super) is_settled: bool,
    /// Whether this server's SETTINGS frame is not acknowledged yet.
    pub(super) awaits_ack: bool,
    /// Whether a GOAWAY frame was sent, so that later streams are ignored.
    pub(super) is_draining: bool,
    /// Whether field blocks empty the client's dynamic table: it became smaller, which the next block must
    /// acknowledge (RFC 9113, 4.3.1). All of them do, because a caller may send them in another order.
    pub(super) updates_table: bool,
    /// Number of frames since the last progress of a request.
    pub(super) idle_frames: u32,
    /// See [`MAX_RESETS`].
    pub(super) reset_streams: u32,
}

impl Server {
    /// Creates the state of a new connection.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(config: Config) -> Result<Self, OutOfRange> {
        config.check()?;
        Ok(Server {
            config,
            peer: Settings::default(),
            streams: Streams::new(STREAMS),
            resets: Resets::default(),
            answered: Answered::default(),
            last_stream: 0,
            gaps: VecDeque::new(),
            send_window: Window::new(INITIAL_WINDOW),
            pending: Pending::default(),
            uncredited: 0,
            reader: Reader::Header,
            block: Block::default(),
            decoder: Decoder::new(config.header_list as usize),
            head: Memo::new(Summary::default()),
            trailers: Memo::new(()),
            preface: 0,
            is_settled: false,
            awaits_ack: false,
            is_draining: false,
            updates_table: false,
            idle_frames: 0,
            reset_streams: 0,
        })
    }

    /// The client's settings.
    pub fn peer(&self) -> &Settings {
        &self.peer
    }

    /// Whether the client has sent its settings and acknowledged this server's. A caller with a clock may
    /// close a connection that is not settled in time, with [`ErrorCode::SETTINGS_TIMEOUT`] (RFC 9113,
    /// 6.5.3).
    pub fn is_settled(&self) -> bool {
        self.is_settled && !self.awaits_ack
    }

    /// Number of open streams: requests that are incomplete or not answered yet, and responses that are not
    /// sent completely.
    pub fn open_streams(&self) -> u32 {
        self.streams.len()
    }

    /// Whether a stream can be answered.
    pub fn is_open(&self, stream: u32) -> bool {
        self.streams.get(stream).is_some_and(|slot| slot.unsent.is_none())
    }

    /// Whether a GOAWAY frame was sent because of an error. Nothing more is interpreted.
    pub fn is_closed(&self) -> bool {
        matches!(self.reader, Reader::Closed)
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
        let unfinished = |slot: &&Slot| !slot.is_whole || slot.unsent.is_some();
        let code = |slot: &Slot| match slot.unsent {
            Some(_) => ErrorCode::CANCEL,
            None => ErrorCode::REFUSED_STREAM,
        };
        let all = self.streams.iter().filter(unfinished).map(|slot| (slot.id, code(slot)));
        for (stream, code) in all.collect::<Vec<_>>() {
            self.reset(stream, code, out);
        }
        self.close(ErrorCode::NO_ERROR, out);
    }

    /// Whether a field block has begun that is not complete: CONTINUATION must follow.
    #[inline]
    pub fn awaits_fields(&self) -> bool {
        self.block.stream != 0
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
        self.reader = Reader::Closed;
    }

    /// Appends what a server sends first, if it was not sent: SETTINGS and WINDOW_UPDATE (RFC 9113, 3.4).
    pub(super) fn open(&mut self, out: &mut Vec<u8>) {
        if self.awaits_ack || self.is_settled {
            return;
        }
        let values = [
            (Settings::HEADER_TABLE_SIZE, self.config.header_table),
            (Settings::MAX_CONCURRENT_STREAMS, self.config.max_streams),
            (Settings::INITIAL_WINDOW_SIZE, self.config.stream_window),
            (Settings::MAX_HEADER_LIST_SIZE, self.config.header_list),
        ];
        write::settings(out, &values);
        self.awaits_ack = true;
        let more = self.config.connection_window - INITIAL_WINDOW;
        if more > 0 {
            write::window_update(out, 0, more);
        }
    }

    /// Resets an open stream. Returns `false`, and appends nothing, if it is not open.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        let is_open = self.remove(stream);
        if is_open {
            write::reset(out, stream, code);
            self.resets.push(stream);
        }
        is_open
    }

    /// The receive window of a new stream: before the client has acknowledged this server's settings, it does
    /// not know them (RFC 9113, 6.5.3 and 6.9.2).
    #[inline]
    pub(super) fn stream_window(&self) -> u32 {
        if self.awaits_ack { INITIAL_WINDOW } else { self.config.stream_window }
    }

    /// Removes a stream, and the unsent part of its response. Returns whether it was open.
    pub(super) fn remove(&mut self, stream: u32) -> bool {
        let Some(slot) = self.streams.get(stream) else { return false };
        if let Some(at) = slot.unsent {
            self.pending.free(at);
            self.pending.forget(stream);
        }
        self.streams.remove(stream);
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
