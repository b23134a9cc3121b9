//! Members that come and go beside those that stay, where servers send unasked: see [`Plan::passing`].
//!
//! A member that leaves is owed nothing that is sent from then on, and waits until it has what was sent
//! before. So nothing that it is owed goes unchecked, and what is still on its way to it when it goes is what
//! the server was sending meanwhile.

use super::{driver::Driver, state::Worker};
use crate::{
    Plan,
    clock::{Nanos, SECOND},
    connection::Connection,
    shared::Phase,
    socket,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_script::Dialect;
use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

/// Longest stay; the mean is half of it.
const LONGEST_STAY: Nanos = 2 * SECOND;

/// The members of one load thread that come and go.
pub(super) struct Passing {
    /// The first of their slots.
    first: u32,
    /// How far the member of each slot is.
    members: Vec<Member>,
    /// When to look at which slot, since its member may leave.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Those that have begun to leave, and others that were lost since then.
    leaving: Vec<u32>,
    has_begun: bool,
    timeout: Nanos,
    random: SmallRng,
}

/// How far a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    /// It is not there, or on its way.
    Away,
    /// It stays until this moment.
    Stays(Nanos),
    /// It waits for what it is owed.
    Leaves,
    /// It has sent a Close frame, and the answer is due until this moment.
    Closes(Nanos),
}

impl Passing {
    /// Of the thread of this number, whose slots they have from `first` to `end`. Nobody has come.
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

    fn member(&mut self, slot: u32) -> &mut Member {
        &mut self.members[(slot - self.first) as usize]
    }

    /// The first reply came in this slot.
    pub fn comes(&mut self, slot: u32, now: Nanos) {
        let until = now + self.random.random_range(0..LONGEST_STAY);
        *self.member(slot) = Member::Stays(until);
        self.due.push(Reverse((until, slot)));
    }

    /// The connection of a slot is closed, if it is one of theirs.
    pub fn is_away(&mut self, slot: u32) {
        if self.has(slot) {
            *self.member(slot) = Member::Away;
        }
    }

    /// Whether the answer to a Close frame is due in this slot.
    pub fn is_closing(&self, slot: u32) -> bool {
        matches!(self.at(slot), Some(Member::Closes(_)))
    }

    /// In how many slots it is.
    pub fn closing(&self) -> u64 {
        let closing = self.members.iter().filter(|member| matches!(member, Member::Closes(_)));
        closing.count() as u64
    }

    /// Whether it has not come in time.
    pub fn is_overdue(&self, slot: u32, now: Nanos) -> bool {
        matches!(self.at(slot), Some(Member::Closes(until)) if until < now)
    }

    fn at(&self, slot: u32) -> Option<Member> {
        let nth = slot.checked_sub(self.first)?;
        self.members.get(nth as usize).copied()
    }

    /// The next slot whose member has stayed long enough.
    fn next_due(&mut self, now: Nanos) -> Option<u32> {
        while let Some(&Reverse((due, slot))) = self.due.peek()
            && due <= now
        {
            self.due.pop();
            // Its connection may have been lost meanwhile, and another member have come.
            if self.at(slot) == Some(Member::Stays(due)) {
                return Some(slot);
            }
        }
        None
    }
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// The load begins: the first members come.
    pub(super) fn begin_to_pass(&mut self) {
        if !std::mem::replace(&mut self.passing.has_begun, true) {
            self.waiting.extend(self.passing.slots().map(|slot| Reverse((self.now, slot))));
        }
    }

    /// A turn of the loop is over: members leave whose time it is.
    #[inline]
    pub(super) fn pass(&mut self) {
        if !self.passing.members.is_empty() {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        if !self.comes_and_goes() {
            return;
        }
        while let Some(slot) = self.passing.next_due(self.now) {
            *self.passing.member(slot) = Member::Leaves;
            self.passing.leaving.push(slot);
            self.dialect.leave(&mut self.connections[slot as usize].talk);
        }
        let mut nth = 0;
        while let Some(&slot) = self.passing.leaving.get(nth) {
            let is_leaving = self.passing.at(slot) == Some(Member::Leaves);
            if is_leaving && !self.dialect.may_go(&self.connections[slot as usize].talk) {
                nth += 1;
                continue;
            }
            self.passing.leaving.swap_remove(nth);
            if is_leaving {
                self.go(slot);
            }
        }
    }

    /// Whether members come and go in this phase.
    fn comes_and_goes(&self) -> bool {
        matches!(self.phase, Phase::WarmingUp | Phase::Measuring)
    }

    /// A member goes that has all that it is owed.
    fn go(&mut self, slot: u32) {
        let Connection { socket, talk, aside, waits_to_write, .. } =
            &mut self.connections[slot as usize];
        let resets = self.passing.random.random();
        if resets && let Some(socket) = socket {
            // Where the kernel refuses, it ends as any other.
            let _ = socket::reset_on_close(socket);
            return self.has_left(slot);
        }
        self.dialect.say_goodbye(talk, aside);
        let waits = *waits_to_write;
        *self.passing.member(slot) = Member::Closes(self.now + self.passing.timeout);
        if !waits {
            self.write(slot);
        }
    }

    /// A member has left: another one comes.
    pub(super) fn has_left(&mut self, slot: u32) {
        self.count.passed += 1;
        self.close(slot);
        if self.comes_and_goes() {
            self.waiting.push(Reverse((self.now, slot)));
        }
    }
}
