//! The state of a connection, and what a client sends. `receive` has what it receives.

use super::{
    config::Config,
    event::Stream,
    message::Summary,
    slot::{Phase, Slot},
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
    settings::Settings,
    window::{INITIAL_WINDOW, MAX_WINDOW, Window},
};
use std::fmt;

/// The client end of one connection.
#[derive(Debug)]
pub struct Client {
    pub(super) config: Config,
    pub(super) peer: Settings,
    pub(super) streams: Streams<Slot>,
    pub(super) resets: Resets,
    /// The stream of the next request.
    pub(super) next_stream: u32,
    pub(super) send_window: Window,
    /// Bytes received since the last WINDOW_UPDATE of the connection.
    pub(super) uncredited: u32,
    pub(super) reader: Reader,
    pub(super) block: Block,
    pub(super) decoder: Decoder,
    pub(super) head: Memo<Summary>,
    pub(super) trailers: Memo<()>,
    /// Whether the server's first SETTINGS frame has arrived.
    pub(super) is_settled: bool,
    /// Whether this client's SETTINGS frame is not acknowledged yet.
    pub(super) awaits_ack: bool,
    /// The last stream that the server processes, after GOAWAY.
    pub(super) last_stream: Option<u32>,
    /// Streams that the server does not process and that are not reported yet, in descending order.
    pub(super) unprocessed: Vec<u32>,
    /// Number of frames since the last progress of a request.
    pub(super) idle_frames: u32,
}

/// A request to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// A number that the caller gives to it. All events have it.
    pub place: u32,
    /// Whether its method is HEAD, so that its response has no content.
    pub is_head: bool,
    /// The length of its content, in bytes. With 0, the HEADERS frame must end the stream.
    pub content: u64,
}

/// Why a request cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// As many streams are open as this client or the server permits.
    TooMany,
    /// The server sent GOAWAY, or the connection failed. Requests need a new connection.
    Closing,
    /// All stream identifiers were used (RFC 9113, 5.1.1). Requests need a new connection.
    Exhausted,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotStarted::TooMany => "The maximum number of streams is open.",
            NotStarted::Closing => "The connection closes.",
            NotStarted::Exhausted => "All stream identifiers of the connection were used.",
        })
    }
}

impl std::error::Error for NotStarted {}

