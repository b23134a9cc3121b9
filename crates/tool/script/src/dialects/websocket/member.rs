//! Which of the broadcasts owed to a member have arrived. Each must arrive once, and those of one
//! sender in order.

use super::{
    announced::Wrong,
    roster::{Fate, MAX_IN_FLIGHT, Roster},
};
use std::collections::VecDeque;

/// The broadcasts received by a member.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The first broadcast that the member is owed; `u64::MAX` before it has joined.
    joined: u64,
    /// The first broadcast that it is no longer owed because it leaves; `u64::MAX` while it stays.
    until: u64,
    /// The first broadcast that it has not received.
    first: u64,
    /// Whether each broadcast from `first` on has been received.
    received: VecDeque<bool>,
    /// Broadcasts that were sent before it joined and arrived anyway.
    early: Vec<u64>,
    /// Broadcasts before `first` that have not come and may still come: it got a gap, or their results did not
    /// say whether they were published. Ascending, and of the last [`MAX_IN_FLIGHT`] only: an earlier one is too old
    /// to be known.
    excused: VecDeque<u64>,
}

/// Why a copy of a broadcast is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryError {
    /// The member has received it before.
    Twice,
    /// The member has received a later broadcast of the same sender. It counts as received nevertheless; `is_owed`:
    /// the member is owed it.
    OutOfOrder { is_owed: bool },
    /// Too many broadcasts were sent after the first one that it has not received.
    TooFar,
}

impl DeliveryError {
    /// Describes what was expected instead.
    pub fn in_words(self) -> &'static str {
        match self {
            DeliveryError::Twice => "each broadcast once; this one was delivered before",
            DeliveryError::OutOfOrder { .. } => {
                "the broadcasts of one sender in order; a later one of this sender was delivered before"
            }
            DeliveryError::TooFar => {
                "an earlier broadcast, which is missing, before so many later ones"
            }
        }
    }

    /// The kind under which it is counted.
    pub fn kind(self) -> Wrong {
        match self {
            DeliveryError::Twice => Wrong::Twice,
            DeliveryError::OutOfOrder { .. } | DeliveryError::TooFar => Wrong::OutOfOrder,
        }
    }
}

impl Inbox {
    /// Creates the state of a connection that is not a member yet and is owed no broadcasts.
    pub fn empty() -> Inbox {
        let never = u64::MAX;
        let (received, early, excused) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Inbox { joined: never, until: never, first: never, received, early, excused }
    }

    /// The member joins, and is owed this broadcast and all that follow.
    pub fn joins(&mut self, number: u64) {
        (self.joined, self.first) = (number, number);
    }

    /// The member starts to leave, and is not owed this broadcast or any that follow.
    pub fn leaves(&mut self, number: u64) {
        self.until = number;
    }

    /// Whether a leaving member has received everything it is owed. Always false for a member that
    /// stays.
    pub fn has_all(&self) -> bool {
        self.first >= self.until
    }

    /// Records a copy of a sent broadcast. Returns whether this member was owed it. A broadcast sent
    /// before the member joined, or after it started to leave, may arrive or not. It must still arrive
    /// at most once and in the order of its sender.
    pub fn take(&mut self, number: u64, roster: &Roster) -> Result<bool, DeliveryError> {
        if number < self.joined {
            return self.take_early(number, roster).map(|()| false);
        }
        let Some(ahead) = number.checked_sub(self.first) else { return Err(DeliveryError::Twice) };
        if ahead == 0 && self.received.is_empty() {
            // The usual case: broadcasts arrive in the order in which they were sent.
            self.first += 1;
            return Ok(number < self.until);
        }
        let ahead = ahead as usize;
        if self.received.get(ahead) == Some(&true) {
            return Err(DeliveryError::Twice);
        }
        let mut later = (ahead + 1..self.received.len()).filter(|later| self.received[*later]);
        let is_overtaken =
            later.any(|later| roster.are_in_order(number, self.first + later as u64));
        if self.received.len() <= ahead {
            self.received.resize(ahead + 1, false);
        }
        self.received[ahead] = true;
        self.drop_received();
        let is_owed = number < self.until;
        if is_overtaken { Err(DeliveryError::OutOfOrder { is_owed }) } else { Ok(is_owed) }
    }

