//! The client end of a connection.
//!
//! [`Client`] is the state machine: [`Client::open`], [`Client::start`], [`Client::claim`] and
//! [`Client::cancel`] for what is sent, [`Client::next`] for what is received.

mod event;
mod message;
mod notice;
mod prepared;
mod receive;
mod section;
mod slot;
mod state;

pub use crate::connection::{
    config::{Config, OutOfRange},
    limits::{MAX_BLOCK, MAX_CONTINUATIONS, MAX_FRAME, MAX_IDLE_FRAMES},
};
pub use event::{Event, Head, Stream};
pub use prepared::Prepared;
pub use state::{Client, NotStarted, Request};

/// Maximum number of interim responses (1xx) before a response.
pub const MAX_INTERIM: u8 = 16;
