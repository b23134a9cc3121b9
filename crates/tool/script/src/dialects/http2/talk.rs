//! State of a connection, and what is written on it: frames of requests, content as the server's windows
//! permit, and what the client end owes the server.

use super::{
    places::Places,
    requests::{Requests, Table},
    response::Response,
};
use crate::{
    dialect::{Streamed, Unanswered},
    dialects::http::reply::salted::Salts,
    time::Nanos,
};
use regatta_http2::{
    ErrorCode,
    client::{Client, Config, NotStarted, Request},
};
use std::{collections::VecDeque, ops::Range};

/// Maximum number of requests on one connection: the identifiers of their streams have 31 bits.
const MOST_STARTED: u32 = (1 << 30) - (1 << 17);

/// The kind of no request.
pub(super) const NO_KIND: u32 = u32::MAX;

/// State of a connection.
#[derive(Debug)]
pub struct ConnectionState<R> {
    pub(super) client: Client,
    pub(super) places: Places<R>,
    /// The server's table for requests.
    pub(super) table: Table,
    /// Bytes to be written; those before `sent` are.
    out: Vec<u8>,
    sent: usize,
    /// Whether the preface was written into `out`.
    is_open: bool,
    /// Requests whose content is not completely claimed.
    sending: Vec<Sending>,
    /// The windows may permit more content than at the last write.
    pub(super) may_send: bool,
    /// Requests that were started since the cursor was moved, and on this connection.
    started: u32,
    started_ever: u32,
    /// The salts of its requests.
    pub(super) salts: Salts,
    /// Received bytes that the client end needs again.
    pub(super) unread: Vec<u8>,
    /// Places whose response is complete and that the load has not counted yet.
    pub(super) answered: VecDeque<u32>,
    /// The messages of the response that the load counted last, if it is a stream.
    pub(super) streamed: Option<Streamed>,
    /// Places that got no response, and that the load has not counted either.
    pub(super) unanswered: VecDeque<(u32, Unanswered)>,
    /// The kind of request for which the last head was right.
    pub(super) known_for: u32,
    /// The code of the server's GOAWAY frame.
    pub(super) closing: Option<ErrorCode>,
    /// The limit of requests in flight has risen.
    pub(super) has_more_room: bool,
    /// Number of the last received bytes up to the end of a complete but wrong response.
    pub(super) resumes: Option<usize>,
    /// When the connection was last read.
    pub(super) since: Option<Nanos>,
    /// The stream whose request was completed last, and the length of `out` at its end.
    ended: Option<(u32, usize)>,
    /// The stream of the request whose last byte is held back, and its place if it was answered
    /// nevertheless.
    pub(super) held: Option<(u32, Option<u32>)>,
}

/// Content that is not sent completely.
#[derive(Debug)]
struct Sending {
    stream: u32,
    exchange: u32,
    /// Number of bytes that were sent.
    from: usize,
}

impl<R: Response> ConnectionState<R> {
    /// For a new connection with at most this many requests in flight.
    pub(super) fn new(most: u32, salts: Salts) -> Self {
        let config = Config { max_streams: most.clamp(1, 1 << 16), ..Config::CLIENT };
        ConnectionState {
            client: Client::new(config).expect("all settings are in their range"),
            places: Places::new(most),
            table: Table::Empty,
            out: Vec::new(),
            sent: 0,
            is_open: false,
            sending: Vec::new(),
            may_send: false,
            started: 0,
            started_ever: 0,
            salts,
            unread: Vec::new(),
            answered: VecDeque::new(),
            streamed: None,
            unanswered: VecDeque::new(),
            known_for: NO_KIND,
            closing: None,
            has_more_room: false,
            resumes: None,
            since: None,
            ended: None,
            held: None,
        }
    }

