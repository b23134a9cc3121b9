//! Where the reader is in its input.

use crate::frame::Header;

/// What comes next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reader {
    /// A frame header.
    Header,
    /// The payload of a frame that is read as a whole.
    Whole(Header),
    /// The length of the padding of a DATA frame.
    Padding(Header, Use),
    /// The content and padding of a DATA frame.
    Data(Data),
    /// This many bytes of a frame that is ignored.
    Skip(u32),
    /// Nothing: the connection failed.
    Closed,
}

/// The result of a step of the reader.
pub(crate) enum Step<N> {
    /// More bytes must arrive.
    Wait,
    /// The next step can follow.
    Continue,
    Report(N),
}

/// What becomes of the content of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is reported.
    Report,
    /// It is discarded, because its stream was reset.
    Discard,
}

/// The remaining bytes of a DATA frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub stream: u32,
    pub content: u32,
    pub padding: u32,
    /// Whether it ends its stream.
    pub ends: bool,
    pub usage: Use,
}

/// A field block whose CONTINUATION frames are awaited.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// Its stream; 0 if there is none.
    pub stream: u32,
    /// Whether it ends its stream.
    pub ends: bool,
    /// Number of CONTINUATION frames so far.
    pub continuations: u32,
    pub bytes: Vec<u8>,
}

/// Takes up to `left` bytes off the front of `input`.
#[inline]
pub(crate) fn take<'a>(input: &mut &'a [u8], left: &mut u32) -> &'a [u8] {
    let (front, rest) = input.split_at(input.len().min(*left as usize));
    *left -= front.len() as u32;
    *input = rest;
    front
}
