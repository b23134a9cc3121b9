//! The logic of one server core, independent of I/O: engines, and the lifecycle of connections.
//!
//! An [`Engine`] is what one core serves. It takes bytes from connections and returns bytes and
//! effects. It owns no socket, no clock and no thread. [`Sessions`] is the engine of servers whose
//! connections are mostly independent. A proxy, whose connections depend on each other, implements
//! its own engine.
//!
//! A [`Core`] combines an engine with the lifecycle of its connections. It decides when a
//! connection reads, writes, times out, lingers, drains and closes. These rules exist once, for
//! every I/O model. A *driver* owns the sockets: it reports their events to the core and carries
//! out what [`Core::next`] returns. The reactor and the ring of `regatta-serve` are such drivers.
//! So is the simulator of this crate (feature `simulator`), which needs neither sockets nor clocks.

mod backlog;
mod conn;
mod core;
mod counter;
mod engine;
mod flow;
mod job;
mod letter;
mod limits;
mod link;
mod memory;
mod progress;
mod push;
mod session;
mod sessions;
#[cfg(feature = "simulator")]
pub mod simulator;
mod slots;
mod time;
mod timers;

pub use backlog::{Backlog, Bounds, Heard, Policy, PolicyCounts};
pub use conn::{Conn, Side};
pub use core::{Core, Next};
pub use counter::Counter;
pub use engine::{Effects, Engine};
pub use flow::Flow;
pub use job::{Job, JobId, Never, Task};
pub use letter::{Letter, LetterDecoder, MalformedLetter, Posted, Wire};
pub use limits::Limits;
pub use link::{End, Socket, Status};
pub use memory::{Charge, Memory};
pub use progress::{Activity, Progress};
pub use push::{Push, RoomName};
pub use session::{Context, Post, Session, Start};
pub use sessions::Sessions;
pub use slots::Slots;
pub use time::Now;
