//! NATS over WebSocket: its text protocol, a stream of bytes that binary frames carry, wherever they cut it.
//!
//! A member subscribes to the subject `hub` and publishes to it. Behind each of both it sends a PING, whose
//! PONG shows that the server has done it: for the subscribers of its own server, it has queued the copies.

use super::{
    super::message::{Payload, Request},
    said::{Next, Said},
    text::Text,
};

/// The server has no paths.
pub const PATH: &str = "/";
/// The answer to a PING.
pub const PONG: &str = "PONG\r\n";

/// The longest line that a server may send; INFO is the longest there is, with the addresses of a cluster.
const MOST_LINE: usize = 1 << 16;

const CONNECT: &str = "CONNECT {\"verbose\":false";
const SUBSCRIBE: &str = "}\r\nSUB hub 1\r\nPING\r\n";
const PUBLISH: &str = "PUB hub 42\r\n\"";
const END: &str = "\"\r\nPING\r\n";
const LENGTH: usize = PUBLISH.len() + Payload::DIGITS + END.len();

const SUBJECT: &[u8] = b"hub";
const SUBSCRIPTION: &[u8] = b"1";
/// Bytes of a payload, with its quotes.
const PAYLOAD: usize = Payload::DIGITS + 2;
const COPY: &[u8] = b"MSG hub 1 42\r\n";

pub fn write(request: Request) -> Text {
    match request {
        Request::Echo(_) => Text::of(CONNECT).ended(SUBSCRIBE, LENGTH),
        Request::Broadcast(payload) => Text::of(PUBLISH).with_digits(payload).ended(END, LENGTH),
    }
}

/// What is at the front of the stream.
#[inline]
pub fn next(stream: &[u8]) -> Next {
    match stream.strip_prefix(COPY) {
        Some(rest) => copy(rest, COPY.len()),
        None => line(stream),
    }
}

/// A payload and its end, behind a line of `before` bytes.
#[inline]
fn copy(rest: &[u8], before: usize) -> Next {
    let Some((payload, rest)) = rest.split_at_checked(PAYLOAD) else { return Next::Part };
    match (Payload::read(payload), rest) {
        (Some(payload), [b'\r', b'\n', ..]) => {
            Next::Said(Said::Copy(payload), before + PAYLOAD + 2)
        }
        (Some(_), [] | [b'\r']) => Next::Part,
        _ => Next::Unknown,
    }
}

fn line(stream: &[u8]) -> Next {
    let Some(end) = memchr::memchr(b'\n', stream) else {
        return if stream.len() > MOST_LINE { Next::Unknown } else { Next::Part };
    };
    let taken = end + 1;
    let Some(line) = stream[..end].strip_suffix(b"\r") else { return Next::Unknown };
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let said = match words.next() {
        Some(b"MSG") => {
            let names = [words.next(), words.next()];
            // Before the length may stand a subject to reply to; nobody has asked for replies.
            let (length, more) = (words.next(), words.next());
            let is_whole = length == Some(b"42") && more.is_none();
            if names != [Some(SUBJECT), Some(SUBSCRIPTION)] || !is_whole {
                return Next::Unknown;
            }
            return copy(&stream[taken..], taken);
        }
        Some(b"PONG") => Said::Done(None),
        Some(b"PING") => Said::Asks,
        Some(b"INFO") => Said::Greeting,
        _ => return Next::Unknown,
    };
    Next::Said(said, taken)
}
