//! The messages to a load process: the whole load, and the part of it that the process runs. Except
//! for CPU numbers and shared memory, nothing here is specific to one machine: no paths, handles or
//! times.

use crate::{Drive, Stage};
use serde::{Deserialize, Serialize};
use std::{net::SocketAddr, path::PathBuf};

/// The first message to a load process, one line of JSON. The `Plan` of the crate `load` documents the
/// fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The part of the load that this process runs. All other fields are the same for all processes.
    pub part: Part,
    /// The server.
    pub target: SocketAddr,
    /// The Unix socket of the server, on one machine. `None`: not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix: Option<PathBuf>,
    /// TLS parameters; `None`: plain.
    pub tls: Option<AskedTls>,
    /// The requests and the expected replies.
    pub workload: AskedWorkload,
    /// The host named in requests.
    pub host: String,
    /// The path of a built-in workload. `None`: the workload's default.
    pub path: Option<String>,
    /// Connections, over all processes.
    pub connections: u64,
    /// Additional idle connections, over all processes.
    pub idle: u64,
    /// The number of idle connections that do not read, over all processes.
    #[serde(default)]
    pub stalled: u64,
    /// Additional connections whose members join and leave, over all processes.
    #[serde(default)]
    pub passing: u64,
    /// Maximum number of requests in flight on each connection.
    pub pipeline: u64,
    /// When requests are sent; its numbers are over all processes.
    pub drive: Drive,
    /// How long before a scheduled send a thread spins instead of sleeping, in nanoseconds.
    pub spin_ns: u64,
    /// Whether threads busy-poll during the warm-up and the window.
    pub busy_poll: bool,
    /// CPUs of the load, on the machine of the process. Empty: any.
    pub cpus: Vec<u32>,
    /// Reply timeout, in nanoseconds.
    pub timeout_ns: u64,
    /// The end of the measured window.
    pub window: AskedWindow,
    /// The stages of the window. Empty: it has the rate of the drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// The fraction of the requests that may fail. `None`: a wrong reply ends the run.
    pub tolerates: Option<f64>,
    /// Whether the last byte of some requests is held back for a while.
    pub withholds: bool,
    /// Whether connections come from addresses drawn by the seed.
    pub draws_sources: bool,
    /// Whether the counts of each second are reported.
    #[serde(default)]
    pub seconds: bool,
    /// Seed of the requests and of their schedule.
    pub seed: u64,
    /// The path of memory shared by all processes of this load, on one machine, if their
    /// connections must know about each other. `None`: not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
}

/// The part of a load that one process runs. The threads of a load are numbered over all processes.
/// Thread `t` of `n` takes the connections `t`, `t + n`, `t + 2n`, … and its share of everything else,
/// regardless of the process that it runs in. So several processes together send exactly what one
/// process with the same number of threads sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The number of this process, counted from 0.
    pub process: u32,
    /// Number of processes.
    pub processes: u32,
    /// Number of threads, over all processes. A multiple of `processes`.
    pub threads: u32,
}

impl Part {
    /// The part of a process that runs the whole load.
    pub fn whole(threads: u32) -> Part {
        Part { process: 0, processes: 1, threads }
    }

    /// The numbers of the threads in this process: `process`, `process + processes`, …
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (self.process..self.threads).step_by(self.processes.max(1) as usize)
    }

    /// The number of `n` things that thread `thread` gets if all threads take turns.
    pub fn of_thread(self, thread: u32, n: u64) -> u64 {
        let (thread, threads) = (u64::from(thread), u64::from(self.threads.max(1)));
        n / threads + u64::from(thread < n % threads)
    }

    /// The number of `n` things that the threads of this process get if all threads take turns.
    pub fn of_process(self, n: u64) -> u64 {
        self.numbers().map(|thread| self.of_thread(thread, n)).sum()
    }
}

/// TLS parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedTls {
    /// The host that the server's certificate must name.
    pub host: String,
    /// The trusted CA certificates.
    pub roots: AskedRoots,
}

/// The CA certificates that the load trusts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedRoots {
    /// The system's certificates.
    System,
    /// These certificates, as PEM.
    Pem(String),
    /// Every server certificate is accepted.
    Unchecked,
}

/// The requests and the expected replies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedWorkload {
    /// The protocol, by its name in workload files.
    pub protocol: String,
    /// The requests, in a form specific to the protocol.
    pub asks: serde_json::Value,
}

/// The end of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AskedWindow {
    /// After a fixed time, by the clock of each process.
    Elapsed {
        /// Length of the window, in nanoseconds.
        ns: u64,
    },
    /// When this many requests are settled, over all processes.
    Requests {
        /// Number of requests.
        n: u64,
    },
    /// When all instances of a burst are done. Each runs within one thread.
    Done,
}

/// A command to a load process. Each is sent at most once, in this order; some are skipped. All
/// processes get the same command at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Open all connections.
    Connect,
    /// Send requests, but record nothing yet.
    WarmUp,
    /// Open the measured window.
    OpenWindow,
    /// In a burst: every connection of every process got its first reply.
    AllOpened,
    /// Close the measured window, stop sending, and wait for the replies in flight. A process ignores
    /// it if its window has a fixed length: it then closes the window itself, by its own clock.
    StopSending,
    /// The server had enough time to close the connections that it should close.
    ClosesOverdue,
    /// The load ends early, so pending deliveries are not reported as missing.
    CutShort,
    /// Stop and report what was counted. Connections that are still open stay so until the process ends.
    End,
}

impl Order {
    /// All of them, in order.
    pub const ALL: [Order; 8] = [
        Order::Connect,
        Order::WarmUp,
        Order::OpenWindow,
        Order::AllOpened,
        Order::StopSending,
        Order::ClosesOverdue,
        Order::CutShort,
        Order::End,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_share_all_threads_and_connections() {
        for (processes, threads) in [(1, 1), (1, 4), (3, 3), (3, 9), (4, 8)] {
            let parts = (0..processes).map(|process| Part { process, processes, threads });
            let mut numbers: Vec<u32> = parts.clone().flat_map(Part::numbers).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..threads).collect::<Vec<_>>());
            for n in [0, 1, 7, 45_000] {
                assert_eq!(parts.clone().map(|part| part.of_process(n)).sum::<u64>(), n);
                let each = parts.clone().map(|part| part.of_process(n));
                let (least, most) = (each.clone().min().unwrap(), each.max().unwrap());
                assert!(most - least <= u64::from(threads / processes), "{least} to {most}");
            }
        }
    }
}
