//! The state of an open stream.

use super::event::Stream;
use crate::connection::streams::Slot;

/// What only a client knows about a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exchange {
    pub place: u32,
    /// Bytes of the request's content that are not sent yet.
    pub unsent: u64,
    /// Whether the final head of the response has arrived.
    pub has_head: bool,
    /// Number of interim responses.
    pub interim: u8,
}

impl Slot<Exchange> {
    /// The stream as the caller knows it.
    #[inline]
    pub fn stream(&self) -> Stream {
        Stream { id: self.id, place: self.exchange.place }
    }
}
