//! RESP, what Redis speaks, versions 2 and 3, both ends
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! The server end is [`Commands`]: bytes → commands, each with its arguments and its bytes as they
//! came, so that they can be forwarded unchanged. The client end is [`Replies`], which finds where
//! replies end without looking into them, and [`Value`], which reads one. Nothing is copied.
//!
//! Both ends are incremental: what was searched once is not searched again, so a command of a million
//! arguments that arrives in many pieces costs what it costs in one.

mod command;
mod line;
mod reply;
mod value;

pub use command::{Args, Command, CommandLimits, Commands, write_bulk, write_command};
pub use reply::{Found, Replies};
pub use value::Value;

/// Deepest nesting of a reply. Redis nests a handful of levels.
pub const MAX_NESTING: usize = 64;

/// Why bytes are not RESP. Nothing behind them can be trusted: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(
    /// As Redis says it, behind `ERR Protocol error: `.
    pub &'static str,
);
