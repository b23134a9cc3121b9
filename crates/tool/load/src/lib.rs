//! The load generator: sends requests to a server, checks every reply, and counts.
//!
//! [`run`] carries out a [`Plan`], usually in a closed loop: every connection keeps `pipeline`
//! requests outstanding and sends one more for each reply. In an open loop ([`Drive::Open`]),
//! each request is sent when it is due, on the connection that has been free longest. Its latency
//! counts from the due time and has three parts: *wait* (for a free connection), *lag* (until the
//! write) and *service* (until the reply). [`OpenTally`] records the outcome of every request that
//! was due. In a burst, every connection sends a fixed number of requests and closes.
//!
//! If all replies of a workload are known to the byte, checking one is a single memory comparison. All
//! others are parsed and checked by the workload's dialect.
//!
//! The phases are: open all connections → warm up → measure → stop sending and drain → close. All
//! threads change phase together. A load of a number of requests and a burst have no warm-up, and
//! usually open their connections while they measure.
//!
//! A reply counts as received when a load thread reads it. A thread that has no CPU reads late; that
//! delay appears in *service* and *wait*, not in *lag*. [`run_delay_ns`](regatta_record::Counted::run_delay_ns) measures it.
//!
//! A wrong reply ends the run, unless errors are tolerated, and is reported in full
//! ([`Tally::first_wrong`]). Lost connections are counted, and reopened after a pause (not in a burst).
//!
//! The load has its own event loop and does not share the servers': a shared bug would stay hidden.
//!
//! # Where things are
//!
//! - `plan`: what is asked of a load; `error`: why it has no result. Nothing there performs I/O.
//! - `running`: the threads of a load, and who leads them through the phases.
//! - `processes`: a load of several processes.
//! - `lane`: a load that is driven in slices, for duels.
//! - `open_loop`: when requests are due, and what became of each. The loop itself is a drive of a worker thread.
//! - `sockets`: connections.
//! - `counts`: what is counted, and how it becomes a result.
//! - `slow`: clients that test whether they can block a server.

mod clock;
mod counts;
mod error;
mod histogram;
mod lane;
mod open_loop;
mod plan;
mod processes;
mod run_delay;
mod running;
mod slow;
mod sockets;

pub use counts::tally::Tally;
pub use error::Error;
pub use lane::{Compiled, Lane, Over, SliceCounts, SliceLatency, SliceOperation};
pub use open_loop::open_tally::OpenTally;
pub use plan::{Node, Plan, Split, Until, WarmUp};
pub use processes::{
    Ask, ChildProcesses, Crew, Division, Heard, LoadProcessConfig, Merged, Order, Watch,
    load_process, load_process_dialect, run_by_crew, run_in_processes, wire,
};
pub use regatta_record::{Arrivals, Burst, Drive, SecondCounted, Stage};
pub use running::{
    observer::{LoadObserver, Moment, WarmUpProgress},
    orders::SliceKind,
    run::{Progress, run, run_dialect},
    shared::Phase,
};
pub use slow::{SlowPlan, SlowProgress, SlowTally, run_slow};
pub use sockets::{
    limits::{most_connections, most_connections_of_process},
    tls::{Roots, Tls, TlsError},
};
