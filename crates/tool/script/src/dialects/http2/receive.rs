//! Checks what arrives on a connection.

use super::{
    dialect::Dialect2,
    response::{Response, after_messages},
    talk::{ConnectionState, NO_KIND},
    thread_state::ThreadState,
};
use crate::{
    dialect::Unanswered,
    dialects::http::reply::{
        criteria::Criteria, expected::Digest, partial_reply::SHOWN, salted::Answer,
    },
    text::cut,
    time::Nanos,
};
use regatta_http2::{
    ErrorCode, Rule, Settings,
    client::{Event, Stream},
};
use regatta_record::Exchange;
use std::cell::Cell;

/// What a piece of input showed.
enum Seen {
    /// Nothing that ends a request.
    More,
    /// A response is complete, and right.
    Right,
    /// The request of this place has a wrong response.
    Wrong { place: u32, received: String, is_complete: bool },
    /// The connection can no longer be used.
    Broken(Box<Exchange>),
}

/// What an event says about one response.
struct Part {
    stream: Stream,
    /// What is wrong with it, unless that is tolerated.
    fault: Option<String>,
    /// Something of the content has arrived.
    has_content: bool,
    ends: bool,
}

/// The circumstances of what is checked.
struct Reader<'a, R: Response> {
    dialect: &'a Dialect2<R>,
    desk: &'a mut ThreadState,
    now: Nanos,
    waited: Nanos,
    answer: &'a Cell<Digest>,
}

impl<R: Response> Dialect2<R> {
    /// Reads the events in `rest`, and returns the number of right responses. An error counts those before
    /// it in its index.
    pub(super) fn read(
        &self,
        talk: &mut ConnectionState<R>,
        desk: &mut ThreadState,
        rest: &mut &[u8],
        now: Nanos,
    ) -> Result<u32, Box<Exchange>> {
        let waited = talk.since.replace(now).map_or(0, |since| now.saturating_sub(since));
        let answer = Cell::default();
        let mut reader = Reader { dialect: self, desk, now, waited, answer: &answer };
        let (mut right, input) = (0, *rest);
        loop {
            let seen = match reader.next(talk, rest) {
                Ok(Some(seen)) => seen,
                Ok(None) => return Ok(right),
                Err(rule) => Seen::Broken(self.violation(talk, rule, input)),
            };
            let mut exchange = match seen {
                Seen::More => continue,
                Seen::Right => {
                    right += 1;
                    continue;
                }
                Seen::Broken(exchange) => exchange,
                Seen::Wrong { place, received, is_complete } => {
                    if is_complete {
                        talk.answered.push_back(place);
                        talk.resumes = Some(rest.len());
                    }
                    self.wrong(talk, place, received)
                }
            };
            exchange.reply_index = right.into();
            return Err(exchange);
        }
    }

    #[cold]
    fn wrong(&self, talk: &ConnectionState<R>, place: u32, received: String) -> Box<Exchange> {
        let place = talk.places.get(place);
        Box::new(Exchange {
            sent: self.request_in_words(place, &talk.salts),
            expected: R::in_words(self.expected(place.exchange), self.script.reply(place.exchange)),
            received,
            reply_index: 0,
        })
    }

    /// Describes a violation that ends the connection; `input` are the last received bytes.
    #[cold]
    fn violation(&self, talk: &ConnectionState<R>, rule: Rule, input: &[u8]) -> Box<Exchange> {
        let frame = talk.client.last_frame();
        let concerned = |stream: &Stream| frame.is_some_and(|frame| frame.stream == stream.id);
        let sent = talk.client.pending().find(concerned).map_or(String::new(), |stream| {
            self.request_in_words(talk.places.get(stream.place), &talk.salts)
        });
        let received = match input.starts_with(b"HTTP/1.") {
            true => {
                let text = cut(input, SHOWN);
                format!("{text} ({rule}); the server answers in HTTP/1.1: {}", R::OVER_HTTP1)
            }
            false => format!("{} ({rule})", frame.map_or(String::new(), |it| it.to_string())),
        };
        let expected = "frames that follow the rules of HTTP/2".into();
        Box::new(Exchange { sent, expected, received, reply_index: 0 })
    }
}

