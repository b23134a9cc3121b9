//! Thin, safe wrappers of the system calls that servers need: to wait for readiness, for sockets,
//! processes and signals. They contain no policy.
//!
//! `regatta-serve` decides what a server does on a readiness event, a full descriptor table or a
//! signal. This crate only makes the calls.

pub mod epoll;
pub mod fork;
pub mod limit;
pub mod net;
pub mod poll;
pub mod queue;
mod readiness;
pub mod select;
pub mod shared;
pub mod signal;
pub mod timer;
pub mod uring;
pub mod wake;

pub use readiness::{Event, Interest, Readiness};
