//! What every I/O model promises a connection, tested from outside: steady readers get every reply,
//! silent clients are closed in time, closing loses nothing, a stop ends everybody, and what one
//! client asks does not hold up the others.
//!
//! `REGATTA_LONG=1` runs the tests of slow and silent readers with the default limits instead of
//! short ones. They then take some five minutes (`scripts/acceptance slow-readers`).

mod bodies;
mod client;
mod closing;
mod files;
mod jobs;
mod places;
#[path = "../transcript/server_side.rs"]
mod server_side;
mod slow_readers;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod timeouts;
