//! The interval in which an operation happened, as its client saw it.

use crate::time::Nanos;

/// The interval from the call of an operation to its reply, by a clock that all clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Time of the call, or earlier.
    pub call: Nanos,
    /// Time of the reply, or later; [`Span::NEVER`] without a reply.
    pub end: Nanos,
}

impl Span {
    /// The end of an operation whose reply never arrived.
    pub const NEVER: Nanos = Nanos::MAX;
}
