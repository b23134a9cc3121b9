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

mod connection;
mod core;
mod counter;
mod engine;
mod job;
mod memory;
mod pushes;
#[cfg(feature = "simulator")]
pub mod simulator;

pub use connection::{
    conn::{Conn, Side},
    flow::Flow,
    limits::Limits,
    link::{End, Socket, Status},
    progress::{Activity, Progress},
    slots::Slots,
    time::Now,
};
pub use core::{Core, Next};
pub use counter::Counter;
pub use engine::{Effects, Engine};
pub use job::{Job, JobId, Never, Task};
pub use memory::{Charge, Memory};
pub use pushes::{
    backlog::{Backlog, Bounds, Heard, Policy, PolicyCounts},
    letter::{Letter, LetterDecoder, MalformedLetter, Posted, Wire},
    push::{Push, RoomName},
    session::{Context, Post, Session, Start},
    sessions::Sessions,
};
