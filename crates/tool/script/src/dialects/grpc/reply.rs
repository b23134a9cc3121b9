//! A response while it arrives, and whether it is right. The rules of HTTP/2 itself are checked before, in
//! the crate `http2`.

use super::{
    arriving::{Arriving, too_long},
    framing::Fault,
    hex::in_hex,
    protobuf::Expectation,
    status::{self, Outcome},
    stream::{Progress, StreamExpectation},
};
use crate::{
    dialect::Streamed,
    dialects::{
        http::reply::criteria::Criteria,
        http2::response::{Response, after_messages},
    },
    text::printable,
};
use regatta_http2::{client::Head, hpack::Fields};
use regatta_record::Operation;

/// What the message of a response must be, or what the messages of a stream must be.
#[derive(Debug)]
pub enum Expected {
    /// Any message. Its bytes are counted, and not kept.
    Any,
    /// The text of the exchange, byte for byte.
    Bytes,
    /// This message, in any encoding.
    Fields(Box<Expectation>),
    /// A stream of messages.
    Stream(StreamExpectation),
}

/// What has arrived of a response.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its status in HTTP; 0 until its head has arrived.
    status: u16,
    /// The message, or that of the stream that has partly arrived.
    message: Arriving,
    /// A message that is compared by its fields was compared.
    is_compared: bool,
    /// The earlier messages of a stream.
    before: Progress,
    /// The first thing that is wrong. The rest of the message is then not checked.
    wrong: Option<String>,
}

impl Response for Reply {
    type Expected = Expected;

    /// A method cannot return what it has not got the message for. An error may come earlier.
    const FOLLOWS_REQUEST: bool = true;
    const OVER_HTTP1: &str = "it does not speak HTTP/2, over which gRPC is sent";

    const OPERATIONS: &'static [Operation] = Streamed::OPERATIONS;

    #[inline]
    fn is_stream(expected: &Expected) -> bool {
        matches!(expected, Expected::Stream(_))
    }

    #[inline]
    fn streamed(&self, expected: &Expected) -> Option<Streamed> {
        Reply::is_stream(expected).then(|| self.before.streamed())
    }

    #[cold]
    fn in_words(expected: &Expected, text: &[u8]) -> String {
        let message = match expected {
            Expected::Any => "one message".to_owned(),
            Expected::Bytes => message_in_words(text),
            Expected::Fields(expectation) => expectation.in_words(),
            Expected::Stream(stream) => stream.in_words(),
        };
        format!("status 200, {message} and grpc-status 0 (OK) in the trailers")
    }

    #[inline]
    fn same_heads(_: &Expected) -> bool {
        true
    }

    fn clear(&mut self) {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        *self = Reply { message, ..Reply::default() };
    }

    #[inline]
    fn status(&self) -> u16 {
        self.status
    }

    #[inline]
    fn head(&mut self, head: &Head<'_>, is_known: bool, criteria: Criteria<'_, Expected>) {
        self.status = head.status;
        self.wrong = match criteria.expected {
            // The fields do not say whether the head is all.
            Expected::Stream(stream) if head.ends => self.only_trailers(head, stream),
            Expected::Stream(_) => (!is_right(head)).then(|| fault_of_head(head)),
            Expected::Any | Expected::Bytes | Expected::Fields(_) => {
                (head.ends || !is_known && !is_right(head)).then(|| fault_of_head(head))
            }
        };
    }

    #[inline]
    fn piece(&mut self, piece: &[u8], is_all: bool, criteria: Criteria<'_, Expected>) {
        if self.wrong.is_none() {
            self.wrong = self.message(piece, criteria);
        }
        if is_all && self.wrong.is_none() {
            let why = "no trailers, and so no grpc-status: the response ended with its content \
                       (END_STREAM on DATA)";
            self.wrong = Some(format!("{why}{}", after_messages(self, criteria.expected)));
        }
    }

    /// A status other than 0 explains other faults.
    #[inline]
    fn trailers(&mut self, fields: &Fields, criteria: Criteria<'_, Expected>) {
        let after = |reply: &Reply, what: String| {
            Some(format!("{what}{}", after_messages(reply, criteria.expected)))
        };
        match status::outcome(fields) {
            Outcome::Ok if self.wrong.is_some() => {}
            Outcome::Ok => {
                let fault = match criteria.expected {
                    Expected::Any | Expected::Bytes | Expected::Fields(_) => {
                        self.message.framing.end().err().map(Fault::in_words)
                    }
                    Expected::Stream(stream) => self.before.end(&self.message.framing, stream),
                };
                self.wrong =
                    fault.map(|fault| format!("{fault}, and {}", status::in_words(fields)));
            }
            Outcome::Absent => self.wrong = after(self, "no grpc-status in the trailers".into()),
            Outcome::Other => self.wrong = after(self, status::in_words(fields)),
        }
    }

    #[inline]
    fn end(&mut self, _: Criteria<'_, Expected>) -> Option<String> {
        self.wrong.take()
    }

    #[cold]
    fn refuse(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    #[inline]
    fn is_wrong(&self) -> bool {
        self.wrong.is_some()
    }

    #[inline]
    fn fault(&mut self, tolerates: bool) -> Option<String> {
        self.wrong.take_if(|_| !tolerates)
    }
}

impl Reply {
    /// The head is all of a stream. Returns what is wrong with it.
    fn only_trailers(&self, head: &Head<'_>, stream: &StreamExpectation) -> Option<String> {
        if head.status != 200 || status::outcome(head.fields) != Outcome::Ok || !has_kind(head) {
            return Some(fault_of_head(head));
        }
        let fault = self.before.end(&self.message.framing, stream)?;
        Some(format!("{fault}, and {} (only trailers)", status::in_words(head.fields)))
    }

