//! The expectation of a reply, and the circumstances of its arrival.

use super::expected::{Digest, Expected};
use crate::time::Nanos;
use std::cell::Cell;

/// What a reply is checked against: an expectation of type `E`.
pub struct Criteria<'a, E = Expected> {
    pub expected: &'a E,
    /// The text that the reply is compared with.
    pub text: &'a [u8],
    /// When the reply arrived.
    pub now: Nanos,
    /// Maximum age of the reply: the time since its connection was last read or a request was issued on
    /// it, whichever was later.
    pub waited: Nanos,
    /// This machine's time of day.
    pub wall: fn() -> Nanos,
    /// Whether a wrong reply is read to its end.
    pub tolerates: bool,
    /// The digest in the content, if the content is one.
    pub answer: &'a Cell<Digest>,
}

impl<E> Clone for Criteria<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Criteria<'_, E> {}
