//! What a load process gets from its leader: its part of a load, and orders.

use serde::{Deserialize, Serialize};

/// The part of a load that one process runs. The threads of a load are numbered over all processes.
/// Thread `t` of `n` takes the connections `t`, `t + n`, `t + 2n`, … and its share of everything else,
/// regardless of the process that it runs in. So several processes together send exactly what one
/// process with the same number of threads sends, and they may have different numbers of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The number of this process, counted from 0.
    pub process: u32,
    /// Number of processes.
    pub processes: u32,
    /// Number of threads, over all processes.
    pub threads: u32,
    /// The lowest number of a thread of this process.
    pub first: u32,
    /// The distance from the number of one thread of this process to the next.
    pub step: u32,
    /// Number of threads of this process.
    pub own: u32,
}

impl Part {
    /// The part of a process that runs the whole load.
    pub fn whole(threads: u32) -> Part {
        Part { process: 0, processes: 1, threads, first: 0, step: 1, own: threads }
    }

    /// The part of one of `processes` processes that all have the same number of threads: the numbers
    /// `process`, `process + processes`, …
    pub fn equal(process: u32, processes: u32, threads: u32) -> Part {
        let own = threads / processes.max(1);
        Part { process, processes, threads, first: process, step: processes, own }
    }

    /// Whether the part has threads, and all of them are threads of the load.
    pub fn is_possible(self) -> bool {
        let Part { process, processes, threads, first, step, own } = self;
        let last = u64::from(first) + u64::from(own.saturating_sub(1)) * u64::from(step);
        process < processes && own > 0 && step > 0 && last < u64::from(threads)
    }

    /// The numbers of the threads in this process, in ascending order.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..self.own).map(move |nth| self.first + nth * self.step)
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
            let parts = (0..processes).map(|process| Part::equal(process, processes, threads));
            assert!(parts.clone().all(Part::is_possible));
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

    #[test]
    fn processes_with_different_numbers_of_threads_share_all_connections() {
        let part =
            |process, first, own| Part { process, processes: 3, threads: 6, first, step: 1, own };
        let parts = [part(0, 0, 3), part(1, 3, 2), part(2, 5, 1)];
        assert!(parts.into_iter().all(Part::is_possible));
        let numbers: Vec<u32> = parts.into_iter().flat_map(Part::numbers).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        for n in [0, 1, 7, 45_000] {
            assert_eq!(parts.into_iter().map(|part| part.of_process(n)).sum::<u64>(), n);
        }
        assert_eq!(parts.map(|part| part.of_process(45_000)), [22_500, 15_000, 7_500]);
    }

    #[test]
    fn parts_beyond_the_load_are_recognised() {
        let right = Part { process: 1, processes: 2, threads: 6, first: 1, step: 2, own: 3 };
        assert!(right.is_possible());
        for wrong in [
            Part { process: 2, ..right },
            Part { own: 0, ..right },
            Part { own: 4, ..right },
            Part { step: 0, ..right },
            Part { first: u32::MAX, step: u32::MAX, own: u32::MAX, ..right },
        ] {
            assert!(!wrong.is_possible(), "{wrong:?}");
        }
    }
}
