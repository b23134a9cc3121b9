//! Broadcasts between the machines of a load, which share no roster. Each machine numbers its broadcasts
//! from 0, and all members join before the first one, so a member is owed every broadcast of every other
//! machine. It checks that none comes twice, and that those of one sender come in order. Only the leader
//! of the load knows how many broadcasts there are: it finds missing, invented and changed ones by the
//! sums over all members that stayed ([`AcrossSeen`]). What a member got whose connection was closed is
//! taken off the sums, so that it cannot make up for what another member did not get.

use super::{member::DeliveryError, message::Payload, roster::MAX_IN_FLIGHT};
use regatta_record::{AcrossSeen, FromSeen, Machines, Marks};
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering::*},
};

/// What the members of this process sent to other machines and received from them.
#[derive(Debug)]
pub(super) struct Afar {
    machines: Machines,
    opened: AtomicU64,
    joined: AtomicU64,
    left: AtomicU64,
    /// Members whose connections were lost and that have not joined again.
    away: AtomicU64,
    absent: AtomicU64,
    short_by: AtomicU64,
    over_by: AtomicU64,
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
    pub fn new(machines: &Machines) -> Afar {
        Afar {
            machines: machines.clone(),
            opened: AtomicU64::new(0),
            joined: AtomicU64::new(0),
            left: AtomicU64::new(0),
            away: AtomicU64::new(0),
            absent: AtomicU64::new(0),
            short_by: AtomicU64::new(0),
            over_by: AtomicU64::new(0),
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

    /// Number of members on other machines.
    pub fn members_elsewhere(&self) -> u64 {
        self.machines.members_elsewhere()
    }

    /// A result had so many fewer listeners than there were members, although the load has waited for closes of those of
    /// this machine. The leader knows how many had left on other machines.
    pub fn counts_fewer(&self, by: u64) {
        self.short_by.fetch_max(by, Relaxed);
    }

    /// A result had so many more listeners than there were connections, with one for each member on other machines.
    pub fn counts_more(&self, by: u64) {
        self.over_by.fetch_max(by, Relaxed);
    }

    /// A connection was opened, which may become a member.
    pub fn opens(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    /// A connection became a member. One that joins again is not counted twice.
    pub fn joins(&self, inboxes: &[FarInbox]) {
        if !inboxes.iter().any(FarInbox::is_late) {
            self.joined.fetch_add(1, Relaxed);
        }
    }

    /// The connection of a member with these inboxes was closed. What it received no longer counts.
    pub fn leaves(&self, inboxes: &[FarInbox]) {
        if inboxes.iter().any(FarInbox::is_late) {
            return;
        }
        for (from, inbox) in self.from.iter().zip(inboxes) {
            from.copies.fetch_sub(inbox.copies, Relaxed);
            from.marks.fetch_sub(inbox.marks, Relaxed);
        }
        // After the sums: until then, the load waits for more copies rather than for fewer.
        self.left.fetch_add(1, Release);
    }

    /// The connection of a member was lost.
    pub fn goes_away(&self) {
        self.away.fetch_add(1, Relaxed);
    }

    /// Such a member has joined again.
    pub fn comes_back(&self) {
        self.away.fetch_sub(1, Relaxed);
    }

    /// Deliveries from other machines that no member of this process was owed, because it was away. A broadcast counts
    /// when its first copy arrives here.
    pub fn absent(&self) -> u64 {
        self.absent.load(Relaxed)
    }

    /// A member sends a broadcast.
    pub fn sends(&self, payload: Payload) {
        self.sent.fetch_add(1, Relaxed);
        self.sent_marks.fetch_add(mark(self.machines.key, payload), Relaxed);
    }

    /// A member received a copy from another machine, for the first time.
    pub fn record(&self, machine: u32, payload: Payload, inbox: &mut FarInbox) {
        let from = &self.from[machine as usize];
        let numbers = payload.id.saturating_add(1);
        if from.numbers.load(Relaxed) < numbers {
            let new = numbers.saturating_sub(from.numbers.fetch_max(numbers, Relaxed));
            let away = self.away.load(Relaxed);
            if away > 0 {
                self.absent.fetch_add(away.saturating_mul(new), Relaxed);
            }
        }
        if inbox.is_late {
            return;
        }
        let mark = mark(self.machines.key, payload);
        inbox.copies += 1;
        inbox.marks = inbox.marks.wrapping_add(mark);
        from.copies.fetch_add(1, Relaxed);
        from.marks.fetch_add(mark, Relaxed);
    }

    /// The sums so far.
    pub fn seen(&self) -> AcrossSeen {
        let from = |received: &Received| FromSeen {
            copies: received.copies.load(Relaxed),
            numbers: received.numbers.load(Relaxed),
            marks: Marks::new(received.marks.load(Relaxed)),
        };
        // Before the sums, see above.
        let left = self.left.load(Acquire);
        AcrossSeen {
            opened: self.opened.load(Relaxed),
            joined: self.joined.load(Relaxed),
            left,
            short_by: self.short_by.load(Relaxed),
            over_by: self.over_by.load(Relaxed),
            sent: self.sent.load(Relaxed),
            sent_marks: Marks::new(self.sent_marks.load(Relaxed)),
            from: self.from.iter().map(from).collect(),
        }
    }
}

/// The mark of a broadcast: a hash of all that its payload says, with a key that the server does not know.
fn mark(key: u64, payload: Payload) -> u64 {
    let with = |hash: u64, value: u64| mix(hash.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ value);
    [payload.sender.into(), payload.id, payload.at].into_iter().fold(mix(key), with)
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
    /// The lower half of the number and the sender of each later broadcast that it has received, by number.
    /// All are fewer than [`MAX_IN_FLIGHT`] after `first`. What has not come takes no memory.
    later: VecDeque<(u32, u32)>,
    /// Number of copies, and their marks, unless it is late.
    copies: u64,
    marks: u64,
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

    fn take_later(&mut self, ahead: u64, sender: u32) -> Result<(), DeliveryError> {
        let most = MAX_IN_FLIGHT as u64 - 1;
        if ahead > most {
            if !self.is_late {
                return Err(DeliveryError::TooFar);
            }
            self.skip(ahead - most);
        }
        let ahead = ahead.min(most) as u32;
        let first = self.first as u32;
        let place = self.later.partition_point(|(id, _)| id.wrapping_sub(first) < ahead);
        let id = first.wrapping_add(ahead);
        if self.later.get(place).is_some_and(|(later, _)| *later == id) {
            return Err(DeliveryError::Twice);
        }
        if self.later.iter().skip(place).any(|(_, later)| *later == sender) {
            return Err(DeliveryError::OutOfOrder { is_owed: true });
        }
        self.later.insert(place, (id, sender));
        while self.later.front().is_some_and(|(id, _)| *id == self.first as u32) {
            self.later.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// Gives up the next broadcasts.
    fn skip(&mut self, count: u64) {
        let first = self.first as u32;
        let is_skipped = |id: u32| u64::from(id.wrapping_sub(first)) < count;
        while self.later.front().is_some_and(|(id, _)| is_skipped(*id)) {
            self.later.pop_front();
        }
        self.first += count;
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

    fn machines(key: u64) -> Machines {
        Machines {
            own: 0,
            of_thread: vec![0, 1],
            members: vec![1, 1],
            ahead_ns: vec![0, 0],
            shift_ns: 0,
            key,
        }
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
            assert_eq!(
                inbox.take(payload(1, id - 1)),
                Err(DeliveryError::OutOfOrder { is_owed: true })
            );
            assert_eq!(inbox.take(payload(2, id - 1)), Ok(()), "of another sender");
        }
        assert!(inbox.later.len() <= MAX_IN_FLIGHT);
    }

    #[test]
    fn sums_of_sent_and_received_broadcasts_are_equal_only_if_nothing_was_changed() {
        let sums = |received: &[Payload]| {
            let afar = Afar::new(&machines(7));
            let mut inbox = FarInbox::default();
            (0..3).for_each(|id| afar.sends(payload(1, id)));
            received.iter().for_each(|payload| afar.record(1, *payload, &mut inbox));
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

    #[test]
    fn what_a_member_got_that_left_makes_up_for_nothing() {
        let afar = Afar::new(&machines(7));
        let [mut left, mut stayed] = [(); 2].map(|()| afar.inboxes());
        afar.record(1, payload(1, 0), &mut left[1]);
        afar.record(1, payload(1, 1), &mut left[1]);
        afar.record(1, payload(1, 1), &mut stayed[1]);
        let before = afar.seen();
        assert_eq!((before.from[1].copies, before.left), (3, 0));
        afar.leaves(&left);
        let mut again = FarInbox::late();
        afar.record(1, payload(1, 0), &mut again);
        let seen = afar.seen();
        let marks = Marks::new(mark(7, payload(1, 1)));
        assert_eq!((seen.from[1].copies, seen.from[1].marks, seen.left), (1, marks, 1));
        afar.leaves(&[FarInbox::default(), again]);
        assert_eq!(afar.seen(), seen, "it leaves once");
    }

    #[test]
    fn what_members_that_are_away_are_not_owed_is_counted_once_for_each() {
        let afar = Afar::new(&machines(7));
        let mut inboxes = [(); 2].map(|()| FarInbox::default());
        let mut arrives = |id| {
            inboxes.iter_mut().for_each(|inbox| afar.record(1, payload(1, id), inbox));
            afar.absent()
        };
        assert_eq!(arrives(0), 0);
        (0..2).for_each(|_| afar.goes_away());
        assert_eq!(arrives(1), 2);
        afar.comes_back();
        // Number 2 comes later.
        assert_eq!((arrives(3), arrives(2)), (4, 4));
        afar.comes_back();
        assert_eq!(arrives(4), 4);
    }

    #[test]
    fn marks_depend_on_the_key_of_the_load() {
        assert_ne!(mark(1, payload(1, 2)), mark(2, payload(1, 2)));
        let sums = |key: u64| {
            let afar = Afar::new(&machines(key));
            afar.sends(payload(1, 2));
            afar.seen().sent_marks
        };
        assert_eq!(sums(5), sums(5));
        assert_ne!(sums(5), sums(6));
    }

    #[test]
    fn a_copy_that_comes_far_too_early_takes_little_memory() {
        let mut inbox = FarInbox::default();
        assert_eq!(inbox.take(payload(1, MAX_IN_FLIGHT as u64 - 1)), Ok(()));
        assert!(inbox.later.capacity() < 16, "{}", inbox.later.capacity());
    }

    #[test]
    fn numbers_beyond_32_bits_are_kept_apart() {
        let mut inbox = FarInbox { first: (1 << 32) - 2, ..FarInbox::default() };
        for id in [(1 << 32) + 1, (1 << 32) - 1, 1 << 32] {
            assert_eq!(inbox.take(payload(id as u32, id)), Ok(()));
            assert_eq!(inbox.take(payload(9, id)), Err(DeliveryError::Twice));
        }
        assert_eq!(inbox.take(payload(3, (1 << 32) - 2)), Ok(()));
        assert_eq!((inbox.first, inbox.later.len()), ((1 << 32) + 2, 0));
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
                        Err(DeliveryError::OutOfOrder { is_owed: true })
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
