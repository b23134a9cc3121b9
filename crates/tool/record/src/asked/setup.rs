//! The machine and the programs of a race.

use crate::Core;
use serde::{Deserialize, Serialize};

/// The machine and the programs of a race.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Version of regatta and git revision, if known at build time.
    pub regatta: String,
    /// The whole command line.
    pub command_line: Vec<String>,
    /// Kernel release and version.
    pub kernel: String,
    /// CPU model.
    pub cpu: String,
    /// CPUs online.
    pub cpus: u32,
    /// The physical cores that regatta could use. Empty: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<Core>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Priority of the race and its contenders as a nice value: −20 is the highest, 0 the usual one. Absent: not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Frequency governor, if any.
    pub governor: Option<String>,
    /// Active CPU mitigations, by vulnerability.
    pub mitigations: Vec<String>,
    /// Limit of open files per process.
    pub open_files: u64,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// Local port range.
    pub port_range: Option<(u16, u16)>,
    /// The kind of control groups for processes: `v2`, `v1` or `none`.
    pub cgroup: String,
    /// Seconds since the Unix epoch at the start.
    pub started_unix_s: u64,
}
