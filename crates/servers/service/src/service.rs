//! Codec and call, and the step that all three styles share: answering buffered requests.

use crate::{Flow, Job, Now};
use std::time::Instant;

/// The server side of a protocol: finds requests at the front of a buffer.
pub trait Codec: Default + Send + 'static {
    /// A request, borrowed from the buffer. Malformed input is also a request: it gets a reply.
    type Request<'a>;

    /// Maximum size of a request, in bytes. A buffer of this size always makes progress.
    const MAX_FRAME: usize;

    /// Decodes the request at the front of `input`. Called again with a longer buffer after
    /// [`Decoded::Incomplete`].
    fn decode<'a>(&mut self, input: &'a [u8]) -> Decoded<Self::Request<'a>>;
}

/// The result of decoding the front of a buffer.
pub enum Decoded<R> {
    /// A complete request, and its number of bytes.
    Request(R, usize),
    /// The start of a request, or nothing.
    Incomplete,
}

/// The result of a call.
#[derive(Debug)]
pub enum CallOutcome<J> {
    /// The reply was appended.
    Replied(Flow),
    /// The reply needs a job first. Nothing of it was appended yet. Replies to later requests of the
    /// connection follow this one.
    Needs(J),
}

impl<J> From<Flow> for CallOutcome<J> {
    #[inline]
    fn from(flow: Flow) -> Self {
        CallOutcome::Replied(flow)
    }
}

/// The server's reaction to requests. One value serves one connection and may hold its state. It is
/// cloned from the service that was started.
pub trait Service: Clone + Send + Sync + 'static {
    /// The protocol.
    type Codec: Codec;

    /// The job that a reply may need; [`Never`](crate::Never) if none ever does.
    type Job: Job;

    /// Data that connections may share within a thread. It may only hold caches.
    type Local: Default + Send + 'static;

    /// Appends the reply to `request` to `reply`, or returns the job it needs.
    fn call(
        &mut self,
        local: &mut Self::Local,
        now: Now,
        request: <Self::Codec as Codec>::Request<'_>,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Self::Job>;

    /// When the oldest request started whose end [`Service::call`] still awaits, although the codec has
    /// returned its start: for the request timeout.
    #[inline]
    fn inside(&self) -> Option<Instant> {
        None
    }

    /// Called once when the input has ended and all its requests are answered, except if the connection
    /// closes earlier. Appends the last output of the connection. Styles that write in a loop of their own
    /// also call it when the client has timed out.
    #[inline]
    fn end(&mut self, _reply: &mut Vec<u8>) {}
}

/// Storage of a thread for the data that its connections share ([`Service::Local`]).
pub trait Locals {
    /// Takes the data out, or creates it. [`Locals::give_back`] follows without a wait in between.
    fn take<L: Default + Send + 'static>(&self) -> Box<L>;

    /// Returns the data.
    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>);
}

/// Bytes of replies from which on they are written before the next request is answered. Together
/// with the size of a read, this bounds the memory of a connection.
pub const REPLY_FULL: usize = 64 * 1024;

/// Why [`answer`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt<J> {
    /// No complete request remains: more input is needed.
    NeedsInput,
    /// [`REPLY_FULL`] is reached: write, then answer the rest.
    Full,
    /// The service closes the connection, or the client asked for that and input remains.
    Closing,
    /// The next reply needs this job. Later requests may be answered meanwhile.
    Needs(J),
    /// The client asked to close the connection, and no input remains.
    ClosingByClient,
}

/// Answers the requests in `input` in order, and appends to `reply`. Returns the number of bytes
/// consumed, and why it stopped.
#[inline]
#[expect(clippy::too_many_arguments, reason = "the state of a connection, its input and its reply")]
pub fn answer<S: Service>(
    service: &mut S,
    codec: &mut S::Codec,
    local: &mut S::Local,
    now: Now,
    input: &[u8],
    reply: &mut Vec<u8>,
) -> (usize, Halt<S::Job>) {
    let mut consumed = 0;
    loop {
        if reply.len() >= REPLY_FULL {
            return (consumed, Halt::Full);
        }
        match codec.decode(&input[consumed..]) {
            Decoded::Incomplete => return (consumed, Halt::NeedsInput),
            Decoded::Request(request, bytes) => {
                consumed += bytes;
                match service.call(local, now, request, reply) {
                    CallOutcome::Replied(Flow::Continue) => {}
                    CallOutcome::Replied(Flow::ClosedByClient) if consumed == input.len() => {
                        return (consumed, Halt::ClosingByClient);
                    }
                    CallOutcome::Replied(Flow::Close | Flow::ClosedByClient) => {
                        return (consumed, Halt::Closing);
                    }
                    CallOutcome::Needs(job) => return (consumed, Halt::Needs(job)),
                }
            }
        }
    }
}
