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
//!
//! # Example
//!
//! An engine that answers in capitals, driven by hand: bytes in, bytes out.
//!
//! ```
//! use regatta_engine::{Conn, Core, Effects, Engine, Flow, Limits, Never, Next, Now, SocketProbe};
//! use std::time::Instant;
//!
//! struct Capitals;
//!
//! impl Engine for Capitals {
//!     type Job = Never;
//!     type Letter = Never;
//!
//!     fn opened(&mut self, _: Conn, _: &mut Effects<Self>) {}
//!
//!     fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
//!         bytes.make_ascii_uppercase();
//!         if let Some(out) = effects.out(conn) {
//!             out.extend_from_slice(bytes);
//!         }
//!     }
//!
//!     fn room(&mut self, _: Conn, _: &mut Effects<Self>) {}
//!
//!     fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
//!         effects.close(conn, Flow::Close);
//!     }
//!
//!     fn closed(&mut self, _: Conn, _: &mut Effects<Self>) {}
//! }
//!
//! /// What the kernel would say: the peer acknowledges everything, and has not ended.
//! struct Peer;
//!
//! impl SocketProbe for Peer {
//!     fn unacknowledged(&self, _: Conn) -> usize { 0 }
//!     fn is_readable(&self, _: Conn) -> bool { false }
//!     fn is_gone(&self, _: Conn) -> bool { false }
//!     fn has_ended(&self, _: Conn) -> bool { false }
//! }
//!
//! let now = Now { instant: Instant::now(), unix_s: 0 };
//! let mut core = Core::new(Capitals, Limits::default(), now);
//! let conn = core.accept();
//! core.received(conn, &mut *b"hello".to_vec());
//! assert!(matches!(core.next(conn, &Peer), Next::Write { .. }));
//! assert_eq!(core.output(conn), b"HELLO");
//! core.wrote(conn, 5);
//! assert_eq!(core.next(conn, &Peer), Next::Wait);
//! ```
//!
//! # Where things are
//!
//! - `engine`: the trait, and the effects of an engine.
//! - `core`: an engine with its connections, as a driver runs them; it asks for their timeouts (`Core::tick`).
//! - `drain`: when each client is closed if a stop is spread over a time.
//! - `connection`: one connection: lifecycle, limits, deadlines, order of replies.
//! - `pushes`: sessions, what they post to each other, and queues of slow consumers.
//! - `memory` and `counter`: limits over all connections; `connection::job`: work outside the loop.

mod connection;
mod core;
mod counter;
mod drain;
mod engine;
mod memory;
mod pushes;
#[cfg(feature = "simulator")]
pub mod simulator;

pub use connection::{
    conn::{Conn, Side},
    flow::Flow,
    job::{Job, JobId, Never, Task},
    limits::Limits,
    link::{ConnInterest, End, SocketProbe},
    output::OutputState,
    progress::{Activity, Progress},
    slots::Slots,
    time::Now,
};
pub use core::{Core, Next};
pub use counter::Counter;
pub use engine::{Effects, Engine, Posted};
pub use memory::{Charge, Memory};
pub use pushes::{
    backlog::{Backlog, Bounds, Policy, PolicyCounts, PushOutcome},
    letter::{Letter, LetterDecoder, MalformedLetter, Wire},
    push::{Push, RoomName},
    session::{Context, Post, Session, SessionFactory},
    sessions::Sessions,
    uplink::{RemoteOutcome, Ticket, Uplink, UplinkAct, UplinkTurn},
};
