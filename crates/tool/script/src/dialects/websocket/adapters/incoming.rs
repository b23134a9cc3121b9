//! Parsed messages of servers, for all adapters.

use super::super::message::Payload;

/// A message from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The server is ready for requests.
    Greeting,
    /// The member is subscribed.
    Subscribed,
    /// The request with this number on its connection, counted from 1, is done; `None` is the oldest
    /// pending request.
    Done(Option<u64>),
    /// A copy of a broadcast.
    Copy(Payload),
    /// A message that is neither answered nor counted.
    Ignored,
    /// The server checks that the member is alive, and expects an answer.
    Ping,
}

/// The result of parsing the front of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A message, and the number of bytes it takes.
    Incoming(Incoming, usize),
    /// An incomplete message.
    Part,
    /// Not a message of this protocol, or one that the load does not expect, e.g. an error.
    Unknown,
}

impl Next {
    /// The result for a frame that is a whole message.
    pub fn whole(incoming: Option<Incoming>, message: &[u8]) -> Next {
        incoming.map_or(Next::Unknown, |incoming| Next::Incoming(incoming, message.len()))
    }
}
