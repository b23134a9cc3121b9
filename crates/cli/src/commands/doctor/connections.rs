//! Numbers of connections in the bundled races.

/// Connections of the quick race, which runs by default.
pub const FEWEST_CONNECTIONS: u64 = 64;
/// Connections that the bundled burst opens at once.
pub const BURST: u64 = 5_000;
/// The largest number of open connections in a bundled race.
pub const MOST_CONNECTIONS: u64 = 19_000;
