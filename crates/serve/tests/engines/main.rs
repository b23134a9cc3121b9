//! An engine without sessions, on every model that runs engines, over real sockets.
//!
//! The relay itself, and tests of each of its events, are in `regatta-engine` (`tests/relay`).

#[path = "../common/client.rs"]
mod client;
#[allow(dead_code)] // some items are for the tests with a manual driver
#[path = "../../../engine/tests/relay/relay.rs"]
mod relay;
mod relayed;
mod server;
mod turns;
mod upstream;

/// Maximum time to wait for anything in these tests.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(30);
