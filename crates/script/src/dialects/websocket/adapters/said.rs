//! What servers say, whatever their protocol.

use super::super::message::Payload;

/// Something that a server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It may be spoken to.
    Greeting,
    /// The member is subscribed.
    Joined,
    /// The request of this number on its connection is done, counted from 1; `None`: the oldest one.
    Done(Option<u64>),
    /// A copy of a broadcast.
    Copy(Payload),
    /// Nothing that is answered or counted.
    Aside,
    /// It wants to know whether the member is there.
    Asks,
}

/// What stands at the front of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Something that takes so many bytes.
    Said(Said, usize),
    /// The beginning of something.
    Part,
    /// Nothing that this protocol has, or nothing that was asked for.
    Unknown,
}

impl Next {
    /// What a message is as a whole.
    pub fn whole(said: Option<Said>, message: &[u8]) -> Next {
        said.map_or(Next::Unknown, |said| Next::Said(said, message.len()))
    }
}
