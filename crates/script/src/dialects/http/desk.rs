//! What a load thread keeps beside its connections.

use super::{
    due::Due,
    expected::Expected,
    memo::{Memo, Right},
    part::Part,
    salted::Answers,
};
use crate::time::Nanos;

/// The last right reply of each kind, and rooms for replies that come in pieces.
#[derive(Debug)]
pub struct Desk {
    /// This machine's time of day, since 1970.
    wall: fn() -> Nanos,
    /// Of each kind of reply.
    memos: Vec<Memo>,
    /// To be used again.
    #[expect(clippy::vec_box, reason = "they go to connections, which hold them by a pointer")]
    spare: Vec<Box<Part>>,
    /// How the last reply began that came in pieces and was right, without its last piece.
    shown_last: Vec<u8>,
    /// Replies so far, by their status.
    statuses: Box<[u64; STATUSES]>,
    /// A wrong reply that is whole does not make its connection useless.
    pub(super) tolerates: bool,
    /// What is verified when the load has ended, where that is so.
    pub(super) answers: Option<Answers>,
}

/// One more than the highest status (RFC 9110, section 15).
const STATUSES: usize = 600;

impl Desk {
    /// Most rooms that are kept for later.
    const MOST_SPARE: usize = 64;

    /// For so many kinds of replies; `wall` tells the time of day.
    pub(super) fn new(kinds: usize, wall: fn() -> Nanos, answers: Option<Answers>) -> Self {
        let memos = std::iter::repeat_with(Memo::default).take(kinds).collect();
        let spare = Vec::with_capacity(Self::MOST_SPARE);
        let statuses = Box::new([0; STATUSES]);
        Desk { wall, memos, spare, shown_last: Vec::new(), statuses, tolerates: false, answers }
    }

    /// What tells the time of day.
    #[inline]
    pub(super) fn wall(&self) -> fn() -> Nanos {
        self.wall
    }

    /// If `input` begins with a reply that is as right as one before: its length, and whether the
    /// connection ends with it. `None` says nothing.
    #[inline]
    pub(super) fn recognise(
        &mut self,
        input: &[u8],
        kind: u16,
        due: Due<'_>,
    ) -> Option<(usize, bool)> {
        let memo = &mut self.memos[usize::from(kind)];
        let known = memo.recognise(input, due);
        if known.is_some() {
            let status = memo.status();
            self.count(status);
        }
        known
    }

    /// A reply with this status came.
    #[inline]
    pub(super) fn count(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Replies so far, by their status.
    pub(super) fn statuses(&self) -> &[u64] {
        &*self.statuses
    }

    /// A whole reply of this kind was right.
    pub(super) fn learn(&mut self, right: Right<'_>, kind: u16, expected: &Expected) {
        self.memos[usize::from(kind)].learn(right, expected);
    }

    /// Room for a reply that comes in pieces.
    pub(super) fn room(&mut self) -> Box<Part> {
        self.spare.pop().unwrap_or_default()
    }

    /// How the reply began whose room came back last.
    pub(super) fn shown_last(&self) -> &[u8] {
        &self.shown_last
    }

    /// The room is not needed any more.
    pub(super) fn give_back(&mut self, mut room: Box<Part>) {
        room.swap_shown(&mut self.shown_last);
        if self.spare.len() < Self::MOST_SPARE {
            room.clear();
            self.spare.push(room);
        }
    }
}
