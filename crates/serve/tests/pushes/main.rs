//! A small service whose sessions push to each other, over real sockets, on every model that can run
//! it except `cluster`, which cannot fork a process with several threads.

mod chat;
#[path = "../common/client.rs"]
mod client;
mod ends;
mod idle;
mod order;
mod refusals;
mod server;
mod slow;
mod stops;
mod ticks;
mod upgrade;

/// Maximum time to wait for anything in these tests.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);