    /// The client end, the requests, and the bytes that the client end adds to.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut Client, &mut Places<R>, &mut Vec<u8>) {
        (&mut self.client, &mut self.places, &mut self.out)
    }

    /// Whether no further request may follow on this connection.
    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_some() || self.started_ever > MOST_STARTED
    }

    /// Maximum number of requests that the server permits in flight.
    #[inline]
    pub(super) fn in_flight_limit(&self) -> u32 {
        if self.is_closing() { 0 } else { self.client.peer().max_concurrent_streams }
    }

    /// Starts the requests that were asked for, the next exchanges of the script, up to the limit of the
    /// server, and continues content that waited for a window.
    #[inline]
    pub(super) fn fill(&mut self, unwritten: Range<u32>, count: u32, requests: &Requests) {
        if !self.is_open {
            self.is_open = true;
            self.client.open(&mut self.out);
        }
        if self.may_send {
            self.send_more(requests);
        }
        for exchange in unwritten.skip(self.started as usize) {
            if !self.start(exchange % count, requests) {
                return;
            }
        }
    }

    /// Starts a request. Returns false if it has to wait.
    #[inline]
    fn start(&mut self, exchange: u32, requests: &Requests) -> bool {
        let Some(place) = self.places.next_free() else { return false };
        let content = requests.content(exchange);
        let request =
            Request { place, is_head: requests.is_head(exchange), content: content.len() as u64 };
        match self.client.start(request) {
            Ok(stream) => {
                let salt = requests.salt(self.started_ever, &self.salts);
                requests.write_head(exchange, (stream, salt), &mut self.table, &mut self.out);
                self.places.start(stream, exchange, self.started_ever);
                if content.is_empty() {
                    self.ended = Some((stream, self.out.len()));
                } else {
                    self.sending.push(Sending { stream, exchange, from: 0 });
                    self.send_more(requests);
                }
            }
            Err(NotStarted::TooMany) => return false,
            Err(NotStarted::Closing | NotStarted::Exhausted) => {
                self.places.start(0, exchange, self.started_ever);
                self.unanswered.push_back((place, Unanswered::NotProcessed));
            }
        }
        self.started += 1;
        self.started_ever += 1;
        true
    }

    /// Sends as much content as the windows permit.
    fn send_more(&mut self, requests: &Requests) {
        self.may_send = false;
        let (client, out, ended) = (&mut self.client, &mut self.out, &mut self.ended);
        self.sending.retain_mut(|sending| {
            let content = &requests.content(sending.exchange)[sending.from..];
            let n = client.send(sending.stream, content, out);
            sending.from += n;
            let is_complete = n == content.len();
            if is_complete {
                *ended = Some((sending.stream, out.len()));
            }
            !is_complete
        });
    }

    /// How many bytes of the content of the stream's request were sent; `None` if all were.
    #[inline]
    pub(super) fn sent_of_content(&self, stream: u32) -> Option<usize> {
        let sending = self.sending.iter().find(|sending| sending.stream == stream)?;
        Some(sending.from)
    }

    /// A response, or content of one that must follow its request, has arrived.
    #[inline]
    pub(super) fn answers_held(&mut self, stream: u32, place: u32) {
        if let Some((held, early)) = &mut self.held
            && *held == stream
        {
            *early = Some(place);
        }
    }

    /// The stream has ended: no more of its content is sent.
    pub(super) fn forget_content(&mut self, stream: u32) {
        self.sending.retain(|sending| sending.stream != stream);
    }

    /// The bytes to be written.
    #[inline]
    pub(super) fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Records that `n` of these bytes were written. Returns the number of requests that were started
    /// since the last call.
    #[inline]
    pub(super) fn wrote(&mut self, n: usize) -> u32 {
        self.sent += n;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            (self.ended, self.held) = (None, None);
        }
        std::mem::take(&mut self.started)
    }

    /// The last byte to be written is held back. Returns false if it is not the last one of a request.
    pub(super) fn hold(&mut self) -> bool {
        let last = self.ended.filter(|(_, end)| *end == self.out.len());
        self.held = last.map(|(stream, _)| (stream, None));
        self.held.is_some()
    }

    /// Whether there are bytes to write, if `is_waiting` requests wait for a stream.
    #[inline]
    pub(super) fn has_to_write(&self, is_waiting: bool) -> bool {
        !self.unsent().is_empty()
            || self.may_send && !self.sending.is_empty()
            || is_waiting && (self.is_closing() || self.client.room(0) > 0)
    }

    /// Gives up a request that has a stream.
    pub(super) fn cancel(&mut self, position: u32) {
        let Some((place, stream)) = self.places.at(position) else { return };
        self.client.cancel(stream, ErrorCode::CANCEL, &mut self.out);
        self.end(place, stream, Unanswered::TimedOut);
    }

    /// A request ended without a response.
    pub(super) fn end(&mut self, place: u32, stream: u32, why: Unanswered) {
        self.forget_content(stream);
        if let Some(slot) = self.places.get_mut(place, stream) {
            slot.stream = 0;
            self.unanswered.push_back((place, why));
        }
    }
}
