//! What a load process is asked: the whole load, and which part of it is its own. Nothing in it
//! belongs to one machine but the CPUs: no file, no handle, no moment.

use crate::Arrivals;
use serde::{Deserialize, Serialize};
use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
};

/// The first message to a load process. What each field means is said at the plan of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// Which part of the load is this process's; all else is the same for all of them.
    pub part: Part,
    /// The server.
    pub target: SocketAddr,
    /// TLS with it; `None`: plain.
    pub tls: Option<AskedTls>,
    /// What is sent and what must come back.
    pub workload: AskedWorkload,
    /// What requests name as their host.
    pub host: String,
    /// Target of a built-in workload instead of its own.
    pub path: Option<String>,
    /// Connections of all processes together.
    pub connections: u64,
    /// Further connections that are silent, of all processes together.
    pub idle: u64,
    /// Requests outstanding on each connection, at most.
    pub pipeline: u64,
    /// Requests per second of all processes together; `None`: as fast as the replies come.
    pub rate: Option<NonZeroU32>,
    /// How the requests of a rate arrive.
    pub arrivals: Arrivals,
    /// How long before a send a thread stops sleeping and spins, nanoseconds.
    pub spin_ns: u64,
    /// Whether threads never sleep in warm-up and window.
    pub busy_poll: bool,
    /// Requests outstanding over all connections of all processes, at most; `None`: no such bound.
    pub in_flight: Option<NonZeroU64>,
    /// CPUs of the load on the machine where the process runs; empty: any.
    pub cpus: Vec<u32>,
    /// How long a reply may take, nanoseconds.
    pub timeout_ns: u64,
    /// When the measured window ends.
    pub window: AskedWindow,
    /// Whether each request has a connection of its own.
    pub churn: bool,
    /// Seed of the requests, and of their moments.
    pub seed: u64,
}

/// Which part of a load a process has. A load has threads, numbered over all processes: thread `t` of
/// `n` takes the connections `t`, `t + n`, `t + 2n`, ... and its share of all else, whichever process
/// it runs in. So several processes ask together exactly what one with as many threads asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// This process, from 0.
    pub process: u32,
    /// How many there are.
    pub processes: u32,
    /// Threads of all of them; each has equally many.
    pub threads: u32,
}

impl Part {
    /// The only process, with all threads.
    pub fn whole(threads: u32) -> Part {
        Part { process: 0, processes: 1, threads }
    }

    /// The numbers of this process's threads: its own number, and every `processes`-th one after it.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (self.process..self.threads).step_by(self.processes.max(1) as usize)
    }

    /// Of `n` things that are dealt out to all threads in turn: how many fall to thread `thread`.
    pub fn of_thread(self, thread: u32, n: u64) -> u64 {
        let (thread, threads) = (u64::from(thread), u64::from(self.threads.max(1)));
        n / threads + u64::from(thread < n % threads)
    }

    /// The same of this process.
    pub fn of_process(self, n: u64) -> u64 {
        self.numbers().map(|thread| self.of_thread(thread, n)).sum()
    }
}

/// How TLS is to be spoken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedTls {
    /// The host that the server's certificate is to be for.
    pub host: String,
    /// Whose word for it is taken.
    pub roots: AskedRoots,
}

/// Whose word for a server's certificate is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedRoots {
    /// Those whom the system trusts on which the process runs.
    System,
    /// Those whose certificates stand here, as PEM.
    Pem(String),
    /// Nobody is asked.
    Unchecked,
}

/// What is sent and what must come back, in the words of the protocol that it is asked in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedWorkload {
    /// The protocol, by its name in workload files.
    pub protocol: String,
    /// What is asked in it; the protocol alone knows how to read it.
    pub asks: serde_json::Value,
}

/// When the measured window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AskedWindow {
    /// So many nanoseconds after it opened, by the clock of each process.
    Elapsed {
        /// Its length.
        ns: NonZeroU64,
    },
    /// When so many requests, of all processes together, are settled.
    Requests {
        /// How many.
        n: u64,
    },
    /// When all instances of a burst are through.
    Burst {
        /// Instances of all processes together, each within one thread.
        instances: u32,
        /// Requests of each connection.
        requests: u32,
    },
}

/// What a load process is told while it works, each at most once and in this order; some are left
/// out. Who leads the load decides for all processes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Open all connections.
    Connect,
    /// Load; nothing is recorded yet.
    WarmUp,
    /// The measured window opens now.
    OpenWindow,
    /// The measured window closes, unless its time was up already: send no more, and await what is
    /// owed.
    StopSending,
    /// Close everything and tell what was counted.
    End,
}

impl Order {
    /// All of them, in order.
    pub const ALL: [Order; 5] =
        [Order::Connect, Order::WarmUp, Order::OpenWindow, Order::StopSending, Order::End];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_processes_together_have_each_thread_once_and_all_of_everything() {
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
