//! The agent: runs load processes on its machine for a leader, and kills them when the leader is gone.
//!
//! It sends no requests itself. It relays orders and reports, answers clock pings, and keeps the lease, so
//! a saturated load does not silence it.

mod from_leader;
mod outbox;
mod reports;
mod site_thread;
mod state;
mod stdio;

pub(crate) use state::MOST_PROCESSES;
pub use stdio::agent;
