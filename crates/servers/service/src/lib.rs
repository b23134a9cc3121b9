//! The behaviour of servers, independent of how they wait.
//!
//! A request/response service is a [`Codec`] (bytes → requests) and a [`Service::call`] (a request
//! → a reply). Three [`style`]s turn these two into a connection. Each style is written once, as
//! the loop that a person would write. A [`Program`] is anything that has all three forms: the
//! shared services through [`ServiceProgram`], and the [`by_hand`] programs that they are compared with.
//!
//! Nothing here opens a socket or a file, starts a thread or reads a clock: streams and times are
//! arguments.

pub mod admission;
pub mod by_hand;
pub mod double;
pub mod hash;
pub mod hello;
pub mod http;
pub mod http2;
pub mod hub;
pub mod limited_log;
pub mod operators;
mod program;
pub mod prometheus;
mod service;
pub mod style;
pub mod tls;
pub mod tls_engine;

pub use program::{Program, ServiceProgram};
pub use regatta_engine::{Flow, Job, Limits, Never, Now, Session, SessionFactory};
pub use service::{CallOutcome, Codec, Decoded, Halt, Locals, REPLY_FULL, Service, answer};
