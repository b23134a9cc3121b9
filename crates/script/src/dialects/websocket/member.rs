//! What one member has got of the broadcasts that it is owed: each once, and those of one sender in order.

use super::roster::{ON_THEIR_WAY, Roster};
use std::collections::VecDeque;

/// What a member has got.
#[derive(Debug)]
pub(super) struct Got {
    /// The first that it is owed; never, before it has joined.
    joined: u64,
    /// The first that it is not owed any more, since it leaves; never, while it stays.
    until: u64,
    /// The first that it has not got.
    first: u64,
    /// Of those from there on: which have come.
    came: VecDeque<bool>,
    /// Those that were sent before it had joined and have come all the same.
    early: Vec<u64>,
}

/// Why a copy of a broadcast is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unowed {
    /// It came before.
    Twice,
    /// A later one of the same sender came before it.
    OutOfOrder,
}

impl Unowed {
    /// What had to come instead.
    pub fn in_words(self) -> &'static str {
        match self {
            Unowed::Twice => "each broadcast once; this one came before",
            Unowed::OutOfOrder => {
                "the broadcasts of one sender in their order; a later one of this sender came before"
            }
        }
    }
}

impl Got {
    /// Of somebody who is no member yet, and is owed nothing.
    pub fn nothing() -> Got {
        let never = u64::MAX;
        let (came, early) = (VecDeque::new(), Vec::new());
        Got { joined: never, until: never, first: never, came, early }
    }

    /// It joins, and is owed what has this number and all that follows.
    pub fn joins(&mut self, number: u64) {
        (self.joined, self.first) = (number, number);
    }

    /// It begins to leave, and is not owed what has this number, nor what follows.
    pub fn leaves(&mut self, number: u64) {
        self.until = number;
    }

    /// Whether a leaving member has everything that it is owed. Always false for a member that stays.
    pub fn has_all(&self) -> bool {
        self.first >= self.until
    }

    /// A copy of a broadcast came, which was sent: whether this member was owed it. One that was sent
    /// before the member had joined, or after it had begun to leave, may come or not; but it comes once at
    /// most, and in the order of its sender.
    pub fn take(&mut self, number: u64, roster: &Roster) -> Result<bool, Unowed> {
        if number < self.joined {
            return self.take_early(number, roster).map(|()| false);
        }
        let Some(ahead) = number.checked_sub(self.first) else { return Err(Unowed::Twice) };
        if ahead == 0 && self.came.is_empty() {
            // The usual case: in the order in which they were sent.
            self.first += 1;
            return Ok(number < self.until);
        }
        let ahead = ahead as usize;
        if self.came.get(ahead) == Some(&true) {
            return Err(Unowed::Twice);
        }
        let sender = |number| roster.sent(number).map(|sent| sent.sender);
        let mut later = (ahead + 1..self.came.len()).filter(|later| self.came[*later]);
        if later.any(|later| sender(self.first + later as u64) == sender(number)) {
            return Err(Unowed::OutOfOrder);
        }
        if self.came.len() <= ahead {
            self.came.resize(ahead + 1, false);
        }
        self.came[ahead] = true;
        while self.came.front() == Some(&true) {
            self.came.pop_front();
            self.first += 1;
        }
        Ok(number < self.until)
    }

    /// A copy came of a broadcast that was sent before the member had joined.
    #[cold]
    fn take_early(&mut self, number: u64, roster: &Roster) -> Result<(), Unowed> {
        if self.early.contains(&number) {
            return Err(Unowed::Twice);
        }
        let has_joined = self.joined < u64::MAX;
        let since = if has_joined { self.joined..self.first } else { 0..0 };
        let ahead = (0..self.came.len()).filter(|ahead| self.came[*ahead]);
        let later = self.early.iter().copied().filter(|early| *early > number);
        // Of older ones nobody knows the sender any more: then what came is no broadcast either.
        let since = since.take(ON_THEIR_WAY);
        let mut later = later.chain(since).chain(ahead.map(|ahead| self.first + ahead as u64));
        let sender = |number| roster.sent(number).map(|sent| sent.sender);
        if later.any(|later| sender(later) == sender(number)) {
            return Err(Unowed::OutOfOrder);
        }
        self.early.push(number);
        Ok(())
    }

    /// The first that it has not got.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Whether this one has come, or is not owed.
    pub fn has(&self, number: u64) -> bool {
        let Some(ahead) = number.checked_sub(self.first) else { return true };
        self.came.get(ahead as usize) == Some(&true)
    }