impl<R: Response> Reader<'_, R> {
    /// Handles the next event; `None` if there is none yet.
    #[inline]
    fn next(
        &mut self,
        talk: &mut ConnectionState<R>,
        rest: &mut &[u8],
    ) -> Result<Option<Seen>, Rule> {
        let known_for = talk.known_for;
        let (client, places, out) = talk.parts();
        let Some(event) = client.next(rest, out)? else { return Ok(None) };
        Ok(Some(match event {
            Event::Head { stream, ref head } => {
                let Some(slot) = places.get_mut(stream.place, stream.id) else {
                    talk.known_for = NO_KIND;
                    return Ok(Some(Seen::More));
                };
                let criteria = self.criteria(slot.exchange);
                let kind = u32::from(self.dialect.of[slot.exchange as usize]);
                slot.reply.head(head, head.is_repeated && known_for == kind, criteria);
                let is_reusable = !slot.reply.is_wrong() && R::same_heads(criteria.expected);
                let fault = slot.reply.fault(criteria.tolerates);
                let part = Part { stream, fault, has_content: false, ends: head.ends };
                talk.known_for = if is_reusable { kind } else { NO_KIND };
                self.part(talk, part)
            }
            Event::Content { stream, bytes, ends } => {
                let Some(slot) = places.get_mut(stream.place, stream.id) else {
                    return Ok(Some(Seen::More));
                };
                let criteria = self.criteria(slot.exchange);
                slot.reply.piece(bytes, ends, criteria);
                let fault = slot.reply.fault(criteria.tolerates);
                let part = Part { stream, fault, has_content: !bytes.is_empty(), ends };
                self.part(talk, part)
            }
            // From here on, fields may have been read that were not checked: the next head is not known, even if it
            // is like the last one.
            Event::Trailers { stream, fields } => {
                let fault = places.get_mut(stream.place, stream.id).and_then(|slot| {
                    slot.reply.trailers(fields, self.criteria(slot.exchange));
                    slot.reply.fault(self.desk.tolerates)
                });
                talk.known_for = NO_KIND;
                self.part(talk, Part { stream, fault, has_content: false, ends: true })
            }
            Event::Settings(settings) => {
                self.settings(talk, settings);
                Seen::More
            }
            Event::GoAway { code, .. } => {
                talk.closing = Some(code);
                Seen::More
            }
            Event::NotProcessed { stream } => {
                let why = self.not_processed(talk, stream);
                talk.end(stream.place, stream.id, why);
                Seen::More
            }
            Event::Reset { stream, code } => {
                let why = self.reset(talk, stream, code);
                talk.end(stream.place, stream.id, why);
                Seen::More
            }
            Event::Wrong { stream, rule } => {
                talk.known_for = NO_KIND;
                violated(talk, stream, rule)
            }
            Event::Window { .. } => {
                talk.may_send = true;
                Seen::More
            }
            Event::Interim { .. } => {
                talk.known_for = NO_KIND;
                Seen::More
            }
        }))
    }

    /// A part of a response has arrived.
    #[inline]
    fn part(&mut self, talk: &mut ConnectionState<R>, part: Part) -> Seen {
        let Part { stream, mut fault, has_content, ends } = part;
        let place = stream.place;
        let sent = if R::FOLLOWS_REQUEST { talk.sent_of_content(stream.id) } else { None };
        let Some(slot) = talk.places.get_mut(place, stream.id) else { return Seen::More };
        if R::FOLLOWS_REQUEST && has_content {
            if let Some(bytes) = sent {
                slot.reply.refuse(before_request("content of the response", bytes));
                fault = fault.or_else(|| slot.reply.fault(self.desk.tolerates));
            }
            talk.answers_held(stream.id, place);
        }
        if let Some(received) = fault {
            return Seen::Wrong { place, received, is_complete: false };
        }
        if !ends {
            return Seen::More;
        }
        let Some(slot) = talk.places.get_mut(place, stream.id) else { return Seen::More };
        slot.stream = 0;
        self.desk.count(slot.reply.status());
        let (exchange, index) = (slot.exchange, slot.index);
        let mut fault = slot.reply.end(self.criteria(exchange));
        if let Some(bytes) = sent
            && fault.is_none()
        {
            fault = Some(before_request("a complete response", bytes));
        }
        talk.forget_content(stream.id);
        talk.answers_held(stream.id, place);
        match fault {
            None => {
                if let (Some(salt), Some(answers)) =
                    (self.dialect.requests.salt(index, &talk.salts), &mut self.desk.answers)
                {
                    let digest = self.answer.get();
                    answers.keep(Answer { salt, exchange, reply: index, digest });
                }
                talk.answered.push_back(place);
                Seen::Right
            }
            Some(received) => Seen::Wrong { place, received, is_complete: true },
        }
    }

    #[inline]
    fn criteria(&self, exchange: u32) -> Criteria<'_, R::Expected> {
        Criteria {
            expected: self.dialect.expected(exchange),
            text: self.dialect.script.reply(exchange),
            now: self.now,
            waited: self.waited,
            wall: self.desk.wall,
            tolerates: self.desk.tolerates,
            answer: self.answer,
        }
    }

    /// The server says that it did not process a request. It did if its response has begun.
    #[cold]
    fn not_processed(&self, talk: &mut ConnectionState<R>, stream: Stream) -> Unanswered {
        match self.begun(talk, stream) {
            None => not_processed(talk.closing),
            Some(messages) => Unanswered::Ended(format!(
                "the server began a response, and then announced that it had not processed the \
                 request (GOAWAY; RFC 9113, 6.8){messages}"
            )),
        }
    }

    /// The server reset a stream.
    #[cold]
    fn reset(&self, talk: &mut ConnectionState<R>, stream: Stream, code: ErrorCode) -> Unanswered {
        let messages = self.begun(talk, stream).unwrap_or_default();
        Unanswered::Ended(format!(
            "the server reset the stream with {code} (RST_STREAM; RFC 9113, 6.4){messages}"
        ))
    }

    /// The messages of a response that has partly arrived, for people; `None` if nothing of it has.
    #[cold]
    fn begun(&self, talk: &mut ConnectionState<R>, stream: Stream) -> Option<String> {
        let slot = talk.places.get_mut(stream.place, stream.id)?;
        let expected = self.dialect.expected(slot.exchange);
        (slot.reply.status() > 0).then(|| after_messages(&slot.reply, expected))
    }

    /// The server's settings changed, or are the first.
    fn settings(&mut self, talk: &mut ConnectionState<R>, settings: Settings) {
        let limit = settings.max_concurrent_streams;
        if limit < self.dialect.pipeline {
            self.desk.lowest_limit = self.desk.lowest_limit.min(limit);
        }
        talk.table.limit(settings.header_table_size);
        (talk.may_send, talk.has_more_room) = (true, true);
    }
}