    /// The member got a gap: it is not owed what was sent until now. Returns how many of these broadcasts it
    /// was owed and has not got.
    pub fn gap(&mut self, roster: &Roster) -> u64 {
        if self.joined == u64::MAX {
            return 0;
        }
        let next = roster.next();
        let mut missed = 0;
        for number in self.missing(next).collect::<Vec<_>>() {
            match roster.excuse(number) {
                true => {
                    missed += 1;
                    self.excuse(number);
                }
                false => self.excuse_unknown(number, roster),
            }
        }
        self.received.clear();
        self.first = next;
        missed
    }

    /// Whether nothing from before a gap that missed nothing is on its way.
    pub fn is_complete(&self, roster: &Roster) -> bool {
        self.excused.is_empty() && self.joined < u64::MAX && roster.is_complete_before(self.joined)
    }

    /// Passes over broadcasts that are no longer owed to anybody, if they are the first ones before `number`
    /// that have not come. Otherwise what comes later would be kept for ever.
    pub fn pass_over(&mut self, number: u64, roster: &Roster) {
        while self.first < number
            && self.received.front() != Some(&true)
            && roster.fate(self.first) != Some(Fate::Owed)
        {
            self.excuse_unknown(self.first, roster);
            self.received.pop_front();
            self.first += 1;
            self.drop_received();
        }
    }

    /// Records the copy of a broadcast that the member is not owed any longer. Returns whether it is one.
    pub fn take_excused(&mut self, number: u64) -> bool {
        if number >= self.first {
            return false;
        }
        let at = self.excused.binary_search(&number);
        at.is_ok_and(|at| self.excused.remove(at).is_some())
    }

    /// Whether the member has received a later broadcast of the sender of this one, which it was not owed any longer.
    pub fn was_overtaken(&self, number: u64, roster: &Roster) -> bool {
        let came = |later: &u64| self.excused.binary_search(later).is_err();
        let has_joined = self.joined < u64::MAX;
        let since = if has_joined { self.joined.max(number + 1)..self.first } else { 0..0 };
        let since = since.rev().take(MAX_IN_FLIGHT).filter(came);
        let ahead = (0..self.received.len()).filter(|ahead| self.received[*ahead]);
        let mut later = since.chain(ahead.map(|ahead| self.first + ahead as u64));
        later.any(|later| roster.are_in_order(number, later))
    }

    fn excuse_unknown(&mut self, number: u64, roster: &Roster) {
        if roster.fate(number) == Some(Fate::Unknown) {
            self.excuse(number);
        }
    }

    fn excuse(&mut self, number: u64) {
        let is_too_old = |first: &u64| number - first >= MAX_IN_FLIGHT as u64;
        while self.excused.front().is_some_and(is_too_old) {
            self.excused.pop_front();
        }
        self.excused.push_back(number);
    }

    /// Drops the first broadcasts, if they have come.
    fn drop_received(&mut self) {
        while self.received.front() == Some(&true) {
            self.received.pop_front();
            self.first += 1;
        }
    }

    /// Records a copy of a broadcast that was sent before the member joined.
    #[cold]
    fn take_early(&mut self, number: u64, roster: &Roster) -> Result<(), DeliveryError> {
        if self.early.contains(&number) {
            return Err(DeliveryError::Twice);
        }
        let mut early = self.early.iter().filter(|early| **early > number);
        let is_overtaken = early.any(|early| roster.are_in_order(number, *early))
            || self.was_overtaken(number, roster);
        self.early.push(number);
        if is_overtaken { Err(DeliveryError::OutOfOrder { is_owed: false }) } else { Ok(()) }
    }

