//! A stage of a load: a time with a rate of its own.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A part of the window of an open loop, with its own rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its length, in nanoseconds.
    pub ns: u64,
    /// Requests per second, over all load threads.
    pub rate: NonZeroU32,
}
