//! Bookkeeping of the members of one load thread that join and leave: how long each stays, and which are
//! leaving. `worker::passing` explains the purpose.

use crate::{
    Plan,
    clock::{Nanos, SECOND},
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

/// Maximum stay; the mean is half of it.
const LONGEST_STAY: Nanos = 2 * SECOND;

/// The members of one load thread that join and leave.
pub(crate) struct Passing {
    /// The first of their slots.
    first: u32,
    /// State of the member in each slot.
    members: Vec<Member>,
    /// When members are due to leave, and their slots.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Slots of leaving members, including those whose connection was lost meanwhile.
    leaving: Vec<u32>,
    has_begun: bool,
    timeout: Nanos,
    random: SmallRng,
}

/// State of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// Not connected, or still connecting.
    Away,
    /// Stays until this moment.
    Stays(Nanos),
    /// Is leaving, and waits for pending messages.
    Leaves,
    /// Has sent a Close frame. This is the deadline for the server's answer.
    Closes(Nanos),
}

impl Passing {
    /// The members of load thread `thread`, in its slots `first..end`. None is connected yet.
    pub fn new(plan: &Plan, thread: usize, first: usize, end: usize) -> Passing {
        let seed = plan.seed ^ (thread as u64 + 1) << 40;
        Passing {
            first: first as u32,
            members: vec![Member::Away; end - first],
            due: BinaryHeap::new(),
            leaving: Vec::new(),
            has_begun: false,
            timeout: plan.timeout.as_nanos() as Nanos,
            random: SmallRng::seed_from_u64(seed),
        }
    }

    /// Their slots.
    pub fn slots(&self) -> Range<u32> {
        self.first..self.first + self.members.len() as u32
    }

    /// Whether this slot is one of theirs.
    #[inline]
    pub fn has(&self, slot: u32) -> bool {
        slot >= self.first
    }

    /// Whether there are no such members at all.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns true on the first call only, when the first members are to be connected.
    pub fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    fn member(&mut self, slot: u32) -> &mut Member {
        &mut self.members[(slot - self.first) as usize]
    }

    /// Records that the member of this slot got its first reply: its stay begins.
    pub fn comes(&mut self, slot: u32, now: Nanos) {
        let until = now + self.random.random_range(0..LONGEST_STAY);
        *self.member(slot) = Member::Stays(until);
        self.due.push(Reverse((until, slot)));
    }

    /// Records that the connection of a slot is closed. Does nothing for other slots.
    pub fn record_disconnect(&mut self, slot: u32) {
        if self.has(slot) {
            *self.member(slot) = Member::Away;
        }
    }

    /// Whether the member of this slot waits for the answer to its Close frame.
    pub fn is_closing(&self, slot: u32) -> bool {
        matches!(self.at(slot), Some(Member::Closes(_)))
    }

    /// Number of members that wait for the answer to their Close frame.
    pub fn closing(&self) -> u64 {
        let closing = self.members.iter().filter(|member| matches!(member, Member::Closes(_)));
        closing.count() as u64
    }

    /// Whether the answer to the Close frame of this slot has missed its deadline.
    pub fn is_overdue(&self, slot: u32, now: Nanos) -> bool {
        matches!(self.at(slot), Some(Member::Closes(until)) if until < now)
    }

    fn at(&self, slot: u32) -> Option<Member> {
        let nth = slot.checked_sub(self.first)?;
        self.members.get(nth as usize).copied()
    }

    /// Takes the next slot whose member has stayed long enough, and marks the member as leaving.
    pub fn next_due(&mut self, now: Nanos) -> Option<u32> {
        while let Some(&Reverse((due, slot))) = self.due.peek()
            && due <= now
        {
            self.due.pop();
            // Its connection may have been lost and replaced by another member meanwhile.
            if self.at(slot) == Some(Member::Stays(due)) {
                *self.member(slot) = Member::Leaves;
                self.leaving.push(slot);
                return Some(slot);
            }
        }
        None
    }

    /// Takes the slot of a leaving member for which `may_go` returns true.
    pub fn next_to_go(&mut self, may_go: impl Fn(u32) -> bool) -> Option<u32> {
        let members = &self.members;
        let leaves = |slot: u32| members[(slot - self.first) as usize] == Member::Leaves;
        self.leaving.retain(|slot| leaves(*slot));
        let nth = self.leaving.iter().position(|slot| may_go(*slot))?;
        Some(self.leaving.swap_remove(nth))
    }

    /// Decides at random how a member closes: true for a reset, false for a Close frame.
    pub fn resets(&mut self) -> bool {
        self.random.random()
    }

    /// Records that the member of this slot sends a Close frame, and sets the deadline for the answer.
    pub fn closes(&mut self, slot: u32, now: Nanos) {
        *self.member(slot) = Member::Closes(now + self.timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_script::Workload;

    const FIRST: u32 = 5;

    /// Three slots: 5 to 7.
    fn passing() -> Passing {
        let hub = Workload::parse("hub").unwrap();
        let plan = Plan::closed(([127, 0, 0, 1], 1).into(), hub);
        Passing::new(&plan, 0, FIRST as usize, FIRST as usize + 3)
    }

    #[test]
    fn a_member_leaves_after_its_stay_and_closes_once_permitted() {
        let mut passing = passing();
        assert!(passing.begin() && !passing.begin() && !passing.is_none());
        assert!(passing.slots().eq(5..8) && !passing.has(4));
        (5..8).for_each(|slot| passing.comes(slot, 100));
        let due: Vec<u32> = std::iter::from_fn(|| passing.next_due(100 + LONGEST_STAY)).collect();
        assert_eq!(due.len(), 3, "no member stays for longer");
        assert_eq!(passing.next_to_go(|_| false), None);
        assert_eq!(passing.next_to_go(|slot| slot == 6), Some(6));
        assert_eq!(passing.next_to_go(|slot| slot == 6), None, "it leaves only once");
        // Its connection is lost, and another member takes the slot.
        passing.record_disconnect(7);
        passing.comes(7, 200);
        assert_eq!(passing.next_to_go(|slot| slot == 7), None, "this one stays");
        assert_eq!(passing.next_to_go(|_| true), Some(5));
    }

    #[test]
    fn a_lost_member_is_no_longer_due_to_leave() {
        let mut passing = passing();
        passing.comes(5, 0);
        passing.record_disconnect(5);
        assert_eq!(passing.next_due(LONGEST_STAY), None);
    }

    #[test]
    fn a_member_stays_as_long_as_drawn_for_it_and_not_for_the_lost_one_before_it() {
        let mut passing = passing();
        let stays = |passing: &mut Passing, now| {
            passing.comes(5, now);
            let Member::Stays(until) = *passing.member(5) else { unreachable!() };
            until
        };
        let (mut lost, mut until) = (stays(&mut passing, 0), 0);
        while until <= lost {
            lost = lost.max(until);
            passing.record_disconnect(5);
            until = stays(&mut passing, lost);
        }
        assert_eq!(passing.next_due(until - 1), None);
        assert_eq!(passing.next_due(until), Some(5));
    }

    #[test]
    fn the_answer_to_a_close_frame_has_the_timeout_of_a_reply() {
        let mut passing = passing();
        passing.closes(6, 100);
        let until = 100 + 10 * SECOND;
        assert!(passing.is_closing(6) && !passing.is_closing(5) && !passing.is_closing(2));
        assert!(!passing.is_overdue(6, until) && passing.is_overdue(6, until + 1));
        assert_eq!(passing.closing(), 1);
        passing.record_disconnect(6);
        assert_eq!((passing.is_closing(6), passing.closing()), (false, 0));
    }
}
