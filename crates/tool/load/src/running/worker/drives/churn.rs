//! A closed loop with a connection for every request, or for every conversation.

use crate::{
    Plan,
    running::worker::{
        driver::{Driver, Share},
        state::Worker,
    },
    sockets::connection::Connection,
};
use regatta_script::Dialect;

/// Needs no state.
pub(in crate::running::worker) struct Churn;

impl Driver for Churn {
    const CHURNS: bool = true;
    const ENDS_CONNECTIONS: bool = true;

    fn new(_plan: &Plan, _share: Share) -> Self {
        Churn
    }

    /// When no requests remain, a few connections stay open to the end, to detect unsolicited bytes.
    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        let Connection { cursor, talk, .. } = &worker.connections[slot as usize];
        let asks_more = worker.depth > 0 && worker.left > 0;
        let goes_on = cursor.is_within_conversation(worker.dialect.script());
        if asks_more && goes_on && !worker.dialect.ends(talk) {
            worker.ask(slot, 1);
        } else if asks_more {
            worker.close(slot);
            worker.connect(slot);
        } else if !worker.keeps(slot) {
            worker.close(slot);
        }
    }
}
