//! Why what was counted cannot be put together.

/// What was counted cannot be put together, or contradicts itself: a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unlike(pub(crate) String);
