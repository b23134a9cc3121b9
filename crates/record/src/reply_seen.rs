//! What a contender's replies look like, beside being right.

use serde::{Deserialize, Serialize};

/// A reply of a contender, as one request got it that was no part of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplySeen {
    /// Its length, head and content, in bytes.
    pub bytes: u64,
    /// Whether it says when it was made (the field Date; RFC 9110, 6.6.1, asks servers with a clock for
    /// it).
    pub has_date: bool,
}
