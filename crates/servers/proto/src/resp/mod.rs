//! RESP, the protocol of Redis, versions 2 and 3, client and server
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! The server side is [`Commands`]: bytes → commands, each with its arguments and its original
//! bytes, which can be forwarded unchanged. The client side is [`Replies`], which finds where
//! replies end without parsing their contents, and [`Value`], which parses one. Nothing is copied.
//!
//! Both sides are incremental: only an incomplete length is searched again, so a command of a million
//! arguments costs the same in many pieces as in one.

mod command;
mod line;
mod reply;
mod value;

pub use command::{
    Args, Command, CommandLimits, Commands, ProtocolError, write_bulk, write_command,
};
pub use reply::{Found, Replies};
pub use value::Value;

/// Why bytes are not a reply. Later bytes cannot be trusted, so the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(
    /// What is wrong.
    pub &'static str,
);
