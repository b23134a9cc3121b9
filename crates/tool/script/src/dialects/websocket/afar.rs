//! Broadcasts between the machines of a load, which share no roster. Each machine numbers its broadcasts
//! from 0, and all members join before the first one, so a member is owed every broadcast of every other
//! machine. It checks that none comes twice, and that those of one sender come in order. Only the leader
//! of the load knows how many broadcasts there are: it finds missing, invented and changed ones by the
//! sums over all members ([`AcrossSeen`]).

use super::{member::DeliveryError, message::Payload, roster::MAX_IN_FLIGHT};
use regatta_record::{AcrossSeen, FromSeen, Machines, Marks};
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// What the members of this process sent to other machines and received from them.
#[derive(Debug)]
pub(super) struct Afar {
    machines: Machines,
    seed: u64,
    joined: AtomicU64,
    left: AtomicU64,
    undercounted: AtomicU64,
    sent: AtomicU64,
    sent_marks: AtomicU64,
    from: Box<[Received]>,
}

/// What came from one machine. Aligned to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Received {
    copies: AtomicU64,
    numbers: AtomicU64,
    marks: AtomicU64,
}

impl Afar {
    pub fn new(machines: &Machines, seed: u64) -> Afar {
        Afar {
            machines: machines.clone(),
            seed,
            joined: AtomicU64::new(0),
            left: AtomicU64::new(0),
            undercounted: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            sent_marks: AtomicU64::new(0),
            from: (0..machines.count()).map(|_| Received::default()).collect(),
        }
    }

    /// An inbox for each machine, for a new connection.
    pub fn inboxes(&self) -> Box<[FarInbox]> {
        (0..self.machines.count()).map(|_| FarInbox::default()).collect()
    }

    /// The machine of a sender; `None` if it is this one.
    #[inline]
    pub fn origin(&self, sender: u32) -> Option<u32> {
        let machine = self.machines.of_connection(sender);
        (machine != self.machines.own).then_some(machine)
    }

    /// The time of a sender's clock, by the clock of this machine.
    #[inline]
    pub fn here_ns(&self, machine: u32, at: u64) -> i64 {
        self.machines.here_ns(machine, at)
    }

    /// The server reported this number of listeners, of which `own` at least are members of this machine.
    pub fn counts(&self, listeners: u64, own: u64) {
        if listeners < own.saturating_add(self.machines.members_elsewhere()) {
            self.undercounted.fetch_add(1, Relaxed);
        }
    }

    /// A connection became a member.
    pub fn joins(&self) {
        self.joined.fetch_add(1, Relaxed);
    }

    /// The connection of a member was closed.
    pub fn leaves(&self) {
        self.left.fetch_add(1, Relaxed);
    }

    /// A member sends a broadcast.
    pub fn sends(&self, payload: Payload) {
        self.sent.fetch_add(1, Relaxed);
        self.sent_marks.fetch_add(mark(self.seed, payload), Relaxed);
    }

    /// A member received a copy from another machine, for the first time.
    pub fn record(&self, machine: u32, payload: Payload) {
        let from = &self.from[machine as usize];
        from.copies.fetch_add(1, Relaxed);
        let numbers = payload.id.saturating_add(1);
        if from.numbers.load(Relaxed) < numbers {
            from.numbers.fetch_max(numbers, Relaxed);
        }
        from.marks.fetch_add(mark(self.seed, payload), Relaxed);
    }

    /// The sums so far.
    pub fn seen(&self) -> AcrossSeen {
        let from = |received: &Received| FromSeen {
            copies: received.copies.load(Relaxed),
            numbers: received.numbers.load(Relaxed),
            marks: Marks::new(received.marks.load(Relaxed)),
        };
        AcrossSeen {
            joined: self.joined.load(Relaxed),
            left: self.left.load(Relaxed),
            undercounted: self.undercounted.load(Relaxed),
            sent: self.sent.load(Relaxed),
            sent_marks: Marks::new(self.sent_marks.load(Relaxed)),
            from: self.from.iter().map(from).collect(),
        }
    }
}

