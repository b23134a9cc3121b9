//! HTTP/2 as the load sees it.

use super::{
    places::Place,
    reply::Reply,
    requests::Requests,
    response::{Response, after_messages},
    talk::ConnectionState,
    thread_state::ThreadState,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard, Streamed, Turn, Unanswered},
    dialects::http::reply::{
        partial_reply::SHOWN,
        salted::{Answers, Salts},
    },
    script::Script,
    text::cut,
    time::Nanos,
};
use regatta_record::{Exchange, Operation};
use std::borrow::Cow;

/// Exchanges over HTTP/2 and their expected responses, which are checked as `R` does.
#[derive(Debug)]
pub struct Dialect2<R: Response = Reply> {
    /// The requests in the form of HTTP/1.1, for messages, and the texts that responses are compared with.
    pub(super) script: Script,
    /// The expectation of each request or step of the workload.
    pub(super) kinds: Vec<R::Expected>,
    /// Index of the expectation of each exchange.
    pub(super) of: Vec<u16>,
    /// The requests as they are sent.
    pub(super) requests: Requests,
    /// Maximum number of requests in flight on a connection.
    pub(super) pipeline: u32,
}

impl<R: Response> Dialect2<R> {
    /// The exchanges of a closed script of HTTP/1.1, the expectations, and the index in them of each exchange's
    /// one. Without TLS and salts.
    pub(in crate::dialects) fn new(
        script: Script,
        kinds: Vec<R::Expected>,
        of: &[u16],
        pipeline: u32,
    ) -> Self {
        let requests = Requests::compile(&script, false, None);
        let of = of.iter().copied().cycle().take(script.exchanges()).collect();
        Dialect2 { script, kinds, of, requests, pipeline }
    }

    /// The expectation of an exchange.
    #[inline]
    pub(super) fn expected(&self, exchange: u32) -> &R::Expected {
        &self.kinds[usize::from(self.of[exchange as usize])]
    }

    /// A request, for people.
    #[cold]
    pub(super) fn request_in_words(&self, of: &Place<R>, salts: &Salts) -> String {
        let request = self.script.request(of.exchange);
        in_words(cut(
            &match self.requests.salted() {
                None => Cow::from(request),
                Some(salted) => salted.request(request, salted.salt(of.index, salts)).into(),
            },
            SHOWN,
        ))
    }

    /// Implements [`Dialect::receive`]: input that the client end needs again is kept.
    fn take(
        &self,
        talk: &mut ConnectionState<R>,
        desk: &mut ThreadState,
        data: &[u8],
        now: Nanos,
    ) -> Result<u32, Box<Exchange>> {
        if talk.unread.is_empty() {
            let mut rest = data;
            let right = self.read(talk, desk, &mut rest, now)?;
            talk.unread.extend_from_slice(rest);
            return Ok(right);
        }
        let mut joined = std::mem::take(&mut talk.unread);
        joined.extend_from_slice(data);
        let mut rest = &joined[..];
        let right = self.read(talk, desk, &mut rest, now);
        let left = if right.is_ok() { rest.len() } else { 0 };
        joined.drain(..joined.len() - left);
        talk.unread = joined;
        right
    }
}

/// A request in the form of HTTP/1.1, with its true version.
#[cold]
fn in_words(request: String) -> String {
    request.replacen(" HTTP/1.1\\r", " HTTP/2\\r", 1)
}

impl<R: Response> Dialect for Dialect2<R> {
    type ThreadState = ThreadState;
    type ConnectionState = ConnectionState<R>;

    const MULTIPLEXED: bool = true;
    const OPERATIONS: &'static [Operation] = R::OPERATIONS;
    const PUSHES: bool = false;

