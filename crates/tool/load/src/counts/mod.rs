//! What a load thread counts, and how counts become a result.

pub(crate) mod operations;
pub(crate) mod seconds;
pub(crate) mod tally;
