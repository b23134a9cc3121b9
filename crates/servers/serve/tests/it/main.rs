//! Servers over real sockets on every model, and the memory of a connection.

mod client;
mod engines;
mod models;
mod pushes;
mod server;
mod state;

/// Whether each of these tests runs alone on the machine.
const IS_ALONE: bool = false;

/// Maximum time to wait for anything in these tests.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
