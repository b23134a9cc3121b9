//! State that a load thread keeps for all of its connections.

use super::{
    criteria::Criteria,
    expected::Expected,
    memo::{Memo, Right},
    partial_reply::Part,
    salted::Answers,
};
use crate::time::Nanos;

/// The last correct reply of each kind, buffers for replies that are parsed, counts of statuses, and
/// answers to be verified later.
#[derive(Debug)]
pub struct ThreadState {
    /// Returns this machine's time of day, in nanoseconds since 1970.
    wall: fn() -> Nanos,
    /// One for each kind of reply.
    memos: Vec<Memo>,
    /// Buffers to be reused.
    #[expect(clippy::vec_box, reason = "they go to connections, which hold them by a pointer")]
    spare: Vec<Box<Part>>,
    /// The start of the last correct reply that was parsed, without its last piece; empty if it
    /// arrived in one piece.
    shown_last: Vec<u8>,
    /// Number of replies so far, by status; 0 counts malformed ones without a head.
    statuses: Box<[u64; STATUSES]>,
    /// Whether a complete but wrong reply leaves its connection usable.
    pub(super) tolerates: bool,
    /// Answers to be verified after the load has ended, if the workload has such answers.
    pub(super) answers: Option<Answers>,
}

/// One more than the highest status (RFC 9110, section 15).
pub(in crate::dialects) const STATUSES: usize = 600;

impl ThreadState {
    /// Maximum number of buffers kept for reuse.
    const MOST_SPARE: usize = 64;

    /// Creates the state for `kinds` kinds of replies; `wall` returns the time of day.
    pub(super) fn new(kinds: usize, wall: fn() -> Nanos, answers: Option<Answers>) -> Self {
        let memos = std::iter::repeat_with(Memo::default).take(kinds).collect();
        let spare = Vec::with_capacity(Self::MOST_SPARE);
        let statuses = Box::new([0; STATUSES]);
        ThreadState {
            wall,
            memos,
            spare,
            shown_last: Vec::new(),
            statuses,
            tolerates: false,
            answers,
        }
    }

    /// Returns the function that returns the time of day.
    #[inline]
    pub(super) fn wall(&self) -> fn() -> Nanos {
        self.wall
    }

    /// If `input` starts with a reply that is known to be correct from an earlier one, returns its
    /// length and whether the connection closes after it. `None` means not recognised, not wrong.
    #[inline]
    pub(super) fn recognise(
        &mut self,
        input: &[u8],
        kind: u16,
        criteria: Criteria<'_>,
    ) -> Option<(usize, bool)> {
        let memo = &mut self.memos[usize::from(kind)];
        let known = memo.recognise(input, criteria);
        if known.is_some() {
            let status = memo.status();
            self.count(status);
        }
        known
    }

    /// Counts a reply with this status.
    #[inline]
    pub(super) fn count(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Number of replies so far, by status.
    pub(super) fn statuses(&self) -> &[u64] {
        &*self.statuses
    }

    /// Remembers a complete, correct reply of this kind.
    pub(super) fn learn(&mut self, right: Right<'_>, kind: u16, expected: &Expected) {
        self.memos[usize::from(kind)].learn(right, expected);
    }

    /// Returns a buffer for a reply that is parsed.
    pub(super) fn take_buffer(&mut self) -> Box<Part> {
        self.spare.pop().unwrap_or_default()
    }

    /// Returns the start of the reply whose buffer was returned last, without its last piece.
    pub(super) fn shown_last(&self) -> &[u8] {
        &self.shown_last
    }

    /// Takes back a buffer that is no longer needed.
    pub(super) fn give_back(&mut self, mut buffer: Box<Part>) {
        buffer.swap_shown(&mut self.shown_last);
        if self.spare.len() < Self::MOST_SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