    /// Those before `next` that it is owed and that have not come.
    pub fn missing(&self, next: u64) -> impl Iterator<Item = u64> {
        (self.first..next.min(self.until)).filter(|number| !self.has(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// A roster of broadcasts by these senders.
    fn roster(senders: &[u32]) -> Roster {
        let roster = Roster::new(None);
        for (number, sender) in senders.iter().enumerate() {
            assert_eq!(roster.send(*sender, 0), Ok(number as u64));
        }
        roster
    }

    fn joined(number: u64) -> Got {
        let mut got = Got::nothing();
        got.joins(number);
        got
    }

    #[test]
    fn each_comes_once_and_in_the_order_of_its_sender() {
        let roster = roster(&[1, 2, 1, 2, 3]);
        let mut got = joined(1);
        assert_eq!(got.take(0, &roster), Ok(false), "sent before it had joined");
        assert_eq!(got.take(2, &roster), Ok(true), "another sender's may overtake");
        assert_eq!(got.take(2, &roster), Err(Unowed::Twice));
        assert_eq!(got.take(3, &roster), Ok(true));
        assert_eq!(got.take(1, &roster), Err(Unowed::OutOfOrder), "3 is of the same sender");
        assert_eq!(got.missing(5).collect::<Vec<_>>(), [1, 4]);
        assert!(got.has(0) && !got.has(1) && got.has(2) && got.has(3) && !got.has(4));
    }

    #[test]
    fn who_leaves_is_owed_what_was_sent_before_and_no_more() {
        let roster = roster(&[1, 2, 1, 2, 3]);
        let mut got = joined(1);
        got.leaves(3);
        assert_eq!((got.take(4, &roster), got.has_all()), (Ok(false), false), "sent afterwards");
        assert_eq!(got.take(4, &roster), Err(Unowed::Twice));
        assert_eq!((got.take(1, &roster), got.has_all()), (Ok(true), false));
        assert_eq!(got.missing(5).collect::<Vec<_>>(), [2]);
        assert_eq!((got.take(2, &roster), got.has_all()), (Ok(true), true));
        assert_eq!(got.take(3, &roster), Ok(false));
        assert!(!joined(0).has_all(), "it stays");
    }

    #[test]
    fn what_came_before_it_joined_counts_too() {
        let roster = roster(&[1, 2, 1, 1]);
        let mut got = Got::nothing();
        assert_eq!(got.take(0, &roster), Ok(false));
        got.joins(3);
        assert_eq!(got.take(0, &roster), Err(Unowed::Twice));
        assert_eq!(got.take(3, &roster), Ok(true));
        assert_eq!(got.take(2, &roster), Err(Unowed::OutOfOrder));
        assert_eq!(got.take(1, &roster), Ok(false), "another sender's");
    }

    proptest! {
        /// Against a model that remembers everything.
        #[test]
        fn it_agrees_with_a_memory_of_everything(
            senders in prop::collection::vec(0..3_u32, 1..20),
            joins in 0..5_u64,
            stays in 0..20_u64,
            before in prop::collection::vec(0..5_u64, 0..4),
            copies in prop::collection::vec(0..20_u64, 0..60),
        ) {
            let roster = roster(&senders);
            let sent = senders.len() as u64;
            let until = joins + stays;
            let mut got = Got::nothing();
            let mut model = HashSet::new();
            let before = before.iter().map(|number| (*number, false));
            let copies = copies.iter().map(|number| (*number, true));
            let (mut has_joined, all) = (false, before.chain(copies));
            // Nothing of the time after the joining can come before it.
            let all = all.filter(|(number, is_after)| *number < sent && (*is_after || *number < joins));
            for (number, is_after) in all {
                if is_after && !has_joined {
                    has_joined = true;
                    got.joins(joins);
                    got.leaves(until);
                }
                let sender = senders[number as usize];
                let overtaken =
                    model.iter().any(|came| *came > number && senders[*came as usize] == sender);
                let expected = match number {
                    _ if model.contains(&number) => Err(Unowed::Twice),
                    _ if overtaken => Err(Unowed::OutOfOrder),
                    _ => Ok((joins..until).contains(&number)),
                };
                prop_assert_eq!(got.take(number, &roster), expected);
                if expected.is_ok() {
                    model.insert(number);
                }
                if has_joined {
                    let missing: Vec<u64> =
                        (joins..until.min(sent)).filter(|number| !model.contains(number)).collect();
                    prop_assert_eq!(got.missing(sent).collect::<Vec<_>>(), missing);
                    let all = (joins..until).all(|number| model.contains(&number));
                    prop_assert_eq!(got.has_all(), all);
                }
            }
        }
    }
}
