//! What is asked of contenders, and of the machine that they run on. The answers are measurements: nothing here
//! decides.

use crate::site::ends::{Deaths, Stopped};
use regatta_record::{
    Asked, Carried, CpuSets, Fingerprint, LoadShape, Machine, MachineUse, RoleUsage, Server, Setup,
};
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, path::PathBuf};

/// What is asked of a contender.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Keep it from running.
    Freeze,
    /// Let it run.
    Thaw,
    /// The time of its machine's monotonic clock.
    Now,
    /// The CPU time of its roles since the last time.
    Laps,
    /// The CPU of its whole machine since the last time.
    Machine,
    /// What the interface carried by which it is reached, since the last time.
    Link,
    /// The CPU time of all of its processes since their start.
    CpuNs,
    /// Begin the readings of a load.
    Observe { cpus: CpuSets, load: LoadShape },
    /// Take the readings that belong to a moment of the load.
    Read(Reading),
    /// Look which processes serve its port, and on which CPUs.
    Look,
    /// What was read and seen since the readings began.
    Observed,
    /// Which of its processes ended by themselves.
    Deaths,
    /// Stop it.
    Stop,
}

/// A moment of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reading {
    /// All connections are open, and the load has not started.
    BeforeLoad,
    BeforeWindow,
    WindowOpens,
    WindowCloses,
    LoadOver,
    /// The load is over, and its connections are still open.
    AfterLoad,
}

/// The answer to an [`Ask`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// It was done; the error is a sentence.
    Done(Result<(), String>),
    /// Nanoseconds since it started.
    Now(u64),
    /// Nanoseconds of each role, in the order of their start; `None`: not known.
    Laps(Vec<Option<u64>>),
    /// `None`: not known.
    Machine(Option<MachineUse>),
    /// `None`: not known.
    Link(Option<Carried>),
    /// Nanoseconds, if known.
    CpuNs(Option<u64>),
    Observed(Box<Observed>),
    Deaths(Deaths),
    Stopped(Stopped),
}

/// What was read of a contender under a load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Observed {
    /// Usage of all roles inside the window; `None` if it cannot be read.
    pub server: Option<Server>,
    /// Its machine.
    pub machine: Machine,
    /// The usage of each role, the server first; empty if there is only one.
    pub roles: Vec<RoleUsage>,
    /// A foreign process that serves its port, as a sentence.
    pub served_by_others: Option<String>,
    /// A thread that may run on other CPUs than its own, as a sentence.
    pub left_its_cpus: Option<String>,
}

/// What the race asks the agent on the contenders' machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToSite {
    /// Describe the machine.
    Describe,
    /// Prepare for this race: check that its contenders can be started.
    Enter(Box<Asked>),
    /// Check that the programs and files of the race are those that it was entered with.
    Look,
    /// Which settings of the machine have changed since this was last asked, or since the race was entered.
    Settings,
    /// The CPU of the whole machine since the last time.
    Machine,
    /// Start a contender of the race.
    Start { entrant: String, load: LoadShape },
    /// Ask a contender that was started, one thing after the other.
    Of { contender: u32, asks: Vec<Ask> },
}

/// The agent's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromSite {
    Described {
        setup: Box<Setup>,
        /// The folder in which contenders are started.
        dir: PathBuf,
        /// The address by which the agent was reached, if known.
        address: Option<IpAddr>,
        /// The boot of its kernel, if known.
        boot: Option<String>,
    },
    /// The fingerprint of the race there.
    Entered(Box<Fingerprint>),
    /// The programs and files are the same.
    Unchanged,
    /// The changes, as a part of a sentence.
    Settings { changed: Option<String> },
    /// `None`: not known.
    Machine { used: Option<MachineUse> },
    /// The contender is ready; its number, its port, and those of its further nodes.
    Started { contender: u32, port: u16, nodes: Vec<u16> },
    /// It did not become ready: a sentence.
    NotStarted { because: String },
    /// The start was interrupted.
    Interrupted,
    /// The answers of a contender.
    Of(Vec<Answer>),
}
