//! The error of counts that do not match.

/// Counts that cannot be merged, or that contradict each other: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(pub(crate) String);
