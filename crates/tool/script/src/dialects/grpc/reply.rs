//! A response while it arrives, and whether it is right. The rules of HTTP/2 itself are checked before, in
//! the crate `http2`.

use super::{
    framing::Framing,
    hex::in_hex,
    protobuf::Expectation,
    rules::LONGEST_MESSAGE,
    status::{self, Outcome},
};
use crate::{
    dialects::{http::reply::criteria::Criteria, http2::response::Response},
    text::printable,
};
use regatta_http2::{client::Head, hpack::Fields};

/// What the message of a response must be.
#[derive(Debug)]
pub enum Expected {
    /// Any message. Its bytes are counted, and not kept.
    Any,
    /// The text of the exchange, byte for byte.
    Bytes,
    /// This message, in any encoding.
    Fields(Box<Expectation>),
}

/// Maximum capacity of a buffer for a message that is kept for the next response, in bytes.
const KEPT: usize = 1 << 16;

/// What has arrived of a response.
#[derive(Debug, Default)]
pub struct Reply {
    /// Its status in HTTP; 0 until its head has arrived.
    status: u16,
    message: Framing,
    /// What has arrived of a message that is compared by its fields, unless it came in one piece.
    content: Vec<u8>,
    /// Such a message was compared.
    is_compared: bool,
    /// The first thing that is wrong. The rest of the message is then not checked.
    wrong: Option<String>,
}

impl Response for Reply {
    type Expected = Expected;

    /// A method cannot return what it has not got the message for. An error may come earlier.
    const FOLLOWS_REQUEST: bool = true;
    const OVER_HTTP1: &str = "it does not speak HTTP/2, over which gRPC is sent";

    #[cold]
    fn in_words(expected: &Expected, text: &[u8]) -> String {
        let message = match expected {
            Expected::Any => "one message".to_owned(),
            Expected::Bytes => message_in_words(text),
            Expected::Fields(expectation) => expectation.in_words(),
        };
        format!("status 200, {message} and grpc-status 0 (OK) in the trailers")
    }

    #[inline]
    fn same_heads(_: &Expected) -> bool {
        true
    }

    fn clear(&mut self) {
        let mut content = std::mem::take(&mut self.content);
        content.clear();
        content.shrink_to(KEPT);
        *self = Reply { content, ..Reply::default() };
    }

    #[inline]
    fn status(&self) -> u16 {
        self.status
    }

    #[inline]
    fn head(&mut self, head: &Head<'_>, is_known: bool, _: Criteria<'_, Expected>) {
        self.status = head.status;
        if head.ends || !is_known && !is_right(head) {
            self.wrong = Some(fault_of_head(head));
        }
    }

    #[inline]
    fn piece(&mut self, piece: &[u8], is_all: bool, criteria: Criteria<'_, Expected>) {
        if self.wrong.is_none() {
            self.wrong = self.message(piece, criteria);
        }
        if is_all && self.wrong.is_none() {
            self.wrong = Some(
                "no trailers, and so no grpc-status: the response ended with its content (END_STREAM \
                 on DATA)"
                    .into(),
            );
        }
    }

    /// A status other than 0 explains other faults.
    #[inline]
    fn trailers(&mut self, fields: &Fields, _: Criteria<'_, Expected>) {
        match status::outcome(fields) {
            Outcome::Ok if self.wrong.is_some() => {}
            Outcome::Ok => {
                let came = self.message.end();
                self.wrong = came
                    .err()
                    .map(|fault| format!("{}, and {}", fault.in_words(), status::in_words(fields)));
            }
            Outcome::Absent => self.wrong = Some("no grpc-status in the trailers".into()),
            Outcome::Other => self.wrong = Some(status::in_words(fields)),
        }
    }

    #[inline]
    fn end(&mut self, _: Criteria<'_, Expected>) -> Option<String> {
        self.wrong.take()
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
    /// Takes a piece of the content. Returns what is wrong with it.
    #[inline]
    fn message(&mut self, piece: &[u8], criteria: Criteria<'_, Expected>) -> Option<String> {
        let (at, part) = match self.message.take(piece) {
            Ok(taken) => taken,
            Err(fault) => return Some(fault.in_words()),
        };
        match criteria.expected {
            Expected::Any => None,
            Expected::Bytes => {
                let length = self.message.length()?;
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
        let length = self.message.length()? as usize;
        if length > LONGEST_MESSAGE {
            return Some(format!(
                "a message of {length} bytes; messages of at most {LONGEST_MESSAGE} bytes are compared"
            ));
        }
        if self.is_compared {
            return None;
        }
        let is_whole = part.len() == length;
        if !is_whole {
            self.content.extend_from_slice(part);
        }
        let message = if is_whole { part } else { &self.content[..] };
        if message.len() < length {
            return None;
        }
        self.is_compared = true;
        expectation.fault(message)
    }
}

/// Whether a head is that of a response with a message.
#[inline]
fn is_right(head: &Head<'_>) -> bool {
    let (mut kind, mut kinds, mut has_outcome) = (&b""[..], 0, false);
    for field in head.fields.iter() {
        match field.name {
            b"content-type" => (kind, kinds) = (field.value, kinds + 1),
            b"grpc-status" => has_outcome = true,
            _ => {}
        }
    }
    head.status == 200 && kinds == 1 && is_kind(kind) && !has_outcome
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
    if outcome != Outcome::Absent {
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
