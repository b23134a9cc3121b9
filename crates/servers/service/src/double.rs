//! `double`: replies to each integer with its double, line by line (workload 1).

use crate::{CallOutcome, Codec, Decoded, Flow, Never, Now, Service};
use regatta_proto::line::{self, Integer, MAX_FRAME, Split};

/// Bytes of an invalid line that the error reply quotes.
pub const QUOTED: usize = 32;

/// The reply to a line over the limit; the connection closes after it.
pub const TOO_LONG: &[u8] = b"error: line longer than 1024 bytes\n";

/// The service. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Double;

/// Its protocol. It has no state either.
#[derive(Debug, Default)]
pub struct Lines;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A 64-bit integer.
    Number(Integer),
    /// The line `end`.
    End,
    /// Any other line.
    NotAnInteger(&'a [u8]),
    /// A line over the limit, complete or not.
    TooLong,
}

impl<'a> Request<'a> {
    /// Parses a line, given without its line end.
    #[inline]
    pub fn parse(line: &'a [u8]) -> Self {
        match Integer::parse(line) {
            Some(number) => Request::Number(number),
            None if line == b"end" => Request::End,
            None => Request::NotAnInteger(line),
        }
    }

    /// Appends the reply.
    #[inline]
    pub fn answer(self, reply: &mut Vec<u8>) -> Flow {
        match self {
            Request::Number(number) => {
                number.write_doubled(reply);
                reply.push(b'\n');
                Flow::Continue
            }
            Request::NotAnInteger(line) => {
                reply.extend_from_slice(b"error: not an integer: ");
                line::escape(line, QUOTED, reply);
                reply.push(b'\n');
                Flow::Continue
            }
            Request::TooLong => {
                reply.extend_from_slice(TOO_LONG);
                Flow::Close
            }
            Request::End => Flow::Close,
        }
    }
}

impl Codec for Lines {
    type Request<'a> = Request<'a>;
    const MAX_FRAME: usize = MAX_FRAME;

    #[inline(always)]
    fn decode<'a>(&mut self, input: &'a [u8]) -> Decoded<Request<'a>> {
        match line::split(input) {
            Split::Line { line, consumed } => Decoded::Request(Request::parse(line), consumed),
            Split::Incomplete => Decoded::Incomplete,
            Split::TooLong => Decoded::Request(Request::TooLong, input.len().min(MAX_FRAME)),
        }
    }
}

impl Service for Double {
    type Codec = Lines;
    type Job = Never;
    type Local = ();

    #[inline(always)]
    fn call(
        &mut self,
        (): &mut (),
        _: Now,
        request: Request<'_>,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Never> {
        request.answer(reply).into()
    }
}
