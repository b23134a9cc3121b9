//! What a load asks, and what must come back: from workload files and flags to the bytes of a run,
//! and from the bytes that come to right or wrong replies.
//!
//! A [`Workload`] is compiled into a [`Script`]: all exchanges of a run, seeded and laid out in
//! memory. A [`Cursor`] is the place of one connection in it, and checks what comes. Nothing here
//! owns a socket, a clock or a thread; time is an argument.

pub mod canned;
mod cursor;
pub mod hash_file;
pub mod http;
mod patterns;
mod script;
mod time;
mod workload;

pub use cursor::{Cursor, Wrong};
pub use http::{Checker, Place, Replies};
pub use script::Script;
pub use time::{Nanos, SECOND};
pub use workload::{TooLong, Workload, WorkloadError, WorkloadFile};
