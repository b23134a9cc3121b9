//! Servers over real sockets on every model, and the memory of a connection.

mod client;
mod engines;
mod models;
mod pushes;
mod state;

/// Maximum time to wait for anything in these tests.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
