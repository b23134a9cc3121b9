//! Measures servers whose sessions push to each other: memory, CPU and delays, each alone on the machine. Part
//! of `scripts/test --all`; alone: `cargo test -p regatta-serve --test full`.

#[path = "../it/client.rs"]
mod client;
mod memory;
#[path = "../it/models.rs"]
mod models;
#[allow(dead_code, reason = "the other tests use more of it")]
mod pushes;
#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../it/server.rs"]
mod server;

/// Whether each of these tests runs alone on the machine.
const IS_ALONE: bool = true;

/// Maximum time to wait for anything in these tests.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
