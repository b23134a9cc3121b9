//! A server that ran before its race: the race attaches to it and neither starts nor stops it.

use serde::{Deserialize, Serialize};

/// A running server, as it was found before the race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// Its URL, as it was given.
    pub url: String,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The processes that listen on its port, without those that another one of them started.
    pub processes: Vec<RunningProcess>,
    /// The CPUs on which a thread of it may run, in ascending order.
    pub cpus: Vec<u32>,
}

/// A process of a running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningProcess {
    /// Its id.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// When it started, in clock ticks after the start of the machine. The id can be reused; together
    /// they identify a process.
    pub started: u64,
}

impl RunningServer {
    /// Its processes in words: `process 17 (nginx), process 18 (nginx)`.
    pub fn processes(&self) -> String {
        let each = self.processes.iter().map(|one| format!("process {} ({})", one.pid, one.name));
        each.collect::<Vec<_>>().join(", ")
    }
}
