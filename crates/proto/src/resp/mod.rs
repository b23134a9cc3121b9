//! RESP, the protocol of Redis, versions 2 and 3, client and server
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! The server side is [`Commands`]: bytes → commands, each with its arguments and its original
//! bytes, which can be forwarded unchanged. The client side is [`Replies`], which finds where
//! replies end without parsing their contents, and [`Value`], which parses one. Nothing is copied.
//!
//! Both sides are incremental: only an incomplete line is searched again, so a command of a million
//! arguments costs the same in many pieces as in one.

mod command;
mod line;
mod reply;
mod value;

pub use command::{Args, Command, CommandLimits, Commands, write_bulk, write_command};
pub use reply::{Found, Replies};
pub use value::Value;

/// Maximum nesting of a reply. Redis nests a few levels.
pub const MAX_NESTING: usize = 64;

/// Why bytes are not RESP. Later bytes cannot be trusted, so the connection must close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(
    /// What is wrong. For commands, the text that follows `ERR Protocol error: ` in the reply, in
    /// most cases in the wording of Redis.
    pub &'static str,
);
