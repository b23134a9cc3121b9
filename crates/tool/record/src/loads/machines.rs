//! The machines of a load whose connections must know of each other, such as the members of a hub.

use serde::{Deserialize, Serialize};

/// The machines of a load. Each has a number, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machines {
    /// The number of the machine that reads this. Each load process sets it; the leader has 0.
    pub own: u32,
    /// The number of the machine of each load thread.
    pub of_thread: Vec<u32>,
    /// Number of members on each machine.
    pub members: Vec<u64>,
    /// How far the clock of each machine is ahead of the leader's, as known before the load, in
    /// nanoseconds.
    pub ahead_ns: Vec<i64>,
    /// What is added to each latency between two machines, in nanoseconds, so that none is negative
    /// however far these offsets are from the truth.
    pub shift_ns: u64,
    /// The secret of this load with which broadcasts are marked. The leader draws it at random, and it never
    /// reaches the server: one that knew it could change broadcasts so that the sums of marks stay the same.
    pub key: u64,
}

impl Machines {
    /// Maximum number of machines. A load thread has a histogram for each.
    pub const MOST: usize = 16;
    /// Maximum offset of a clock, in nanoseconds.
    const MOST_AHEAD_NS: u64 = 1 << 61;

    /// Number of machines.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The number of the machine of a connection. Connections are numbered over all threads in turn.
    pub fn of_connection(&self, number: u32) -> u32 {
        self.of_thread[number as usize % self.of_thread.len()]
    }

    /// Number of members on other machines than this one.
    pub fn members_elsewhere(&self) -> u64 {
        self.elsewhere_than(self.own as usize)
    }

    /// Number of members on other machines than this one.
    pub fn elsewhere_than(&self, machine: usize) -> u64 {
        let others = self.members.iter().enumerate().filter(|(number, _)| *number != machine);
        others.map(|(_, members)| members).sum()
    }

    /// Converts a time of another machine's clock to this machine's clock, by the offsets that were known
    /// before the load. A time that no clock shows gives some time.
    pub fn here_ns(&self, machine: u32, at_ns: u64) -> i64 {
        let [there, here] = [machine, self.own].map(|number| self.ahead_ns[number as usize]);
        (at_ns as i64).wrapping_sub(there).wrapping_add(here)
    }

    /// Whether this can describe a load with `threads` threads.
    pub fn is_possible(&self, threads: u32) -> bool {
        let count = self.count();
        (1..=Self::MOST).contains(&count)
            && self.ahead_ns.len() == count
            && self.of_thread.len() == threads as usize
            && threads > 0
            && (self.own as usize) < count
            && self.of_thread.iter().all(|machine| (*machine as usize) < count)
            && self.members.iter().all(|members| *members <= 1 << 32)
            && self.ahead_ns.iter().all(|ahead| ahead.unsigned_abs() <= Self::MOST_AHEAD_NS)
            && self.shift_ns <= Self::MOST_AHEAD_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines() -> Machines {
        Machines {
            own: 1,
            of_thread: vec![0, 0, 1],
            members: vec![20, 10],
            ahead_ns: vec![-500, 7_000],
            shift_ns: 1,
            key: 0,
        }
    }

    #[test]
    fn a_connection_is_on_the_machine_of_its_thread() {
        let machines = machines();
        let of: Vec<u32> = (0..7).map(|number| machines.of_connection(number)).collect();
        assert_eq!(of, [0, 0, 1, 0, 0, 1, 0]);
        assert_eq!(machines.members_elsewhere(), 20);
    }

    #[test]
    fn a_time_of_another_clock_is_converted_by_both_offsets() {
        // The leader's clock shows 1,000 when the others show 500 and 8,000.
        assert_eq!(machines().here_ns(0, 500), 8_000);
        assert_eq!(machines().here_ns(1, 8_000), 8_000);
        assert!(machines().here_ns(0, u64::MAX) < 10_000, "no panic");
    }

    #[test]
    fn impossible_machines_are_found() {
        assert!(machines().is_possible(3));
        assert!(!machines().is_possible(2));
        for impossible in [
            Machines { own: 2, ..machines() },
            Machines { of_thread: vec![0, 0, 2], ..machines() },
            Machines { ahead_ns: vec![0], ..machines() },
            Machines { ahead_ns: vec![0, i64::MIN], ..machines() },
            Machines { members: vec![1; 17], ahead_ns: vec![0; 17], ..machines() },
            Machines { members: vec![1, u64::MAX], ..machines() },
        ] {
            assert!(!impossible.is_possible(3), "{impossible:?}");
        }
    }
}