    fn operations(&self) -> &'static [Operation] {
        match self.kinds.iter().any(R::is_stream) {
            true => R::OPERATIONS,
            false => &R::OPERATIONS[..1],
        }
    }

    #[inline]
    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, wall: fn() -> Nanos) -> ThreadState {
        ThreadState::new(wall, self.requests.salted().is_some().then(Answers::new))
    }

    fn tolerate(&self, desk: &mut ThreadState) {
        desk.tolerates = true;
    }

    fn statuses<'d>(&self, desk: &'d ThreadState) -> &'d [u64] {
        desk.statuses()
    }

    fn talk(&self, number: u32) -> ConnectionState<R> {
        ConnectionState::new(self.pipeline, Salts::of(number))
    }

    fn renew(&self, talk: &mut ConnectionState<R>, _: u32) {
        let mut salts = std::mem::take(&mut talk.salts);
        salts.renew();
        *talk = ConnectionState::new(self.pipeline, salts);
    }

    fn verify(
        &self,
        desk: &mut ThreadState,
        is_late: &dyn Fn() -> bool,
        wrong: &mut dyn FnMut(Exchange),
    ) {
        if let (Some(salted), Some(answers)) = (self.requests.salted(), &mut desk.answers) {
            salted.verify(&self.script, answers, is_late, &mut |exchange| {
                wrong(Exchange { sent: in_words(exchange.sent), ..exchange });
            });
        }
    }

    #[inline]
    fn unsent<'b>(
        &'b self,
        cursor: &Cursor,
        talk: &'b mut ConnectionState<R>,
        _: Nanos,
    ) -> &'b [u8] {
        talk.fill(cursor.unwritten(&self.script), self.script.count(), &self.requests);
        talk.unsent()
    }

    #[inline]
    fn wrote(&self, cursor: &mut Cursor, talk: &mut ConnectionState<R>, n: usize) {
        let started = talk.wrote(n);
        if started > 0 {
            let from = cursor.unwritten(&self.script).start;
            let begin = |i: u32| self.script.begin(i).request;
            cursor.wrote((begin(from + started) - begin(from)) as usize);
        }
    }

    fn hold(&self, talk: &mut ConnectionState<R>) -> bool {
        talk.hold()
    }

    fn early(&self, talk: &ConnectionState<R>) -> Option<Exchange> {
        let (_, place) = talk.held?;
        let place = talk.places.get(place?);
        let received =
            if place.stream == 0 { "a complete response" } else { "content of the response" };
        Some(Exchange {
            sent: self.request_in_words(place, &talk.salts),
            expected: "nothing yet: the last byte of the request had not been sent".into(),
            received: received.into(),
            reply_index: 0,
        })
    }

    #[inline]
    fn in_flight_limit(&self, talk: &ConnectionState<R>) -> u32 {
        talk.in_flight_limit()
    }

    fn lowest_limit(&self, desk: &ThreadState) -> Option<u32> {
        Some(desk.lowest_limit).filter(|limit| *limit < self.pipeline)
    }

    #[inline]
    fn has_more_room(&self, talk: &mut ConnectionState<R>) -> bool {
        std::mem::take(&mut talk.has_more_room)
    }

    #[inline]
    fn has_to_write(&self, cursor: &Cursor, talk: &ConnectionState<R>) -> bool {
        talk.has_to_write(!cursor.unwritten(&self.script).is_empty())
    }

    #[inline]
    fn next_answered(&self, talk: &mut ConnectionState<R>) -> Option<Turn> {
        let place = talk.answered.pop_front()?;
        if const { R::OPERATIONS.len() > 1 } {
            let Place { exchange, reply, .. } = talk.places.get(place);
            talk.streamed = reply.streamed(self.expected(*exchange));
        }
        Some(talk.places.count(place))
    }

    #[inline]
    fn streamed(&self, talk: &ConnectionState<R>) -> Option<Streamed> {
        talk.streamed
    }

    fn next_unanswered(
        &self,
        cursor: &mut Cursor,
        talk: &mut ConnectionState<R>,
    ) -> Option<(Turn, Unanswered)> {
        let (place, why) = talk.unanswered.pop_front()?;
        cursor.answer(1, &self.script);
        Some((talk.places.count(place), why))
    }

    fn cancel(&self, talk: &mut ConnectionState<R>, position: u32) {
        talk.cancel(position);
    }

    #[inline]
    fn receive(
        &self,
        at: At<'_, Self>,
        data: &[u8],
        now: Nanos,
        _: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let At { cursor, talk, desk } = at;
        talk.resumes = None;
        match self.take(talk, desk, data, now) {
            Ok(right) => {
                cursor.answer(right, &self.script);
                if talk.closing.is_some() {
                    // Requests that wait for a stream will not get one here.
                    talk.fill(cursor.unwritten(&self.script), self.script.count(), &self.requests);
                }
                Ok(right)
            }
            Err(exchange) => {
                if let Some(left) = talk.resumes.take() {
                    cursor.answer(exchange.reply_index as u32 + 1, &self.script);
                    talk.resumes = Some(data.len() - left);
                }
                Err(exchange)
            }
        }
    }

    fn resume(&self, talk: &mut ConnectionState<R>) -> Option<usize> {
        talk.resumes.take()
    }

    fn unfinished(&self, _: &Cursor, talk: &ConnectionState<R>) -> Option<Exchange> {
        let place = talk.places.begun()?;
        let expected = self.expected(place.exchange);
        Some(Exchange {
            sent: self.request_in_words(place, &talk.salts),
            expected: R::in_words(expected, self.script.reply(place.exchange)),
            received: format!(
                "the status {} and no end of the response{}",
                place.reply.status(),
                after_messages(&place.reply, expected)
            ),
            reply_index: 0,
        })
    }

    /// No further request may follow, and every request has its response.
    #[inline]
    fn ends(&self, talk: &ConnectionState<R>) -> bool {
        talk.is_closing() && talk.places.used() == 0
    }
}
