//! What one member has got of the broadcasts that it is owed: each once, and those of one sender in order.

use super::roster::Roster;
use std::collections::VecDeque;

/// What a member has got.
#[derive(Debug)]
pub(super) struct Got {
    /// The first that it is owed.
    joined: u64,
    /// The first that it has not got.
    first: u64,
    /// Of those from there on: which have come.
    came: VecDeque<bool>,
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
    /// A member that is owed what has this number, and all that follows.
    pub fn from(joined: u64) -> Got {
        Got { joined, first: joined, came: VecDeque::new() }
    }

    /// A copy of a broadcast came, which was sent: whether this member was owed it. One that was sent
    /// before the member had joined may come or not.
    pub fn take(&mut self, number: u64, roster: &Roster) -> Result<bool, Unowed> {
        if number < self.joined {
            return Ok(false);
        }
        let Some(ahead) = number.checked_sub(self.first) else { return Err(Unowed::Twice) };
        if ahead == 0 && self.came.is_empty() {
            // The usual case: in the order in which they were sent.
            self.first += 1;
            return Ok(true);
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
        Ok(true)
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

    /// Those before `next` that have not come.
    pub fn missing(&self, next: u64) -> impl Iterator<Item = u64> {
        (self.first..next).filter(|number| !self.has(*number))
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

    #[test]
    fn each_comes_once_and_in_the_order_of_its_sender() {
        let roster = roster(&[1, 2, 1, 2, 3]);
        let mut got = Got::from(1);
        assert_eq!(got.take(0, &roster), Ok(false), "sent before it had joined");
        assert_eq!(got.take(2, &roster), Ok(true), "another sender's may overtake");
        assert_eq!(got.take(2, &roster), Err(Unowed::Twice));
        assert_eq!(got.take(3, &roster), Ok(true));
        assert_eq!(got.take(1, &roster), Err(Unowed::OutOfOrder), "3 is of the same sender");
        assert_eq!(got.missing(5).collect::<Vec<_>>(), [1, 4]);
        assert!(got.has(0) && !got.has(1) && got.has(2) && got.has(3) && !got.has(4));
    }

    proptest! {
        /// Against a model that remembers everything.
        #[test]
        fn it_agrees_with_a_memory_of_everything(
            senders in prop::collection::vec(0..3_u32, 1..20),
            joined in 0..5_u64,
            copies in prop::collection::vec(0..20_u64, 0..60),
        ) {
            let roster = roster(&senders);
            let mut got = Got::from(joined);
            let mut model = HashSet::new();
            for number in copies.into_iter().filter(|number| *number < senders.len() as u64) {
                let sender = senders[number as usize];
                let overtaken =
                    model.iter().any(|came| *came > number && senders[*came as usize] == sender);
                let expected = match number {
                    _ if number < joined => Ok(false),
                    _ if model.contains(&number) => Err(Unowed::Twice),
                    _ if overtaken => Err(Unowed::OutOfOrder),
                    _ => Ok(true),
                };
                prop_assert_eq!(got.take(number, &roster), expected);
                if expected == Ok(true) {
                    model.insert(number);
                }
                let missing: Vec<u64> = (joined..senders.len() as u64)
                    .filter(|number| !model.contains(number))
                    .collect();
                prop_assert_eq!(got.missing(senders.len() as u64).collect::<Vec<_>>(), missing);
            }
        }
    }
}
