//! The tests that take long, that need much of the machine, or that compare its timings: run on a quiet machine,
//! with `cargo test --release -p regatta-cli --test full`.

mod action;
mod agents;
mod answers;
mod attackers;
mod beside;
mod capacity;
mod conformance;
mod docs;
mod hub;
mod killed;
mod kills;
mod lab;
mod processes;
mod scoreboard;
mod server_machine;
mod shard;
mod slow_bodies;
mod slow_heads;
mod slow_readers;
mod soak;
#[path = "../support/mod.rs"]
mod support;
mod truth;
mod warm_ups;
