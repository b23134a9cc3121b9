//! The interface of a leader, which decides when a load enters the next phase. The first load thread of
//! a process calls it once per turn of its loop.

use crate::clock::Nanos;

/// Leads the load threads of a process.
pub(crate) trait Leads: Send {
    /// Latest time for the next call of [`Leads::turn`].
    fn next_check(&self) -> Nanos;

    /// Decides whether the current phase is over; if so, sets the next one.
    fn turn(&mut self, now: Nanos);
}
