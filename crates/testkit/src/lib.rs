//! What the tests of all crates share: deadlines, child processes, raw clients, small servers, input in pieces, and the turn of a test that
//! measures. Never part of a shipped program.

#[cfg(feature = "browser")]
pub mod browser;
pub mod child;
pub mod client;
pub mod deadline;
pub mod histories;
#[cfg(feature = "json")]
pub mod json;
pub mod machine;
pub mod malformed;
pub mod pieces;
pub mod port;
pub mod prerequisite;
pub mod server;
pub mod skip;

pub use skip::skip;

/// Whether the tests of the full tier run: `scripts/test --all` and `scripts/acceptance` set
/// `REGATTA_TESTS=full`.
pub fn is_full() -> bool {
    std::env::var_os("REGATTA_TESTS").is_some_and(|tier| tier == "full")
}

/// Returns how much a test does: for every change, or in the full tier.
pub fn by_tier<T>(every_change: T, full: T) -> T {
    if is_full() { full } else { every_change }
}