    /// Takes a piece of the content. Returns what is wrong with it.
    #[inline]
    fn message(&mut self, piece: &[u8], criteria: Criteria<'_, Expected>) -> Option<String> {
        if let Expected::Stream(stream) = criteria.expected {
            return self.before.take(&mut self.message, piece, stream, criteria.now).err();
        }
        let (at, part) = match self.message.framing.take(piece) {
            Ok(taken) => taken,
            Err(fault) => return Some(fault.in_words()),
        };
        match criteria.expected {
            Expected::Any | Expected::Stream(_) => None,
            Expected::Bytes => {
                let length = self.message.framing.length()?;
                if length as usize != criteria.text.len() {
                    return Some(wrong_length(length, part));
                }
                (criteria.text[at..at + part.len()] != *part)
                    .then(|| wrong_bytes(at, part, criteria.text))
            }
            Expected::Fields(expectation) => self.compare(part, expectation),
        }
    }

    /// Takes a part of a message that is compared by its fields. Returns what is wrong with it.
    #[inline]
    fn compare(&mut self, part: &[u8], expectation: &Expectation) -> Option<String> {
        let length = self.message.framing.length()? as usize;
        if length > expectation.longest() {
            return Some(too_long(length, expectation.longest()));
        }
        if self.is_compared {
            return None;
        }
        let message = self.message.whole(part, length)?;
        self.is_compared = true;
        expectation.fault(message)
    }
}

/// Whether a head is that of a response with a message.
#[inline]
fn is_right(head: &Head<'_>) -> bool {
    head.status == 200 && has_kind(head) && status::outcome(head.fields) == Outcome::Absent
}

/// Whether a head has exactly one content type, and a right one.
#[inline]
fn has_kind(head: &Head<'_>) -> bool {
    let mut kinds = head.fields.iter().filter(|field| field.name == b"content-type");
    kinds.next().is_some_and(|field| is_kind(field.value)) && kinds.next().is_none()
}

/// Whether this is the content type of messages of Protocol Buffers: `application/grpc` or `application/grpc+proto`,
/// perhaps with parameters. Case does not matter (RFC 9110, 8.3.1). `application/grpc-web` is another protocol, and
/// `application/grpc+json` another form of messages.
#[inline]
fn is_kind(value: &[u8]) -> bool {
    const KIND: &[u8] = b"application/grpc";
    const FORM: &[u8] = b"+proto";
    let Some((kind, mut rest)) = value.split_at_checked(KIND.len()) else { return false };
    if let Some((form, others)) = rest.split_at_checked(FORM.len())
        && form.eq_ignore_ascii_case(FORM)
    {
        rest = others;
    }
    kind.eq_ignore_ascii_case(KIND) && matches!(rest.trim_ascii_start().first(), None | Some(b';'))
}

/// What is wrong with a head.
#[cold]
fn fault_of_head(head: &Head<'_>) -> String {
    let status = head.status;
    let kinds: Vec<String> = head
        .fields
        .iter()
        .filter(|field| field.name == b"content-type")
        .map(|field| printable(field.value))
        .collect();
    let outcome = status::outcome(head.fields);
    if status != 200 || outcome == Outcome::Absent && head.ends {
        let of_outcome = status::in_words(head.fields);
        return format!("the status {status} and {of_outcome}, content-type {}", in_list(&kinds));
    }
    if outcome != Outcome::Absent && !(outcome == Outcome::Ok && head.ends && !has_kind(head)) {
        let of_outcome = status::in_words(head.fields);
        return match head.ends {
            true => format!("{of_outcome}; no message (the response has only trailers)"),
            false => format!("{of_outcome} in the head, although the response goes on"),
        };
    }
    format!("content-type {}; expected application/grpc", in_list(&kinds))
}

fn in_list(kinds: &[String]) -> String {
    if kinds.is_empty() { "missing".into() } else { kinds.join(" and ") }
}

/// A message, for people.
#[cold]
fn message_in_words(message: &[u8]) -> String {
    match message.len() {
        0 => "the empty message".into(),
        bytes => format!("the message {} ({bytes} bytes)", in_hex(message)),
    }
}

#[cold]
fn wrong_length(length: u32, part: &[u8]) -> String {
    match part {
        [] => format!("a message of {length} bytes"),
        part => format!("a message of {length} bytes that has {}", in_hex(part)),
    }
}

#[cold]
fn wrong_bytes(at: usize, part: &[u8], text: &[u8]) -> String {
    let same = part.iter().zip(&text[at..]).take_while(|(came, expected)| came == expected).count();
    let first = at + same;
    format!("a message that differs from byte {first} on: {}", in_hex(&part[same..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each reply would allocate it again.
    #[test]
    fn the_buffer_of_a_long_message_is_kept() {
        let mut reply = Reply { is_compared: true, ..Reply::default() };
        reply.message.content = vec![1; 300_000];
        let place = reply.message.content.as_ptr();
        reply.clear();
        assert!(reply.message.content.is_empty() && !reply.is_compared);
        assert!(reply.message.content.capacity() >= 300_000);
        assert_eq!(reply.message.content.as_ptr(), place);
    }
}
