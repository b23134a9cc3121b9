//! Codec + call, and the one step that all three styles share: answering what is buffered.

use crate::{Flow, Job, Now};

/// The server's end of a protocol: finds requests at the front of a buffer.
pub trait Codec: Default + Send + 'static {
    /// A request, borrowing from the buffer. Malformed input is a request too: it has a reply.
    type Request<'a>;

    /// Bytes of the longest request: a buffer of this size always makes progress.
    const MAX_FRAME: usize;

    /// Decodes the request at the front of `input`. Called again with a longer buffer after
    /// [`Decoded::Incomplete`].
    fn decode<'a>(&mut self, input: &'a [u8]) -> Decoded<Self::Request<'a>>;
}

/// What stands at the front of a buffer.
pub enum Decoded<R> {
    /// A whole request and how many bytes it takes.
    Request(R, usize),
    /// The beginning of one, or nothing.
    Incomplete,
}

/// What came of a call.
#[derive(Debug)]
pub enum Called<J> {
    /// The reply is appended.
    Replied(Flow),
    /// The reply needs more than the request. Nothing is appended yet; the replies to later
    /// requests of the connection come after this one's.
    Needs(J),
}

impl<J> From<Flow> for Called<J> {
    #[inline]
    fn from(flow: Flow) -> Self {
        Called::Replied(flow)
    }
}

/// What a server does with a request. One value serves one connection and may keep its state; it
/// is cloned from the service that was started.
pub trait Service: Clone + Send + Sync + 'static {
    /// Its protocol.
    type Codec: Codec;

    /// What its replies may need; [`Never`](crate::Never) if a request is all that they need.
    type Job: Job;

    /// What its connections may share within a thread: caches, never meaning.
    type Local: Default + Send + 'static;

    /// Appends the reply to `request` to `reply`, or says what it needs for that.
    fn call(
        &mut self,
        local: &mut Self::Local,
        now: Now,
        request: <Self::Codec as Codec>::Request<'_>,
        reply: &mut Vec<u8>,
    ) -> Called<Self::Job>;
}

/// Where a thread keeps what its connections share ([`Service::Local`]).
pub trait Locals {
    /// Takes it out, or makes it; [`Locals::give_back`] follows soon, without a wait in between.
    fn take<L: Default + Send + 'static>(&self) -> Box<L>;

    /// Puts it back.
    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>);
}

/// Bytes of replies from which on they are written before the next request is answered. With the
/// size of a read this bounds what a connection can hold.
pub const REPLY_FULL: usize = 64 * 1024;

/// Why [`answer`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt<J> {
    /// No whole request is left: more input is needed.
    Hungry,
    /// [`REPLY_FULL`] is reached: write, then answer the rest.
    Full,
    /// The service ends the connection.
    Closing,
    /// The next reply needs this. What follows may be answered meanwhile.
    Needs(J),
    /// It ends by the client's wish, and nothing of the input is left.
    Parting,
}

/// Answers the requests in `input` one after the other, appending to `reply`. Gives the number of
/// bytes consumed and why it stopped.
#[inline]
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
            Decoded::Incomplete => return (consumed, Halt::Hungry),
            Decoded::Request(request, bytes) => {
                consumed += bytes;
                match service.call(local, now, request, reply) {
                    Called::Replied(Flow::Continue) => {}
                    Called::Replied(Flow::Part) if consumed == input.len() => {
                        return (consumed, Halt::Parting);
                    }
                    Called::Replied(Flow::Close | Flow::Part) => return (consumed, Halt::Closing),
                    Called::Needs(job) => return (consumed, Halt::Needs(job)),
                }
            }
        }
    }
}
