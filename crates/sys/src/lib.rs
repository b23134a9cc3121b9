//! The system calls that servers wait with: thin, safe, and without policy.
//!
//! What a server does with a readiness event, a full descriptor table or a signal is decided in
//! `regatta-serve`; here is only how the kernel is asked.

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