    /// Whether this broadcast was received, or was sent before the member joined.
    pub fn has(&self, number: u64) -> bool {
        let Some(ahead) = number.checked_sub(self.first) else { return true };
        self.received.get(ahead as usize) == Some(&true)
    }

    /// Returns the broadcasts before `next` that it is owed and has not received, without those that are too old to
    /// be known.
    pub fn missing(&self, next: u64) -> impl Iterator<Item = u64> {
        let first = self.first.max(next.saturating_sub(MAX_IN_FLIGHT as u64));
        (first..next.min(self.until)).filter(|number| !self.has(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Creates a roster with broadcasts by these senders.
    fn roster(senders: &[u32]) -> Roster {
        let roster = Roster::new(None);
        for (number, sender) in senders.iter().enumerate() {
            assert_eq!(roster.send(*sender, 0), Ok(number as u64));
        }
        roster
    }

    fn joined(number: u64) -> Inbox {
        let mut inbox = Inbox::empty();
        inbox.joins(number);
        inbox
    }

    #[test]
    fn accepts_each_broadcast_once_and_in_its_senders_order() {
        let roster = roster(&[1, 2, 1, 2, 3]);
        let mut inbox = joined(1);
        assert_eq!(inbox.take(0, &roster), Ok(false), "sent before the member joined");
        assert_eq!(inbox.take(2, &roster), Ok(true), "broadcasts of other senders may overtake");
        assert_eq!(inbox.take(2, &roster), Err(DeliveryError::Twice));
        assert_eq!(inbox.take(3, &roster), Ok(true));
        assert_eq!(
            inbox.take(1, &roster),
            Err(DeliveryError::OutOfOrder { is_owed: true }),
            "3 is of the same sender"
        );
        assert_eq!(inbox.take(1, &roster), Err(DeliveryError::Twice), "it came nevertheless");
        assert_eq!(inbox.missing(5).collect::<Vec<_>>(), [4]);
        assert!((0..4).all(|number| inbox.has(number)) && !inbox.has(4));
    }

    #[test]
    fn a_leaving_member_is_owed_only_earlier_broadcasts() {
        let roster = roster(&[1, 2, 1, 2, 3]);
        let mut inbox = joined(1);
        inbox.leaves(3);
        assert_eq!(
            (inbox.take(4, &roster), inbox.has_all()),
            (Ok(false), false),
            "sent after it started to leave"
        );
        assert_eq!(inbox.take(4, &roster), Err(DeliveryError::Twice));
        assert_eq!((inbox.take(1, &roster), inbox.has_all()), (Ok(true), false));
        assert_eq!(inbox.missing(5).collect::<Vec<_>>(), [2]);
        assert_eq!((inbox.take(2, &roster), inbox.has_all()), (Ok(true), true));
        assert_eq!(inbox.take(3, &roster), Ok(false));
        assert!(!joined(0).has_all(), "the member stays");
    }

    #[test]
    fn copies_before_joining_are_checked_too() {
        let roster = roster(&[1, 2, 1, 1]);
        let mut inbox = Inbox::empty();
        assert_eq!(inbox.take(0, &roster), Ok(false));
        inbox.joins(3);
        assert_eq!(inbox.take(0, &roster), Err(DeliveryError::Twice));
        assert_eq!(inbox.take(3, &roster), Ok(true));
        let error = DeliveryError::OutOfOrder { is_owed: false };
        assert_eq!(inbox.take(2, &roster), Err(error));
        assert_eq!(inbox.take(1, &roster), Ok(false), "a broadcast of another sender");
    }

    #[test]
    fn a_gap_excuses_what_was_sent_before_it_and_nothing_else() {
        let roster = Roster::new(None);
        let mut inbox = joined(roster.join());
        (0..5).for_each(|_| assert!(roster.send(1, 0).is_ok()));
        let other = 3;
        assert_eq!(inbox.take(1, &roster), Ok(true));
        assert_eq!((inbox.gap(&roster), inbox.first), (4, 5));
        assert!(inbox.take_excused(0), "it comes later");
        assert!(!inbox.take_excused(0), "only once");
        assert_eq!(inbox.take(0, &roster), Err(DeliveryError::Twice));
        assert!(!inbox.take_excused(1), "it came before");
        assert!(inbox.take_excused(other));
        assert_eq!(inbox.gap(&roster), 0, "nothing is counted twice");
        assert!(roster.send(1, 0).is_ok());
        assert_eq!(inbox.missing(6).collect::<Vec<_>>(), [5]);
        assert_eq!(Inbox::empty().gap(&roster), 0, "it has not joined");
    }

    #[test]
    fn what_is_owed_to_nobody_is_passed_over() {
        let roster = Roster::new(None);
        let mut inbox = joined(roster.join());
        (0..6).for_each(|sender| assert!(roster.send(sender, 0).is_ok()));
        roster.settle(0, Fate::NotPublished);
        roster.settle(1, Fate::Unknown);
        inbox.pass_over(2, &roster);
        assert_eq!(inbox.first, 2);
        assert_eq!(inbox.take(3, &roster), Ok(true));
        inbox.pass_over(4, &roster);
        assert_eq!(inbox.first, 2, "2 is still owed");
        roster.settle(2, Fate::NotPublished);
        inbox.pass_over(4, &roster);
        assert_eq!((inbox.first, inbox.received.len()), (4, 0), "3 was received before");
        assert!(!inbox.take_excused(0), "nobody gets it");
        assert!(inbox.take_excused(1));
        inbox.pass_over(9, &roster);
        assert_eq!(inbox.first, 4, "4 is owed");
    }

    proptest! {
        /// Compares with a model that remembers everything.
        #[test]
        fn agrees_with_a_model_that_remembers_everything(
            senders in prop::collection::vec(0..3_u32, 1..20),
            joins in 0..5_u64,
            stays in 0..20_u64,
            before in prop::collection::vec(0..5_u64, 0..4),
            copies in prop::collection::vec(0..20_u64, 0..60),
        ) {
            let roster = roster(&senders);
            let sent = senders.len() as u64;
            let until = joins + stays;
            let mut inbox = Inbox::empty();
            let mut model = HashSet::new();
            let before = before.iter().map(|number| (*number, false));
            let copies = copies.iter().map(|number| (*number, true));
            let (mut has_joined, all) = (false, before.chain(copies));
            // A broadcast sent after joining cannot arrive before it.
            let all = all.filter(|(number, is_after)| *number < sent && (*is_after || *number < joins));
            for (number, is_after) in all {
                if is_after && !has_joined {
                    has_joined = true;
                    inbox.joins(joins);
                    inbox.leaves(until);
                }
                let sender = senders[number as usize];
                let overtaken =
                    model.iter().any(|later| *later > number && senders[*later as usize] == sender);
                let expected = match number {
                    _ if model.contains(&number) => Err(DeliveryError::Twice),
                    _ if overtaken => {
                        let is_owed = (joins..until).contains(&number);
                        Err(DeliveryError::OutOfOrder { is_owed })
                    }
                    _ => Ok((joins..until).contains(&number)),
                };
                prop_assert_eq!(inbox.take(number, &roster), expected);
                model.insert(number);
                if has_joined {
                    let missing: Vec<u64> =
                        (joins..until.min(sent)).filter(|number| !model.contains(number)).collect();
                    prop_assert_eq!(inbox.missing(sent).collect::<Vec<_>>(), missing);
                    let all = (joins..until).all(|number| model.contains(&number));
                    prop_assert_eq!(inbox.has_all(), all);
                }
            }
        }
    }
}
