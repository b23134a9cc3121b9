//! State that a load thread keeps for all of its connections.

use crate::{
    dialects::http::reply::{salted::Answers, thread_state::STATUSES},
    time::Nanos,
};

/// Counts of statuses, and what checks need.
#[derive(Debug)]
pub struct ThreadState {
    /// Returns this machine's time of day, in nanoseconds since 1970.
    pub(super) wall: fn() -> Nanos,
    /// Number of responses so far, by status.
    statuses: Box<[u64; STATUSES]>,
    /// Whether a complete but wrong response leaves its connection usable.
    pub(super) tolerates: bool,
    /// The lowest number of streams that a server permitted.
    pub(super) lowest_limit: u32,
    /// Answers to be verified after the load has ended, if the workload has such answers.
    pub(super) answers: Option<Answers>,
}

impl ThreadState {
    pub(super) fn new(wall: fn() -> Nanos, answers: Option<Answers>) -> Self {
        let statuses = Box::new([0; STATUSES]);
        ThreadState { wall, statuses, tolerates: false, lowest_limit: u32::MAX, answers }
    }

    /// Counts a response with this status.
    #[inline]
    pub(super) fn count(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Number of responses so far, by status.
    pub(super) fn statuses(&self) -> &[u64] {
        &*self.statuses
    }
}
