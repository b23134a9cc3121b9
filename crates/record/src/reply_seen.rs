//! Properties of a contender's replies, apart from being correct.

use serde::{Deserialize, Serialize};

/// A reply of a contender to one request outside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplySeen {
    /// Its length, head and content, in bytes.
    pub bytes: u64,
    /// Whether it has a Date field (RFC 9110, 6.6.1, requires it of servers with a clock).
    pub has_date: bool,
}
