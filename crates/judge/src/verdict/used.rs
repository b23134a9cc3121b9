//! How busy a side was, and how that is written.

use std::fmt;

/// Fraction of its CPUs from which on a side counts as busy. Not 1: under 64 connections the
/// leanest server and the leanest load each use 0.98 of a core, since both sleep for a moment
/// whenever they have overtaken the other; and a CPU also serves its timer and the kernel's threads.
pub const BUSY: f64 = 0.90;
/// Share of the window from which on a load that polls was away for too long.
const AWAY: f64 = 0.2;

/// Share of the time of its CPUs that a side waited for another program, from which on latencies
/// are not its own. More than of steal, since the kernel's own threads take up to some percent on
/// a machine that is otherwise quiet.
pub const WAITED: f64 = 0.05;

/// How busy a side was: the fraction used of its CPUs, and how many these are.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// CPU time over (window × CPUs).
    pub fraction: f64,
    /// CPUs that it had.
    pub cpus: u32,
    /// Share of the window that its busiest thread used of one CPU; `None` where that is not known.
    pub busiest_thread: Option<f64>,
    /// The same of what it spent on polling with nothing to do, which is not in `fraction`.
    pub spun: f64,
    /// Share of the time of its CPUs that it waited for another program, at least; `None` if unknown.
    pub waited: Option<f64>,
}

impl Used {
    /// Whether it could do no more: all of its CPUs were busy, or one of its threads was busy all the time,
    /// which further CPUs cannot help.
    pub fn is_busy(self) -> bool {
        self.fraction >= BUSY || self.busy_thread().is_some()
    }

    /// The share of its busiest thread, where that is busy and the CPUs together are not.
    pub fn busy_thread(self) -> Option<f64> {
        self.busiest_thread.filter(|share| *share >= BUSY && self.fraction < BUSY)
    }

    /// Not busy, but took all the CPU that others left it. One that polls takes it with nothing to
    /// do as well; but answers that came while it waited found it away, and where that was long, the
    /// rate is its own.
    pub fn is_starved(self) -> bool {
        let waited = self.waited.unwrap_or(0.0);
        let wanted = self.fraction + waited;
        let at_work = waited >= WAITED && wanted >= BUSY;
        let away = waited >= AWAY && wanted + self.spun >= BUSY;
        !self.is_busy() && (at_work || away)
    }
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Used { fraction, cpus, .. } = self;
        match cpus {
            1 => write!(f, "{fraction:.2}")?,
            _ => write!(f, "{fraction:.2} of {cpus} CPUs")?,
        }
        match self.busy_thread() {
            Some(share) => write!(f, ", its busiest thread {share:.2} of one"),
            None => Ok(()),
        }
    }
}

pub(super) fn both(server: Used, load: Used) -> String {
    format!("server busy {server}, load {load}")
}

/// `3.2%`, `12%`.
pub(super) fn percent(fraction: f64) -> String {
    let decimals = usize::from(fraction < 0.0995);
    format!("{:.decimals$}%", fraction * 100.0)
}
