//! A closed loop: every connection sends one more request for each reply.

use crate::{
    Plan,
    running::worker::{
        driver::{Driver, Share},
        state::Worker,
    },
};
use regatta_script::Dialect;

/// Needs no state: the number of outstanding requests suffices.
pub(in crate::running::worker) struct Closed;

impl Driver for Closed {
    fn new(_plan: &Plan, _share: Share) -> Self {
        Closed
    }

    #[inline]
    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.fill(slot);
    }
}
