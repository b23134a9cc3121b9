//! What servers do, apart from how they wait.
//!
//! A request/response service is a [`Codec`] (bytes → requests) and a [`Service::call`] (a request
//! → a reply). Three [`style`]s turn these two into a connection, each written once, each the loop
//! that a person would write. A [`Program`] is anything that has all three forms: the shared
//! services through [`Shared`], and the programs written [`by_hand`] that they are raced against.
//!
//! Nothing here opens a socket or reads a clock: streams and times are arguments.

pub mod by_hand;
mod clock;
pub mod double;
mod file;
pub mod hash;
pub mod hello;
pub mod http;
mod job;
mod limits;
mod program;
mod service;
mod slots;
pub mod style;

pub use clock::{Clock, Moment, StoppedAt, SystemClock};
pub use file::MAX_FILE;
pub use job::{Defer, Job, Never, run as run_job, run_apart as run_job_apart};
pub use limits::Limits;
pub use program::{Program, Shared};
pub use service::{Called, Codec, Decoded, Flow, Halt, REPLY_FULL, Service, answer};
pub use slots::{JobId, Slots};
