//! What a client reports.

use crate::{code::ErrorCode, hpack::Fields, rule::Rule, settings::Settings};

/// A stream of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its identifier.
    pub id: u32,
    /// The number that the caller gave to the request.
    pub place: u32,
}

/// The head of a final response.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// 200 to 599.
    pub status: u16,
    /// The value of Content-Length. The content has this length, unless it is the response to HEAD, 204 or
    /// 304.
    pub content_length: Option<u64>,
    /// All fields, `:status` included.
    pub fields: &'a Fields,
    /// Whether the field block is that of the last head, byte for byte, under the same dynamic table. Then
    /// the fields are the same, too.
    pub is_repeated: bool,
    /// Whether the response has neither content nor trailers.
    pub ends: bool,
}

/// What arrived. After an event with `ends`, [`Event::Trailers`], [`Event::Reset`], [`Event::Wrong`] or
/// [`Event::NotProcessed`], nothing more is reported for a stream, with two exceptions if the content of
/// its request is not yet sent completely: it can still be reset, and it can be wrong.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The server's settings changed, or are the first. They are acknowledged.
    Settings(Settings),
    /// An interim response (1xx).
    Interim {
        /// The request.
        stream: Stream,
        /// 100 to 199, except 101.
        status: u16,
        /// All fields, `:status` included.
        fields: &'a Fields,
    },
    /// The head of a response.
    Head {
        /// The request.
        stream: Stream,
        /// The head.
        head: Head<'a>,
    },
    /// A part of the content. Empty only if it ends.
    Content {
        /// The request.
        stream: Stream,
        /// The bytes.
        bytes: &'a [u8],
        /// Whether the response is complete.
        ends: bool,
    },
    /// Trailers. The response is complete.
    Trailers {
        /// The request.
        stream: Stream,
        /// All fields.
        fields: &'a Fields,
    },
    /// The server reset the stream. [`ErrorCode::REFUSED_STREAM`]: it did not process the request.
    Reset {
        /// The request.
        stream: Stream,
        /// The server's reason.
        code: ErrorCode,
    },
    /// The server violated a rule of the scope [`Stream`](crate::Scope::Stream). The stream is reset.
    Wrong {
        /// The request.
        stream: Stream,
        /// The rule.
        rule: Rule,
    },
    /// The server does not process the request, because it follows the last stream of a GOAWAY frame. It
    /// can be sent again on another connection (RFC 9113, 6.8).
    NotProcessed {
        /// The request.
        stream: Stream,
    },
    /// The server closes the connection. It still answers the streams up to the last one; the others follow
    /// as [`Event::NotProcessed`].
    GoAway {
        /// The last stream that the server processes.
        last_stream: u32,
        /// The server's reason.
        code: ErrorCode,
        /// Arbitrary bytes for people.
        debug: &'a [u8],
    },
    /// The window for the content of requests became larger.
    Window {
        /// The request; `None` for the connection.
        stream: Option<Stream>,
    },
}
