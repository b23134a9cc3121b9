//! A simulator of engines. It runs many short histories of a server without sockets, threads or
//! clocks.
//!
//! A history is a function of its number. It has a few clients that send requests cut anywhere,
//! read slowly or not at all, half-close, reset and vanish. It has full buffers, a driver that
//! reports readiness (like epoll) or completions (like io_uring), jobs that finish late and in any
//! order, letters between cores, and in some histories a stop. The output to each peer is compared
//! with an independent model ([`Scenario`]). Every connection must end in time and for a valid
//! reason (`check.rs`), except connections to other servers that may stay open.
//!
//! [`assert_holds`] runs many histories and prints the number of the first one that fails. With
//! `SIMULATION_SEED=<number>` it runs only that history and prints its events.

mod check;
mod coverage;
mod driver;
mod fault;
mod history;
mod line;
mod network;
mod peer;
mod random;
mod run;
mod scenario;
mod station;
mod wire;
mod world;

pub use coverage::{Coverage, VISITS, Visit};
pub use fault::Fault;
pub use random::Random;
pub use run::{Failure, assert_finds, assert_holds, run};
pub use scenario::{Expected, Scenario, same};
