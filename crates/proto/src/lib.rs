//! Protocols as pure functions and state machines: from bytes to values, and back.
//!
//! Nothing here owns a socket, a clock or a thread. *Incomplete* is a result, never an error.

mod block;
pub mod http1;
pub mod line;
pub mod resp;
pub mod websocket;
