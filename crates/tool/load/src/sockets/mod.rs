//! Connections: where from, how many, with TLS or without, and which of them are ready.

pub(crate) mod connection;
pub(crate) mod limits;
pub(crate) mod poller;
pub(crate) mod socket;
pub(crate) mod tls;
pub(crate) mod waker;
