//! Guarantees of the I/O models for their connections, tested from outside: steady readers get every
//! reply, silent clients are closed in time, closing loses no replies, a stop closes all connections,
//! and the requests of one client do not block others.

mod closing;
mod files;
mod jobs;
mod places;
mod slow_readers;
mod stopping;
mod timeouts;
