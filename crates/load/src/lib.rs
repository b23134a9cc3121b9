//! The load: asks a server, checks every reply, and counts.
//!
//! [`run`] carries out a [`Plan`], usually in closed loop: every connection keeps `pipeline`
//! requests outstanding and sends as many again as were answered. In open loop ([`Drive::Open`])
//! requests go out when they are due, on connections in turn, and latency counts from then, in three
//! parts: *wait* (for a free connection), *lag* (until the write), *service* (until the reply); what
//! became of every request that was due stands in [`OpenTally`]. In a burst every connection sends
//! what it has to and closes. The replies to all requests are known in advance, so checking is one
//! comparison of memory; only those that a workload file describes by their beginning or by a regular
//! expression are looked at line by line. Phases: connect all → warm up → measure → stop sending and
//! await what is owed → close; all threads change phase together.
//!
//! A reply counts as come when a load thread reads it. One that has no CPU reads late: what it lacks
//! then stands in *service* and *wait* and not in *lag*; [`Tally::load_run_delay_ns`] tells.
//!
//! A wrong reply ends the run and is told whole ([`Tally::first_wrong`]); lost connections are
//! counted and opened again after a pause. What the numbers mean is the design's `method`, rules
//! 1, 5 and 6.
//!
//! Its event loop is its own, not the servers': a bug in one would hide in the other.

mod arrivals;
mod clock;
mod connection;
mod director;
mod edges;
mod held;
mod histogram;
mod leads;
mod limits;
mod open_tally;
mod operations;
mod passing;
mod plan;
mod poller;
mod processes;
mod run;
mod run_delay;
mod schedule;
mod sends;
mod shared;
mod slow;
mod socket;
mod source;
mod tally;
mod tls;
mod worker;

pub use edges::{Edges, SoFar};
pub use open_tally::OpenTally;
pub use plan::{Error, Plan, Until, WarmUp};
pub use processes::{Processes, Split, load_process, load_process_in, run_in_processes};
pub use regatta_record::{Arrivals, Burst, Drive};
pub use run::{Progress, run, run_in};
pub use shared::Phase;
pub use slow::{SlowPlan, SlowProgress, SlowTally, run_slow};
pub use tally::Tally;
pub use tls::{Roots, Tls, TlsError};
