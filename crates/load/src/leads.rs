//! Who decides when a load goes from one phase to the next. The first load thread of a process asks
//! once per turn of its loop.

use crate::clock::Nanos;

/// Leads the load threads of a process.
pub(crate) trait Leads: Send {
    /// When it wants to be asked next, at the latest.
    fn next_look(&self) -> Nanos;

    /// Decides whether the phase is over, and sets the next one.
    fn turn(&mut self, now: Nanos);
}
