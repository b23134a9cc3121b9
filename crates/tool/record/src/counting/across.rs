//! What the members of a hub that are on several machines sent to each other and received from each
//! other. The machines share no memory, so only the sum over all of them shows whether each member
//! got each broadcast once.

use crate::{Mismatch, counting::hdr};
use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A sum of marks, modulo 2^64. Each broadcast has a mark, a hash of its sender, its number and its
/// time. In messages it is text, because it is no number that anything has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u64);

impl Marks {
    /// A sum of marks.
    pub fn new(sum: u64) -> Marks {
        Marks(sum)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Marks) -> Marks {
        Marks(self.0.wrapping_add(other.0))
    }

    /// The sum of `n` times the same marks.
    #[must_use]
    pub fn times(self, n: u64) -> Marks {
        Marks(self.0.wrapping_mul(n))
    }
}

impl Serialize for Marks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Marks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Marks, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Marks).map_err(D::Error::custom)
    }
}

/// What the members of a load process sent, and what they received from other machines, over the
/// whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossSeen {
    /// Connections opened, also those that replaced a closed one.
    pub opened: u64,
    /// Connections that became members. One that joined again is not counted twice.
    pub joined: u64,
    /// Members whose connection was closed, each once, whether they joined again or not.
    pub left: u64,
    /// The most that a result had fewer listeners than there were members, if no member of another machine
    /// had left.
    pub short_by: u64,
    /// The most that a result had more listeners than there were connections, if there was one for each
    /// member on other machines.
    pub over_by: u64,
    /// Broadcasts sent.
    pub sent: u64,
    /// Their marks.
    pub sent_marks: Marks,
    /// What the members received that stayed, by the number of the sender's machine. That of the own machine
    /// is not counted here.
    pub from: Vec<FromSeen>,
}

/// What the members of a load process received from another machine. No member counted a broadcast
/// twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FromSeen {
    /// Copies of broadcasts.
    pub copies: u64,
    /// One more than the highest number of such a broadcast. The machine numbers its broadcasts from 0.
    pub numbers: u64,
    /// The marks of the copies.
    pub marks: Marks,
}

/// What the members of a load process sent to other machines and received from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossCounted {
    /// Over the whole run.
    pub seen: AcrossSeen,
    /// Latencies of copies of broadcasts that were sent inside the window, by the number of the sender's
    /// machine.
    pub latencies: Vec<AcrossLatencies>,
}

/// Latencies between two machines, by clocks that may differ from what is assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcrossLatencies {
    /// Copies whose latency is less than zero although [`crate::Machines::shift_ns`] was added.
    pub early: u64,
    /// The other latencies, with the shift, in nanoseconds.
    #[serde(with = "hdr")]
    pub histogram: Histogram<u64>,
}

impl AcrossLatencies {
    /// Counts a latency with the shift, in nanoseconds.
    #[inline]
    pub fn record(&mut self, shifted_ns: i64) {
        match shifted_ns {
            1.. => self.histogram.saturating_record(shifted_ns as u64),
            _ => self.early += 1,
        }
    }
}

impl AcrossSeen {
    /// Adds what another process of the load saw.
    fn add(&mut self, other: &AcrossSeen) {
        self.joined += other.joined;
        self.left += other.left;
        self.opened += other.opened;
        self.short_by = self.short_by.max(other.short_by);
        self.over_by = self.over_by.max(other.over_by);
        self.sent += other.sent;
        self.sent_marks = self.sent_marks.plus(other.sent_marks);
        let longer = self.from.len().max(other.from.len());
        self.from.resize(longer, FromSeen::default());
        for (ours, theirs) in self.from.iter_mut().zip(&other.from) {
            ours.copies += theirs.copies;
            ours.numbers = ours.numbers.max(theirs.numbers);
            ours.marks = ours.marks.plus(theirs.marks);
        }
    }
}

impl AcrossCounted {
    /// Counts of a load on `machines` machines with histograms like `empty`.
    pub fn nothing(machines: usize, empty: &Histogram<u64>) -> AcrossCounted {
        let none = AcrossLatencies { early: 0, histogram: empty.clone() };
        AcrossCounted { seen: AcrossSeen::default(), latencies: vec![none; machines] }
    }

    /// Adds the counts of another thread or process. Both were checked to be alike.
    pub(crate) fn add(&mut self, other: &AcrossCounted) -> Result<(), Mismatch> {
        self.seen.add(&other.seen);
        for (ours, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            ours.early += theirs.early;
            hdr::add(&mut ours.histogram, &theirs.histogram)?;
        }
        Ok(())
    }

    /// Checks that it is of as many machines, and has histograms like `like`.
    pub(crate) fn check(&self, machines: usize, like: &Histogram<u64>) -> Result<(), Mismatch> {
        let (seen, latencies) = (self.seen.from.len(), self.latencies.len());
        if seen > machines || latencies != machines {
            return Err(Mismatch(format!(
                "members of {seen} and latencies of {latencies} machines, expected {machines}"
            )));
        }
        self.latencies.iter().try_for_each(|one| hdr::check_like(like, &one.histogram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram() -> Histogram<u64> {
        Histogram::new_with_bounds(1, 1_000_000, 3).unwrap()
    }

    fn counted(copies: u64, numbers: u64, marks: u64) -> AcrossCounted {
        let mut counted = AcrossCounted::nothing(2, &histogram());
        let from = FromSeen { copies, numbers, marks: Marks(marks) };
        counted.seen = AcrossSeen {
            opened: 4,
            joined: 3,
            left: 1,
            short_by: copies,
            over_by: numbers,
            sent: 5,
            sent_marks: Marks(marks),
            from: vec![FromSeen::default(), from],
        };
        counted.latencies[1].record(700);
        counted.latencies[1].record(-700);
        counted
    }

    #[test]
    fn counts_of_processes_are_added() {
        let mut sum = counted(10, 4, u64::MAX);
        sum.add(&counted(7, 6, 3)).unwrap();
        let expected = FromSeen { copies: 17, numbers: 6, marks: Marks(2) };
        assert_eq!(sum.seen.from, [FromSeen::default(), expected]);
        assert_eq!((sum.seen.joined, sum.seen.left, sum.seen.sent), (6, 2, 10));
        assert_eq!((sum.seen.opened, sum.seen.short_by, sum.seen.over_by), (8, 10, 6));
        assert_eq!((sum.latencies[1].early, sum.latencies[1].histogram.len()), (2, 2));
    }

    #[test]
    fn marks_survive_a_message_and_are_no_number_in_it() {
        let text = serde_json::to_string(&counted(1, 1, u64::MAX)).unwrap();
        assert!(text.contains(r#""marks":"ffffffffffffffff""#), "{text}");
        assert_eq!(serde_json::from_str::<AcrossCounted>(&text).unwrap(), counted(1, 1, u64::MAX));
    }

    #[test]
    fn counts_of_other_machines_are_refused() {
        assert_eq!(counted(1, 1, 1).check(2, &histogram()), Ok(()));
        assert!(counted(1, 1, 1).check(3, &histogram()).is_err());
        assert!(counted(1, 1, 1).check(1, &histogram()).is_err());
    }
}
