//! What a load sends and which replies are correct: from workload files and flags to the bytes of a
//! run, and from received bytes to correct or wrong replies.
//!
//! A [`Workload`] is compiled into a [`Dialect`]: all exchanges of a run, seeded and laid out in
//! memory (a [`Script`]), and the checks of received bytes. A [`Cursor`] is the position of one
//! connection in the script. Nothing here owns a socket, a clock or a thread; time is an argument.
//!
//! Each folder of [`dialects`] is a protocol; no other code here depends on one.

mod cursor;
mod dialect;
pub mod dialects;
mod exact;
mod greeting;
pub mod hash_file;
pub mod history;
#[cfg(test)]
mod pieces;
mod protocol;
mod readiness_probe;
mod script;
mod sent;
mod slow;
mod text;
mod time;
mod workload;

pub use cursor::Cursor;
pub use dialect::{At, Dialect, Heard, Streamed, Turn, Unanswered};
pub use dialects::{Compiled, TooLong, Visitor, Workload};
pub use exact::Exact;
pub use greeting::Greeting;
pub use protocol::{
    Asks, Canned, CompileOptions, Destination, Protocol, ProtocolInfo, Pushes, Sample, Scheme,
    Speech, Version,
};
pub use readiness_probe::{Answer, ReadinessProbe};
pub use regatta_record::Operation;
pub use script::{Begin, Conversations, Script, TooLarge};
pub use slow::SlowRequest;
pub use text::{cut, printable};
pub use time::{Nanos, SECOND};
pub use workload::{
    disk::read_at_most,
    file::{FileText, WorkloadError},
};
