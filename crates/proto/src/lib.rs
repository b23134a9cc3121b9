//! Protocols as pure functions and state machines: bytes in, meaning out, and back.
//!
//! Nothing here owns a socket, a clock or a thread. *Incomplete* is an answer, never an error.

mod block;
pub mod http1;
pub mod line;
pub mod resp;
pub mod websocket;
