//! NATS over WebSocket: its text protocol is a byte stream, carried in binary frames that may split it
//! anywhere.
//!
//! A member subscribes to the subject `hub` and publishes to it. It sends a PING after each of these.
//! The PONG shows that the server has processed the command, and has queued the copies for its own
//! subscribers.

use super::{
    super::message::{Payload, Request},
    incoming::{Incoming, Next},
    text::Text,
};

/// The server ignores paths.
pub const PATH: &str = "/";
/// The answer to a PING.
pub const PONG: &str = "PONG\r\n";

/// Maximum length of a line from the server. INFO is the longest, with the addresses of a cluster.
const MOST_LINE: usize = 1 << 16;

const CONNECT: &str = "CONNECT {\"verbose\":false";
const SUBSCRIBE: &str = "}\r\nSUB hub 1\r\nPING\r\n";
const PUBLISH: &str = "PUB hub 42\r\n\"";
const END: &str = "\"\r\nPING\r\n";
const LENGTH: usize = PUBLISH.len() + Payload::DIGITS + END.len();

const SUBJECT: &[u8] = b"hub";
const SUBSCRIPTION: &[u8] = b"1";
/// Bytes in a payload, with its quotes.
const PAYLOAD: usize = Payload::DIGITS + 2;
const COPY: &[u8] = b"MSG hub 1 42\r\n";

pub fn write(request: Request) -> Text {
    match request {
        Request::Echo(_) => Text::of(CONNECT).ended(SUBSCRIBE, LENGTH),
        Request::Broadcast(payload) => Text::of(PUBLISH).with_digits(payload).ended(END, LENGTH),
    }
}

/// Parses the front of the stream.
#[inline]
pub fn next(stream: &[u8]) -> Next {
    match stream.strip_prefix(COPY) {
        Some(rest) => copy(rest, COPY.len()),
        None => line(stream),
    }
}

/// Parses a payload and its line end, after a line of `before` bytes.
#[inline]
fn copy(rest: &[u8], before: usize) -> Next {
    let Some((payload, rest)) = rest.split_at_checked(PAYLOAD) else { return Next::Part };
    match (Payload::read(payload), rest) {
        (Some(payload), [b'\r', b'\n', ..]) => {
            Next::Incoming(Incoming::Copy(payload), before + PAYLOAD + 2)
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
    let incoming = match words.next() {
        Some(b"MSG") => {
            let names = [words.next(), words.next()];
            // A reply subject may come before the length, but no member requests replies.
            let (length, more) = (words.next(), words.next());
            let is_whole = length == Some(b"42") && more.is_none();
            if names != [Some(SUBJECT), Some(SUBSCRIPTION)] || !is_whole {
                return Next::Unknown;
            }
            return copy(&stream[taken..], taken);
        }
        Some(b"PONG") => Incoming::Done(None),
        Some(b"PING") => Incoming::Ping,
        Some(b"INFO") => Incoming::Greeting,
        _ => return Next::Unknown,
    };
    Next::Incoming(incoming, taken)
}