/// The server did not process a request, and closes the connection for this reason.
fn not_processed(code: Option<ErrorCode>) -> Unanswered {
    match code {
        None | Some(ErrorCode::NO_ERROR) => Unanswered::NotProcessed,
        Some(code) => Unanswered::Ended(format!(
            "the server closed the connection with {code} (GOAWAY; RFC 9113, 6.8)"
        )),
    }
}

/// Something of a response came before its request was sent completely.
#[cold]
fn before_request(what: &str, bytes: usize) -> String {
    format!("{what}, although the server has got only {bytes} bytes of the request's content")
}

/// The server violated a rule on a stream, which is reset.
#[cold]
fn violated<R: Response>(talk: &mut ConnectionState<R>, stream: Stream, rule: Rule) -> Seen {
    let (place, received) = (stream.place, rule.to_string());
    talk.forget_content(stream.id);
    match talk.places.get_mut(place, stream.id) {
        Some(slot) => {
            slot.stream = 0;
            Seen::Wrong { place, received, is_complete: true }
        }
        None => broken(received),
    }
}

/// Something is wrong that belongs to no pending request.
#[cold]
fn broken(received: String) -> Seen {
    let expected = "nothing more on this stream: its response was complete".into();
    Seen::Broken(Box::new(Exchange { sent: String::new(), expected, received, reply_index: 0 }))
}
