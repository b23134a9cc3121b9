//! What one core of a server does, apart from how it waits: engines, and the life of a connection.
//!
//! An [`Engine`] is what one core serves: bytes of connections in, bytes and effects out. It owns no
//! socket, no clock and no thread. [`Sessions`] is the engine of servers whose connections mostly
//! stand alone; a proxy, whose connections belong together, is an engine of its own.
//!
//! A [`Core`] puts an engine and the life of its connections together: when a connection reads,
//! writes, times out, lingers, drains and closes is decided there, once, for every way of waiting.
//! A *driver* owns the sockets. It reports what happened to them and carries out what [`Core::next`]
//! says. The reactor and the ring of `regatta-serve` are such drivers, and so is the simulator of
//! this crate (feature `simulator`), which needs neither sockets nor clocks.

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
pub use letter::{Letter, LetterDecoder, MalformedLetter, Wire};
pub use limits::Limits;
pub use link::{End, Socket, Status};
pub use progress::{Activity, Progress};
pub use push::{Push, RoomName};
pub use session::{Context, Post, Session, Start};
pub use sessions::Sessions;
pub use slots::Slots;
pub use time::Now;
