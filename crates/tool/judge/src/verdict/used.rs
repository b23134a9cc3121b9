//! How busy a side was.

use regatta_record::SideUsed;

/// Fraction of its CPUs from which a side counts as busy. Below 1, because with 64 connections the
/// leanest server and the leanest load each use 0.98 of a core: both sleep for a moment whenever
/// they have overtaken the other. A CPU also serves its timer and the kernel's threads.
pub const BUSY: f64 = 0.90;
/// Share of the window from which a polling load was descheduled for too long.
const AWAY: f64 = 0.2;

/// Share of its CPUs' time that a side waited for another program from which its latencies are not
/// its own. Higher than the limit of steal, because the kernel's own threads take a few percent
/// even on an otherwise quiet machine.
pub const WAITED: f64 = 0.05;

/// How busy a side was: the fraction of its CPUs that it used, and their number.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// CPU time over (window × CPUs).
    pub fraction: f64,
    /// CPUs that it had.
    pub cpus: u32,
    /// Share of one CPU that its busiest thread used in the window; `None` if not known.
    pub busiest_thread: Option<f64>,
    /// Share of its CPUs spent polling with nothing to do; not part of `fraction`.
    pub spun: f64,
    /// Share of its CPUs' time that it waited for another program, at least; `None` if not known.
    pub waited: Option<f64>,
}

impl Used {
    /// Returns whether it could do no more: all of its CPUs were busy, or one of its threads was
    /// always busy (then more CPUs do not help).
    pub fn is_busy(self) -> bool {
        self.fraction >= BUSY || self.busy_thread().is_some()
    }

    /// The share of its busiest thread, if that thread is busy and the CPUs together are not.
    pub fn busy_thread(self) -> Option<f64> {
        self.busiest_thread.filter(|share| *share >= BUSY && self.fraction < BUSY)
    }

    /// Returns whether it was not busy, but took all the CPU time that others left it. A polling
    /// side takes that time even with nothing to do. But it was descheduled while replies arrived;
    /// if that was often, the rate is the load's own limit.
    pub fn is_starved(self) -> bool {
        let waited = self.waited.unwrap_or(0.0);
        let wanted = self.fraction + waited;
        let at_work = waited >= WAITED && wanted >= BUSY;
        let away = waited >= AWAY && wanted + self.spun >= BUSY;
        !self.is_busy() && (at_work || away)
    }

    /// What a verdict says of it.
    pub(super) fn seen(self) -> SideUsed {
        let Used { fraction, cpus, waited, .. } = self;
        SideUsed { busy: fraction, cpus, busy_thread: self.busy_thread(), waited }
    }
}
