//! What a load process gets from its leader: its part of a load, and orders.

use serde::{Deserialize, Serialize};

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

/// A command to a load process. Each is sent at most once, in this order; some are skipped. All
/// processes get the same command at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaderCommand {
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

impl LeaderCommand {
    /// All of them, in order.
    pub const ALL: [LeaderCommand; 8] = [
        LeaderCommand::Connect,
        LeaderCommand::WarmUp,
        LeaderCommand::OpenWindow,
        LeaderCommand::AllOpened,
        LeaderCommand::StopSending,
        LeaderCommand::ClosesOverdue,
        LeaderCommand::CutShort,
        LeaderCommand::End,
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
