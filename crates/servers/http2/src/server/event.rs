//! What a server reports.

use super::request::Summary;
use crate::{code::ErrorCode, hpack::Fields, rule::Rule};

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    fields: &'a Fields,
    summary: Summary,
    /// Whether the field block is that of the last request, byte for byte, under the same dynamic table.
    /// Then the fields are the same, too.
    pub is_repeated: bool,
    /// Whether the request has neither content nor trailers.
    pub ends: bool,
}

impl<'a> Request<'a> {
    pub(super) fn new(fields: &'a Fields, summary: Summary, is_repeated: bool, ends: bool) -> Self {
        Request { fields, summary, is_repeated, ends }
    }

    /// The method, as sent.
    #[inline]
    pub fn method(&self) -> &'a [u8] {
        self.fields.value_at(self.summary.method)
    }

    /// The value of `:path`: a path with a query, or `*`. Empty for CONNECT.
    #[inline]
    pub fn path(&self) -> &'a [u8] {
        self.summary.path.map_or(&[], |at| self.fields.value_at(at))
    }

    /// The value of `:authority`, or else that of `Host`. It is not checked.
    #[inline]
    pub fn authority(&self) -> Option<&'a [u8]> {
        self.summary.authority.map(|at| self.fields.value_at(at))
    }

    /// Whether there are several Host fields, which is an error (RFC 9110, 7.2). They are not compared with
    /// `:authority` then.
    #[inline]
    pub fn has_hosts(&self) -> bool {
        self.summary.has_hosts
    }

    /// The value of Content-Length. The content has this length.
    #[inline]
    pub fn content_length(&self) -> Option<u64> {
        self.summary.content_length
    }

    /// The value of Expect; of several, the first one that is not `100-continue`.
    #[inline]
    pub fn expects(&self) -> Option<&'a [u8]> {
        self.summary.expects.map(|at| self.fields.value_at(at))
    }

    /// All fields, pseudo-header fields included.
    pub fn fields(&self) -> &'a Fields {
        self.fields
    }
}

/// What arrived. After an event with `ends`, and after [`Event::Trailers`], the request is complete. After
/// [`Event::Reset`] and [`Event::Wrong`], the stream is closed, and a response to it is not sent.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A request, or the head of one. It must be answered.
    Request {
        /// Its stream.
        stream: u32,
        /// Its head.
        request: Request<'a>,
    },
    /// A part of the content of a request that is not answered yet. Empty only if it ends.
    Content {
        /// The stream.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
        /// Whether the request is complete.
        ends: bool,
    },
    /// Trailers.
    Trailers {
        /// The stream.
        stream: u32,
        /// All fields.
        fields: &'a Fields,
    },
    /// The client reset a stream whose response was not sent completely.
    Reset {
        /// The stream.
        stream: u32,
        /// The client's reason.
        code: ErrorCode,
    },
    /// The client violated a rule of the scope [`Stream`](crate::Scope::Stream) on a stream that was
    /// reported. It is reset.
    Wrong {
        /// The stream.
        stream: u32,
        /// The rule.
        rule: Rule,
    },
}
