//! The server end of a connection.
//!
//! [`Server`] is the state machine: [`Server::next`] for what is received, [`Server::respond`] and
//! [`Server::drain`] for what is sent. Responses are field blocks that [`hpack::Encoder`] has written without
//! insertions, so the client's table stays empty and a block can be sent any number of times.
//!
//! [`hpack::Encoder`]: crate::hpack::Encoder

mod answered;
mod event;
mod notice;
mod pending;
mod receive;
mod request;
mod respond;
mod section;
mod state;

pub use crate::connection::{
    config::{Config, OutOfRange},
    limits::{MAX_BLOCK, MAX_CONTINUATIONS, MAX_FRAME, MAX_IDLE_FRAMES},
};
pub use event::{Event, Request};
pub use respond::Response;
pub use state::Server;

/// Maximum number of streams that the client resets, or that are reset because of what it sends, minus the
/// number of complete responses: such streams cost a server work, but do not count as open (CVE-2023-44487
/// and CVE-2025-8671).
pub const MAX_RESETS: u32 = 1000;
