//! The error of counts that do not fit together.

/// Counts that cannot be merged, or that contradict themselves: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unlike(pub(crate) String);
