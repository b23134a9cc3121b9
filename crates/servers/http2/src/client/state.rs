//! The state of a connection, and what a client sends. `receive` has what it receives.

use super::{event::Stream, message::Summary, slot::Exchange};
use crate::{
    code::ErrorCode,
    connection::{
        config::{Config, OutOfRange},
        memo::Memo,
        reader::Reader,
        state::Connection,
        streams::Slot,
    },
    frame::{Header, write},
    settings::Settings,
    window::{MAX_WINDOW, Window},
};
use std::fmt;

/// The client end of one connection.
#[derive(Debug)]
pub struct Client {
    pub(super) connection: Connection<Exchange>,
    pub(super) head: Memo<Summary>,
    /// The stream of the next request.
    pub(super) next_stream: u32,
    /// The last stream that the server processes, after GOAWAY.
    pub(super) last_stream: Option<u32>,
    /// Streams that the server does not process and that are not reported yet, in descending order.
    pub(super) unprocessed: Vec<u32>,
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
        Ok(Client {
            connection: Connection::new(config, config.max_streams)?,
            head: Memo::new(Summary { status: 0, content_length: None }),
            next_stream: 1,
            last_stream: None,
            unprocessed: Vec::new(),
        })
    }

    /// Appends what a connection starts with: the preface, SETTINGS and WINDOW_UPDATE. Call it once, before
    /// all else. Requests may follow at once (RFC 9113, 3.4).
    pub fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(write::PREFACE);
        self.connection.announce((Settings::ENABLE_PUSH, 0), out);
    }

    /// The server's settings.
    pub fn peer(&self) -> &Settings {
        &self.connection.peer
    }

    /// Whether the server has sent its settings and acknowledged this client's. A caller with a clock may
    /// close a connection that is not settled in time, with [`ErrorCode::SETTINGS_TIMEOUT`] (RFC 9113,
    /// 6.5.3).
    pub fn is_settled(&self) -> bool {
        self.connection.is_settled && !self.connection.awaits_ack
    }

    /// The header of the frame that was read last: after an error, that of the frame that violates the rule.
    pub fn last_frame(&self) -> Option<Header> {
        self.connection.last_frame
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> u32 {
        self.connection.streams.len()
    }

    /// The open streams, in no order: the requests that are not answered yet.
    pub fn pending(&self) -> impl Iterator<Item = Stream> {
        self.connection.streams.iter().map(|slot| slot.stream())
    }

    /// The fields in the dynamic table for responses, newest first.
    pub fn header_table(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.connection.decoder.table()
    }

    /// Number of requests that can be started now and whose content, of this length in bytes, can be
    /// claimed completely at once. 0 if the content is larger than the window of a new stream, which then
    /// has to be sent in parts.
    pub fn room(&self, content: u64) -> u32 {
        let streams = match self.check_start() {
            Ok(()) => self.max_streams() - self.connection.streams.len(),
            Err(_) => 0,
        };
        if content == 0 {
            return streams;
        }
        if content > u64::from(self.connection.peer.initial_window_size) {
            return 0;
        }
        let requests = u64::from(self.connection.send_window.available()) / content;
        streams.min(u32::try_from(requests).unwrap_or(u32::MAX))
    }

    fn max_streams(&self) -> u32 {
        self.connection.config.max_streams.min(self.connection.peer.max_concurrent_streams)
    }

    fn check_start(&self) -> Result<(), NotStarted> {
        if self.last_stream.is_some() || self.connection.is_closed() {
            return Err(NotStarted::Closing);
        }
        if self.next_stream > MAX_WINDOW {
            return Err(NotStarted::Exhausted);
        }
        if self.connection.streams.len() >= self.max_streams() {
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
        let Request { place, content: unsent, .. } = request;
        let exchange = Exchange { place, unsent, ..Exchange::default() };
        self.connection.streams.insert(Slot {
            id,
            send_window: Window::new(self.connection.peer.initial_window_size),
            receive_window: Window::new(self.connection.stream_window),
            is_bare: request.is_head,
            exchange,
            ..Slot::default()
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
        let Some(slot) = self.connection.streams.get_mut(stream) else { return 0 };
        let most = u32::try_from(slot.exchange.unsent.min(most as u64)).unwrap_or(u32::MAX);
        let claimed =
            most.min(slot.send_window.available()).min(self.connection.send_window.available());
        if claimed == 0 {
            return 0;
        }
        slot.send_window.take(claimed);
        self.connection.send_window.take(claimed);
        slot.exchange.unsent -= u64::from(claimed);
        self.connection.idle_frames = 0;
        claimed as usize
    }

    /// Claims as much of `content` as possible, and appends its DATA frames. Returns how many bytes were
    /// taken. `content` is the remaining content of the request, or the start of it.
    pub fn send(&mut self, stream: u32, content: &[u8], out: &mut Vec<u8>) -> usize {
        let unsent = self.connection.streams.get(stream).map_or(0, |slot| slot.exchange.unsent);
        let claimed = self.claim(stream, content.len());
        if claimed > 0 {
            let ends = claimed as u64 == unsent;
            let max_frame = self.connection.peer.max_frame_size;
            write::data(out, |_| (), (stream, ends), &content[..claimed], max_frame);
        }
        claimed
    }

    /// Resets an open stream, usually with [`ErrorCode::CANCEL`]. No further event has it. Returns `false`,
    /// and appends nothing, if it is not open.
    pub fn cancel(&mut self, stream: u32, code: ErrorCode, out: &mut Vec<u8>) -> bool {
        let is_open = self.connection.streams.get(stream).is_some();
        if is_open {
            self.connection.streams.remove(stream);
            self.connection.reset(stream, code, out);
        }
        is_open
    }

    /// Appends GOAWAY. Nothing more is interpreted, and no request can be started. A graceful close is that
    /// with [`ErrorCode::NO_ERROR`] when no stream is open.
    pub fn close(&mut self, code: ErrorCode, out: &mut Vec<u8>) {
        if !self.connection.is_closed() {
            write::go_away(out, 0, code);
            self.connection.reader = Reader::Closed;
        }
    }
}
