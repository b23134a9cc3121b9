//! A closed loop: every connection asks for as much again as was answered.

use crate::{
    Plan,
    worker::{
        driver::{Driver, Share},
        state::Worker,
    },
};
use regatta_script::Dialect;

/// Needs no state: what is outstanding says it all.
pub(in crate::worker) struct Closed;

impl Driver for Closed {
    fn new(_plan: &Plan, _share: Share) -> Self {
        Closed
    }

    #[inline]
    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.fill(slot);
    }
}
