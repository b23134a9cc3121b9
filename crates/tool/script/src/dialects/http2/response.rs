//! How a response is checked while it arrives. HTTP itself (`reply`) and each protocol on top of HTTP/2
//! implement this.

use crate::{dialect::Streamed, dialects::http::reply::criteria::Criteria};
use regatta_http2::{client::Head, hpack::Fields};
use regatta_record::Operation;
use std::fmt::Debug;

/// What has arrived of a response, and whether it is right.
pub trait Response: Debug + Default {
    /// What a response must be.
    type Expected: Debug + Sync;

    /// Whether a response cannot be right before its request was sent completely.
    const FOLLOWS_REQUEST: bool;

    /// What helps against a server that answers in HTTP/1.1.
    const OVER_HTTP1: &str;

    /// The kinds of operations: [`Streamed::OPERATIONS`] if responses may be streams of messages.
    const OPERATIONS: &'static [Operation] = &[Operation::REQUESTS];

    /// Whether responses with this expectation are streams of messages.
    #[inline]
    fn is_stream(expected: &Self::Expected) -> bool {
        let _ = expected;
        false
    }

    /// The messages of the response so far, if it is a stream.
    #[inline]
    fn streamed(&self, expected: &Self::Expected) -> Option<Streamed> {
        let _ = expected;
        None
    }

    /// Describes the expected response; `text` is the text that it is compared with.
    fn in_words(expected: &Self::Expected, text: &[u8]) -> String;

    /// Whether a head that was right for one exchange with this expectation is right for all.
    fn same_heads(expected: &Self::Expected) -> bool;

    /// Prepares for the next response.
    fn clear(&mut self);

    /// Its status; 0 until its head has arrived.
    fn status(&self) -> u16;

    /// Takes the head. `is_known`: the same fields were right for the same kind of request.
    fn head(&mut self, head: &Head<'_>, is_known: bool, criteria: Criteria<'_, Self::Expected>);

    /// Takes a piece of the content. `is_all`: nothing else will come.
    fn piece(&mut self, piece: &[u8], is_all: bool, criteria: Criteria<'_, Self::Expected>);

    /// Takes the fields behind the content; nothing else will come.
    fn trailers(&mut self, fields: &Fields, criteria: Criteria<'_, Self::Expected>);

    /// The response is complete. Returns what is wrong with it.
    fn end(&mut self, criteria: Criteria<'_, Self::Expected>) -> Option<String>;

    /// Records what is wrong with the response, unless something is already.
    fn refuse(&mut self, why: String);

    /// Whether anything is wrong so far.
    fn is_wrong(&self) -> bool;

    /// Takes what is wrong so far, unless that is tolerated until the response is complete.
    fn fault(&mut self, tolerates: bool) -> Option<String>;
}

/// How many messages of a stream have arrived, for people; empty if the response is not a stream.
#[cold]
pub fn after_messages<R: Response>(reply: &R, expected: &R::Expected) -> String {
    match reply.streamed(expected).map(|streamed| streamed.messages) {
        None => String::new(),
        Some(1) => ", after 1 message".into(),
        Some(messages) => format!(", after {messages} messages"),
    }
}
