//! Engines that are no sessions, on every model that runs engines, over real sockets.
//!
//! The relay itself, and how it behaves event by event, is in `regatta-engine` (`tests/relay`).

#[path = "../common/client.rs"]
mod client;
#[allow(dead_code)] // some of it is for tests by hand
#[path = "../../../engine/tests/relay/relay.rs"]
mod relay;
mod relayed;
mod server;
mod turns;
mod upstream;

/// Longest wait for anything in these tests.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(30);
