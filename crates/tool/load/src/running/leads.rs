//! The interface of a leader, which decides when a load enters the next phase. The first load thread of
//! a process calls it once per turn of its loop. With several load processes, the leader's own loop also
//! calls its director.

use crate::clock::Nanos;

/// Leads the load threads of a process, or several processes.
pub(crate) trait Leads: Send {
    /// Latest time for the next call of [`Leads::turn`].
    fn next_check(&self) -> Nanos;

    /// Decides whether the current phase is over; if so, sets the next one.
    fn turn(&mut self, now: Nanos);
}
