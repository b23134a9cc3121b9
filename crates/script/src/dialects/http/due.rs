//! What a reply is checked against, beside its own bytes.

use super::expected::{Digest, Expected};
use crate::time::Nanos;
use std::cell::Cell;

/// What a reply is checked against.
#[derive(Clone, Copy)]
pub(super) struct Due<'a> {
    pub expected: &'a Expected,
    pub text: &'a [u8],
    /// The moment at which it comes.
    pub now: Nanos,
    /// How long ago it may have been sent at most: until then nothing was read of its connection, or its
    /// request was not sent yet.
    pub waited: Nanos,
    /// This machine's time of day.
    pub wall: fn() -> Nanos,
    /// A wrong reply is read to its end all the same.
    pub tolerates: bool,
    /// Where the content is a digest: which.
    pub answer: &'a Cell<Digest>,
}
