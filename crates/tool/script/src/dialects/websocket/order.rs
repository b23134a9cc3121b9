//! One order of all broadcasts for all members, compared without keeping any order: each broadcast has a word for
//! what the first member got directly before it, and each member keeps what it got last.
//!
//! Equal places of all broadcasts are one order: two sequences of the same broadcasts differ first where one
//! broadcast has two predecessors. A member that misses some, or joined later, has a part of the order, and its
//! first broadcast has no predecessor; so of a new place the predecessors are followed, too. A second word
//! connects the two parts that a member has before and after a gap.

use super::roster::{Fate, Further, Roster};
use std::{iter, sync::atomic::Ordering::*};

/// Number of predecessors that are followed from a broadcast to find another one among them.
pub(super) const PREDECESSORS: usize = 64;

/// What a member got directly before a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not known: it got nothing since it joined.
    Unknown,
    /// Nothing, and it joined before the first broadcast.
    First,
    /// This broadcast.
    After(u64),
    /// This broadcast, and then a gap: not directly, but before.
    Behind(u64),
}

impl Place {
    /// The word of a place that can be compared; 0 for one that cannot.
    fn word(self) -> u64 {
        match self {
            Place::Unknown | Place::Behind(_) => 0,
            Place::First => 1,
            Place::After(number) => number + 2,
        }
    }

    fn of_word(word: u64) -> Place {
        match word {
            0 => Place::Unknown,
            1 => Place::First,
            number => Place::After(number - 2),
        }
    }

    /// The place of what comes after a gap that lost something.
    pub fn after_gap(self) -> Place {
        match self {
            Place::After(number) | Place::Behind(number) => Place::Behind(number),
            Place::Unknown | Place::First => Place::Unknown,
        }
    }
}

/// How a member's order differs from that of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherOrder {
    /// Another member got the broadcast at this place.
    At(Place),
    /// Other members got it before this one, after which it came now.
    Before(u64),
    /// Another member got this one after it, which came before it now.
    Behind(u64),
}

impl Roster {
    /// As [`Roster::check_place`], of a broadcast that the member is not owed any longer. It is not compared if its
    /// words belong to a later one by now.
    ///
    /// # Errors
    /// The other order.
    pub fn check_late_place(&self, number: u64, place: Place) -> Result<(), OtherOrder> {
        let _lock = self.lock();
        match self.fate(number) {
            Some(Fate::Owed) => self.check_place(number, place),
            _ => Ok(()),
        }
    }

    /// Compares the place at which a member gets a broadcast that it is owed with that of the first member that
    /// got it.
    ///
    /// # Errors
    /// The other order.
    #[inline]
    pub fn check_place(&self, number: u64, place: Place) -> Result<(), OtherOrder> {
        if let Place::Behind(before) = place {
            return self.check_behind(number, before);
        }
        if place == Place::Unknown {
            return Ok(());
        }
        let (word, is) = (self.further(number, Further::After), place.word());
        match word.load(Relaxed) {
            0 => match word.compare_exchange(0, is, SeqCst, SeqCst) {
                Err(other) if other != is => Err(OtherOrder::At(Place::of_word(other))),
                Err(_) => Ok(()),
                Ok(_) => self.check_predecessors(number, place),
            },
            other if other == is => Ok(()),
            other => Err(OtherOrder::At(Place::of_word(other))),
        }
    }

    /// Whether two places of a broadcast may be those of one order, because only broadcasts lie between them that not
    /// every member gets ([`Roster::is_uncertain`]). One whose result is still to come is either published, and then
    /// missing at a member that got none, or that result says that it is not known.
    #[cold]
    pub fn may_be_one(&self, number: u64, places: [Place; 2]) -> bool {
        let before = |place: &Place| match *place {
            Place::After(before) if self.is_uncertain(before) => {
                Some(Place::of_word(self.further(before, Further::After).load(SeqCst)))
            }
            _ => None,
        };
        let [ours, theirs] =
            places.map(|place| iter::successors(Some(place), before).take(PREDECESSORS));
        // It cannot be before itself.
        let is_circle = ours.clone().chain(theirs.clone()).any(|one| one == Place::After(number));
        let is_open = |one| one == Place::Unknown;
        let mut meet = ours.map(|one| is_open(one) || theirs.clone().any(|other| one == other));
        !is_circle && (meet.any(|meets| meets) || theirs.clone().any(is_open))
    }

