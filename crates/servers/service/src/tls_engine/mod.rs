//! TLS around an engine: its clients connect over TLS, or it connects to other servers over TLS, or
//! both. rustls performs no I/O itself, so this runs on every model that runs engines.
//!
//! ```text
//!              TLS records                          plaintext
//!  driver ←──────────────────→ TlsEngine ─────────────────────────────→ Core of the engine
//!            outer connections   (TlsConn: rustls)   inner connections
//! ```
//!
//! [`TlsEngine`] is an engine for its driver, and a driver for the engine inside: it owns a
//! [`Core`](regatta_engine::Core) and carries out what that returns. So an engine needs no change for
//! TLS. An inner connection exists once the handshake of a client is over; one to a server is open
//! once its handshake is. Deadlines, idle time, graceful shutdown and the check that peers still exist
//! are those of the outer connection.
//!
//! **Output** stays in the inner connection until the kernel has accepted everything before. Then at
//! most [`CHUNK`](connection::CHUNK) bytes of it are encrypted. They count as pending for the engine
//! until they are written. So a large reply is never encrypted as a whole, output of one turn leaves
//! in few records, and the limits of the engine hold as without TLS.
//!
//! # Where things are
//!
//! - `config`: what to configure; `state`: the engine; `engine`: what it does at each event.
//! - `connection`: the TLS of one connection; `table`: all connections.
//! - `handshake`: new connections, and input; `output`: output, and what the engine inside has changed.
//! - `failure`: failures of TLS, in words.

mod config;
mod connection;
mod engine;
mod failure;
mod handshake;
mod output;
mod state;
mod table;

pub use config::{Current, Refused, Servers, Tls, Upstreams};
pub use failure::words as failure_words;
pub use state::TlsEngine;
