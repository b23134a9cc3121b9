//! The memory that a message takes when it is decoded. A message of 4 MiB with many small messages inside takes
//! more than 1 GiB, so a message is refused before it is decoded.

use std::fmt;

/// Number of bytes in a unit of costs.
const UNIT: u64 = 64;

/// Memory of a decoded message, in units of 64 bytes: an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cost(pub u64);

impl Cost {
    /// That of a number, a text, or the default of a field.
    pub const SCALAR: Cost = Cost(1);

    /// That of a message or an entry of a map, without its fields.
    pub const MESSAGE: Cost = Cost(16);

    /// What an expected message may cost, or one to send.
    pub const MOST: Cost = Cost::of_bytes(256 << 20);

    pub const fn of_bytes(bytes: u64) -> Cost {
        Cost(bytes / UNIT)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", (self.0 * UNIT) >> 20)
    }
}
