//! What a reply is checked against, in addition to its own bytes.

use super::expected::{Digest, Expected};
use crate::time::Nanos;
use std::cell::Cell;

/// What a reply is checked against.
#[derive(Clone, Copy)]
pub(super) struct Criteria<'a> {
    pub expected: &'a Expected,
    pub text: &'a [u8],
    /// When the reply arrived.
    pub now: Nanos,
    /// Upper bound on how long ago the reply was sent: until then, its connection was not read or its
    /// request not sent.
    pub waited: Nanos,
    /// This machine's time of day.
    pub wall: fn() -> Nanos,
    /// Whether a wrong reply is read to its end.
    pub tolerates: bool,
    /// The digest in the content, if the content is one.
    pub answer: &'a Cell<Digest>,
}
