//! The three ways to write a server, each once.

pub mod asynchronous;
pub mod callback;
pub mod sequential;

pub use callback::{Connection, Session};
pub use sequential::Stream;
