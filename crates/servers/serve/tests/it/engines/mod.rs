//! An engine without sessions, on every model that runs engines, over real sockets.
//!
//! The relay itself, and tests of each of its events, are in `regatta-engine` (`tests/it/relay`).

mod failing;
#[allow(dead_code)] // some items are for the tests with a manual driver
#[path = "../../../../engine/tests/it/relay/engine.rs"]
mod relay;
mod relayed;
mod turns;
mod upstream;
