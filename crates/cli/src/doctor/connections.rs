//! How many connections the bundled races open.

/// Connections of the quick race; with fewer no bundled race can be held.
pub const FEWEST_CONNECTIONS: u64 = 64;
/// Connections that the bundled burst opens at once.
pub const BURST: u64 = 5_000;
/// The most connections that a bundled race holds.
pub const MOST_CONNECTIONS: u64 = 19_000;