impl Client {
    /// Creates the state of a new connection.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(config: Config) -> Result<Self, OutOfRange> {
        config.check()?;
        Ok(Client {
            config,
            peer: Settings::default(),
            streams: Streams::new(config.max_streams),
            resets: Resets::default(),
            next_stream: 1,
            send_window: Window::new(INITIAL_WINDOW),
            uncredited: 0,
            reader: Reader::Header,
            block: Block::default(),
            decoder: Decoder::new(config.header_list as usize),
            head: Memo::new(Summary { status: 0, content_length: None }),
            trailers: Memo::new(()),
            is_settled: false,
            awaits_ack: false,
            last_stream: None,
            unprocessed: Vec::new(),
            idle_frames: 0,
        })
    }

    /// Appends what a connection starts with: the preface, SETTINGS and WINDOW_UPDATE. Call it once, before
    /// all else. Requests may follow at once (RFC 9113, 3.4).
    pub fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(write::PREFACE);
        let values = [
            (Settings::HEADER_TABLE_SIZE, self.config.header_table),
            (Settings::ENABLE_PUSH, 0),
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

    /// The server's settings.
    pub fn peer(&self) -> &Settings {
        &self.peer
    }

    /// Whether the server has sent its settings and acknowledged this client's. A caller with a clock may
    /// close a connection that is not settled in time, with [`ErrorCode::SETTINGS_TIMEOUT`] (RFC 9113,
    /// 6.5.3).
    pub fn is_settled(&self) -> bool {
        self.is_settled && !self.awaits_ack
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> u32 {
        self.streams.len()
    }

    /// The open streams, in no order: the requests that are not answered yet, and those whose content is
    /// not sent completely.
    pub fn pending(&self) -> impl Iterator<Item = Stream> {
        self.streams.iter().map(Slot::stream)
    }

    /// The fields in the dynamic table for responses, newest first.
    pub fn header_table(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.decoder.table()
    }

    /// Number of requests that can be started now and whose content, of this length in bytes, can be
    /// claimed completely at once. 0 if the content is larger than the window of a new stream, which then
    /// has to be sent in parts.
    pub fn room(&self, content: u64) -> u32 {
        let streams = match self.check_start() {
            Ok(()) => self.max_streams() - self.streams.len(),
            Err(_) => 0,
        };
        if content == 0 {
            return streams;
        }
        if content > u64::from(self.peer.initial_window_size) {
            return 0;
        }
        let requests = u64::from(self.send_window.available()) / content;
        streams.min(u32::try_from(requests).unwrap_or(u32::MAX))
    }

    fn max_streams(&self) -> u32 {
        self.config.max_streams.min(self.peer.max_concurrent_streams)
    }

    fn check_start(&self) -> Result<(), NotStarted> {
        if self.last_stream.is_some() || matches!(self.reader, Reader::Closed) {
            return Err(NotStarted::Closing);
        }
        if self.next_stream > MAX_WINDOW {
            return Err(NotStarted::Exhausted);
        }
        if self.streams.len() >= self.max_streams() {
            return Err(NotStarted::TooMany);
        }
        Ok(())
    }

    /// Starts a request. Returns its stream. The caller sends the HEADERS frame before that of any later
    /// request, and then the content: see [`Client::claim`].
    ///
    /// # Errors
    /// No request can be started, now or ever.
    #[inline]
    pub fn start(&mut self, request: Request) -> Result<u32, NotStarted> {
        self.check_start()?;
        let id = self.next_stream;
        self.next_stream += 2;
        self.streams.insert(Slot {
            id,
            place: request.place,
            unsent: request.content,
            send_window: Window::new(self.peer.initial_window_size),
            receive_window: Window::new(self.config.stream_window),
            phase: Phase::Head,
            is_bare: request.is_head,
            interim: 0,
            declared: None,
            received: 0,
        });
        Ok(id)
    }

    /// Claims the next `most` bytes of a request's content. Returns how many of them must be sent now, in
    /// DATA frames of at most [`Settings::max_frame_size`] bytes; the last byte of the content ends the stream.
    /// Returns 0 if the windows are empty, and if the stream is no longer open. After [`Event::Window`] and
    /// [`Event::Settings`], more may be claimed.
    ///
    /// [`Event::Window`]: super::Event::Window
    /// [`Event::Settings`]: super::Event::Settings
    #[inline]
    pub fn claim(&mut self, stream: u32, most: usize) -> usize {
        let Some(slot) = self.streams.get_mut(stream) else { return 0 };
        let most = u32::try_from(slot.unsent.min(most as u64)).unwrap_or(u32::MAX);
        let claimed = most.min(slot.send_window.available()).min(self.send_window.available());
        if claimed == 0 {
            return 0;
        }
        slot.send_window.take(claimed);
        self.send_window.take(claimed);
        slot.unsent -= u64::from(claimed);
        self.idle_frames = 0;
        if slot.unsent == 0 && slot.phase == Phase::Complete {
            self.streams.remove(stream);
        }
        claimed as usize
    }

    /// Claims as much of `content` as possible, and appends its DATA frames. Returns how many bytes were
    /// taken. `content` is the remaining content of the request, or the start of it.
    pub fn send(&mut self, stream: u32, content: &[u8], out: &mut Vec<u8>) -> usize {
        let unsent = self.streams.get(stream).map_or(0, |slot| slot.unsent);
        let claimed = self.claim(stream, content.len());
        if claimed > 0 {
            let ends = claimed as u64 == unsent;
            let max_frame = self.peer.max_frame_size;
            write::data(out, |_| (), (stream, ends), &content[..claimed], max_frame);
        }
        claimed
    }

    /// Resets an open stream, usually with [`ErrorCode::CANCEL`]. No further event has it. Returns `false`,
    /// and appends nothing, if it is not open.
    pub fn cancel(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        let is_open = self.streams.get(stream).is_some();
        if is_open {
            write::reset(out, stream, code);
            self.streams.remove(stream);
            self.resets.push(stream);
        }
        is_open
    }

    /// Appends GOAWAY. Nothing more is interpreted, and no request can be started. A graceful close is that
    /// with [`ErrorCode::NO_ERROR`] when no stream is open.
    pub fn close(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if !matches!(self.reader, Reader::Closed) {
            write::go_away(out, 0, code);
            self.reader = Reader::Closed;
        }
    }

    /// Raises the receive window of the connection when half of it is used. So the server never exceeds it:
    /// a frame is shorter than the other half.
    #[inline]
    pub(super) fn credit(&mut self, out: &mut Vec<u8>) {
        if self.uncredited >= self.config.connection_window / 2 {
            write::window_update(out, 0, std::mem::take(&mut self.uncredited));
        }
    }

    /// Raises the receive window of a stream when half of it is used.
    #[inline]
    pub(super) fn credit_stream(&mut self, stream: u32, out: &mut Vec<u8>) {
        let full = self.config.stream_window;
        let Some(slot) = self.streams.get_mut(stream) else { return };
        let used = full - slot.receive_window.available();
        if used > 0 && used >= full / 2 {
            slot.receive_window.adjust(i64::from(used));
            write::window_update(out, stream, used);
        }
    }
}
