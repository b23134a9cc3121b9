//! The CPU that a whole machine used over stretches of time.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// CPU that all CPUs of a machine together used: that of processes, of the kernel and of interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineUse {
    /// Number of stretches of time. The ends of each are read in steps of [`MachineUse::STEP_NS`].
    pub spans: u64,
    /// Their length, nanoseconds.
    pub ns: u64,
    /// CPU time, nanoseconds: that in which no CPU was idle or given to another guest of the hypervisor. A stretch
    /// without work may be below zero, by the steps.
    pub busy_ns: i64,
    /// CPU time in interrupts, nanoseconds. Most kernels sample it at timer ticks.
    pub interrupts_ns: u64,
    /// Of how many of the kernel's counters `busy_ns` is made, each of which is rounded by itself: those of idle CPUs, of
    /// CPUs that wait for a disk, and of stolen time, without those that never grew. 0 (absent): not known, at least one.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub counters: u8,
}

impl MachineUse {
    /// The step of the kernel's figures, nanoseconds (proc_stat(5): hundredths of a second).
    pub const STEP_NS: f64 = 1e7;

    /// So many stretches that are read from one counter have the same error of steps.
    pub fn rounded(&self) -> f64 {
        self.spans as f64 * f64::from(self.counters.max(1))
    }
}

impl AddAssign for MachineUse {
    fn add_assign(&mut self, other: MachineUse) {
        let MachineUse { spans, ns, busy_ns, interrupts_ns, counters } = other;
        self.spans += spans;
        self.ns += ns;
        self.busy_ns += busy_ns;
        self.interrupts_ns += interrupts_ns;
        self.counters = self.counters.max(counters);
    }
}
