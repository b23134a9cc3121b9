//! Frames (RFC 9113, sections 4 and 6).

mod header;
mod parts;
pub mod write;

pub use header::{Header, Kind, flag};
pub(crate) use parts::{fragment, split_padding, word};

/// The smallest value of SETTINGS_MAX_FRAME_SIZE, in bytes, and its value at the start of a connection.
pub const MIN_MAX_SIZE: u32 = 1 << 14;

/// The largest value of SETTINGS_MAX_FRAME_SIZE, in bytes.
pub const MAX_MAX_SIZE: u32 = (1 << 24) - 1;
