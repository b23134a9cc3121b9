//! What a life adds to a round: the slices in which the load drove this contender, while the others of its
//! heat were alive and frozen.

use crate::{MachineUse, NetworkUse};
use serde::{Deserialize, Serialize};

/// One start of a contender, together with the others of its heat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// Its counted slices, in order.
    pub slices: Vec<Slice>,
    /// The time in which it ran without load, and its CPU time meanwhile, if this life had an idle slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleSlice>,
    /// Its CPU time in the slices of the other contenders, nanoseconds: close to zero if it was frozen then.
    #[serde(default)]
    pub aside_ns: u64,
    /// Its CPU time while the load connected to it, before warm-up and slices, nanoseconds.
    #[serde(default)]
    pub connecting_ns: u64,
    /// Its CPU time over its whole life; `None` if the kernel did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeLife>,
    /// Time in which it was thawed for its counted slices, nanoseconds of its machine's clock. It is longer than they
    /// are, by the messages to that machine. Absent: it ran on the load's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thawed_ns: Option<u64>,
    /// CPU of its whole machine while it was thawed for its counted slices, except that of the load. Absent: it ran on
    /// the load's machine, or the kernel there does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineUse>,
    /// The same before the life, while no contender ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_alone: Option<MachineUse>,
    /// What the network to it carried in its counted slices. Absent: it ran on the load's machine, or this is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
    /// Time from the begin of its start to the end of its stop, without the slices of others, in nanoseconds:
    /// what another life costs.
    #[serde(default)]
    pub lasted_ns: u64,
    /// Why it was not frozen in the slices of the others, as a sentence. Absent: it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_frozen: Option<String>,
}

/// CPU time of a contender over one life, over all loads of that life, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeLife {
    /// From the start of its processes to their end.
    pub cpu_ns: u64,
    /// The part until it was frozen for the first time: its start.
    pub start_ns: u64,
    /// The part in slices, those of warm-ups included.
    pub driven_ns: u64,
}

impl WholeLife {
    /// The part neither in its start nor in slices: while loads connected, between slices, and until its exit.
    pub fn outside_ns(&self) -> u64 {
        self.cpu_ns.saturating_sub(self.start_ns).saturating_sub(self.driven_ns)
    }
}

/// A slice: the load drove this contender alone, and waited for every reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// The block, from 1: one slice of each contender of the heat.
    pub block: u32,
    /// The position in the order of the block, from 0.
    pub position: u32,
    /// Planned length as a multiple of the usual one: 1, or [`Slice::LONG`].
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub stretch: u32,
    /// From the first send to the last reply, nanoseconds.
    pub ns: u64,
    /// CPU time of all processes of the contender, read while it was frozen, nanoseconds.
    pub cpu_ns: u64,
    /// Verified operations of the kind that costs are per.
    pub count: u64,
    /// CPU time of the load without its polling, nanoseconds.
    pub load_cpu_ns: u64,
    /// CPU time of the machine beyond that of the contender and of the load, nanoseconds; `None` if the
    /// kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_ns: Option<u64>,
    /// Median latency, nanoseconds; `None` without a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
}

impl Slice {
    /// How much longer a long slice is: one block in sixteen has them, to show whether the length matters.
    pub const LONG: u32 = 4;

    /// CPU time per operation, nanoseconds; `None` if it is zero or there was no operation.
    pub fn cost_ns(&self) -> Option<f64> {
        (self.count > 0 && self.cpu_ns > 0).then(|| self.cpu_ns as f64 / self.count as f64)
    }
}

/// A slice without load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleSlice {
    /// Its length, nanoseconds.
    pub ns: u64,
    /// CPU time of the contender, nanoseconds.
    pub cpu_ns: u64,
}

fn one() -> u32 {
    1
}

fn is_one(stretch: &u32) -> bool {
    *stretch == 1
}