    /// Checks that a broadcast is not among its own [`PREDECESSORS`], which two members may have set, and that no
    /// member got one of them after it, behind a gap.
    fn check_predecessors(&self, number: u64, place: Place) -> Result<(), OtherOrder> {
        let Place::After(before) = place else { return Ok(()) };
        let mut at = before;
        for _ in 0..PREDECESSORS {
            let word = self.further(at, Further::After).load(SeqCst);
            let behind = self.further(at, Further::Behind).load(SeqCst);
            // After the words: they may belong to a later broadcast.
            if !self.is_known(at) {
                break;
            }
            if behind == number + 1 {
                return Err(OtherOrder::Behind(at));
            }
            match Place::of_word(word) {
                Place::After(other) if other == number => return Err(OtherOrder::Before(before)),
                Place::After(other) => at = other,
                _ => break,
            }
        }
        Ok(())
    }

    /// Checks that a broadcast, which came behind `before` and a gap, is not among the [`PREDECESSORS`] of that one.
    /// Those may be set only later: then [`Roster::check_predecessors`] of `before` finds the word that is set here.
    /// Of several members only the first one that got a gap before this broadcast sets it.
    #[cold]
    fn check_behind(&self, number: u64, before: u64) -> Result<(), OtherOrder> {
        let word = self.further(number, Further::Behind);
        let _ = word.compare_exchange(0, before + 1, SeqCst, SeqCst);
        let mut at = before;
        for _ in 0..PREDECESSORS {
            let word = self.further(at, Further::After).load(SeqCst);
            match Place::of_word(word) {
                _ if !self.is_known(at) => break,
                Place::After(other) if other == number => return Err(OtherOrder::Before(before)),
                Place::After(other) => at = other,
                _ => break,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A roster with so many broadcasts, all owed to one member.
    fn roster(broadcasts: u64) -> Roster {
        let roster = Roster::new(None);
        roster.join();
        (0..broadcasts).for_each(|_| assert!(roster.send(1, 0).is_ok()));
        roster
    }

    #[test]
    fn two_places_of_one_broadcast_are_two_orders() {
        let roster = roster(3);
        let check = |number, place| roster.check_place(number, place);
        assert_eq!(check(0, Place::First), Ok(()));
        assert_eq!(check(1, Place::Unknown), Ok(()), "a member that joined later");
        assert_eq!(check(1, Place::After(0)), Ok(()));
        assert_eq!(check(1, Place::After(0)), Ok(()));
        assert_eq!(check(1, Place::After(2)), Err(OtherOrder::At(Place::After(0))));
        assert_eq!(check(0, Place::After(2)), Err(OtherOrder::At(Place::First)));
        assert_eq!(check(2, Place::After(1)), Ok(()));
    }

    /// One member gets all in order, another one the last of them, a gap, and the first of them.
    #[test]
    fn an_order_that_a_gap_divides_is_compared_before_and_after_the_others_get_it() {
        for (places, is_found) in [(1, true), (PREDECESSORS as u64, true), (200, false)] {
            let last = places + 1;
            let in_order = |roster: &Roster| {
                roster.check_place(0, Place::First)?;
                (1..=last)
                    .try_for_each(|number| roster.check_place(number, Place::After(number - 1)))
            };
            let over_a_gap = |roster: &Roster| roster.check_place(1, Place::Behind(last));
            let afterwards = roster(last + 1);
            assert_eq!(in_order(&afterwards), Ok(()));
            let expected = if is_found { Err(OtherOrder::Before(last)) } else { Ok(()) };
            assert_eq!(over_a_gap(&afterwards), expected, "{places} places");
            let before = roster(last + 1);
            assert_eq!(over_a_gap(&before), Ok(()));
            let expected = if is_found { Err(OtherOrder::Behind(1)) } else { Ok(()) };
            assert_eq!(in_order(&before), expected, "{places} places");
        }
    }

    #[test]
    fn the_right_order_over_a_gap_is_no_other_one() {
        for gap_first in [false, true] {
            let roster = roster(4);
            let in_order = || {
                roster.check_place(0, Place::First).unwrap();
                (1..4).for_each(|n| roster.check_place(n, Place::After(n - 1)).unwrap());
            };
            let over_a_gap = || {
                roster.check_place(3, Place::After(0).after_gap()).unwrap();
                roster.check_place(2, Place::After(1).after_gap().after_gap()).unwrap();
            };
            if gap_first {
                over_a_gap();
                in_order();
            } else {
                in_order();
                over_a_gap();
            }
        }
    }
}
