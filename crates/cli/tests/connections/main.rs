//! Guarantees of the I/O models for their connections, tested from outside: steady readers get every
//! reply, silent clients are closed in time, closing loses no replies, a stop closes all connections,
//! and the requests of one client do not block others.
//!
//! `REGATTA_LONG=1` runs the tests of slow and silent readers with the default limits instead of
//! short ones. They then take about five minutes (`scripts/acceptance slow-readers`).

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
