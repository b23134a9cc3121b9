//! Protocols as pure functions and state machines: from bytes to values, and back.
//!
//! Nothing here owns a socket, a clock or a thread. *Incomplete* is a result, never an error.
//!
//! # Example
//!
//! ```
//! use regatta_proto::{line::{Split, split}, resp::Value};
//!
//! assert_eq!(split(b"21\r\nrest"), Split::Line { line: b"21", consumed: 4 });
//! assert_eq!(split(b"21"), Split::Incomplete);
//! assert_eq!(Value::read(b"$5\r\nhello\r\n"), Some((Value::Bulk(b"hello"), 11)));
//! ```

mod block;
pub mod http1;
pub mod line;
pub mod resp;
pub mod websocket;