/// The mark of a broadcast: a hash of all that its payload says.
fn mark(seed: u64, payload: Payload) -> u64 {
    let with = |hash: u64, value: u64| mix(hash.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ value);
    [payload.sender.into(), payload.id, payload.at].into_iter().fold(mix(seed), with)
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// The broadcasts of another machine that a member has received.
#[derive(Debug, Default)]
pub(super) struct FarInbox {
    /// The first broadcast that it has not received.
    first: u64,
    /// The sender of each broadcast from `first` on that it has received.
    later: VecDeque<Option<u32>>,
    /// The member joined again, so broadcasts that were sent before may be missing.
    is_late: bool,
}

impl FarInbox {
    /// The inbox of a member that joins again.
    pub fn late() -> FarInbox {
        FarInbox { is_late: true, ..FarInbox::default() }
    }

    /// Whether the member joined again.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Records a copy. Broadcasts of different senders may overtake each other.
    #[inline]
    pub fn take(&mut self, payload: Payload) -> Result<(), DeliveryError> {
        let Payload { sender, id, .. } = payload;
        let Some(ahead) = id.checked_sub(self.first) else { return Err(DeliveryError::Twice) };
        if ahead == 0 && self.later.is_empty() {
            self.first += 1;
            return Ok(());
        }
        self.take_later(ahead, sender)
    }

    fn take_later(&mut self, mut ahead: u64, sender: u32) -> Result<(), DeliveryError> {
        let most = MAX_IN_FLIGHT as u64 - 1;
        if ahead > most {
            if !self.is_late {
                return Err(DeliveryError::TooFar);
            }
            let skipped = ahead - most;
            self.later.drain(..self.later.len().min(skipped as usize));
            self.first += skipped;
            ahead = most;
        }
        let ahead = ahead as usize;
        if self.later.get(ahead).is_some_and(Option::is_some) {
            return Err(DeliveryError::Twice);
        }
        if self.later.iter().skip(ahead + 1).any(|later| *later == Some(sender)) {
            return Err(DeliveryError::OutOfOrder);
        }
        if self.later.len() <= ahead {
            self.later.resize(ahead + 1, None);
        }
        self.later[ahead] = Some(sender);
        while self.later.front().is_some_and(Option::is_some) {
            self.later.pop_front();
            self.first += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn payload(sender: u32, id: u64) -> Payload {
        Payload { sender, id, at: 0 }
    }

    #[test]
    fn a_copy_far_ahead_of_a_missing_one_is_refused() {
        let mut inbox = FarInbox::default();
        let last = MAX_IN_FLIGHT as u64 - 1;
        assert_eq!(inbox.take(payload(1, last)), Ok(()));
        assert_eq!(inbox.take(payload(2, last + 1)), Err(DeliveryError::TooFar));
        assert_eq!(inbox.take(payload(3, u64::MAX)), Err(DeliveryError::TooFar));
    }

    #[test]
    fn a_member_that_joins_again_has_missed_broadcasts() {
        let mut inbox = FarInbox::late();
        let begin = 100_000;
        for id in (begin..begin + 40_000).step_by(2) {
            assert_eq!(inbox.take(payload(1, id)), Ok(()));
            assert_eq!(inbox.take(payload(1, id)), Err(DeliveryError::Twice));
            assert_eq!(inbox.take(payload(1, id - 1)), Err(DeliveryError::OutOfOrder));
            assert_eq!(inbox.take(payload(2, id - 1)), Ok(()), "of another sender");
        }
        assert!(inbox.later.len() <= MAX_IN_FLIGHT);
    }

    #[test]
    fn sums_of_sent_and_received_broadcasts_are_equal_only_if_nothing_was_changed() {
        let machines = Machines {
            own: 0,
            of_thread: vec![0, 1],
            members: vec![1, 1],
            ahead_ns: vec![0, 0],
            shift_ns: 0,
        };
        let sums = |received: &[Payload]| {
            let afar = Afar::new(&machines, 7);
            (0..3).for_each(|id| afar.sends(payload(1, id)));
            received.iter().for_each(|payload| afar.record(1, *payload));
            let seen = afar.seen();
            (seen.sent_marks == seen.from[1].marks, seen.from[1].numbers)
        };
        let right = [payload(1, 2), payload(1, 0), payload(1, 1)];
        assert_eq!(sums(&right), (true, 3));
        for changed in [
            Payload { at: 1, ..right[0] },
            Payload { sender: 3, ..right[0] },
            Payload { id: 4, ..right[0] },
            Payload { sender: 2, id: 1, at: 0 },
        ] {
            assert!(!sums(&[changed, right[1], right[2]]).0, "{changed:?}");
        }
    }

    proptest! {
        /// Compares with a model that remembers everything.
        #[test]
        fn agrees_with_a_model_that_remembers_everything(
            senders in prop::collection::vec(0..3_u32, 1..20),
            copies in prop::collection::vec(0..20_usize, 0..60),
        ) {
            let (mut inbox, mut model) = (FarInbox::default(), BTreeSet::new());
            for number in copies.into_iter().filter(|number| *number < senders.len()) {
                let sender = senders[number];
                let expected = match number {
                    _ if model.contains(&number) => Err(DeliveryError::Twice),
                    _ if model.range(number..).any(|later| senders[*later] == sender) => {
                        Err(DeliveryError::OutOfOrder)
                    }
                    _ => Ok(()),
                };
                prop_assert_eq!(inbox.take(payload(sender, number as u64)), expected);
                if expected.is_ok() {
                    model.insert(number);
                }
            }
        }
    }
}
