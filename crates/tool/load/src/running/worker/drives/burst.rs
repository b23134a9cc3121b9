//! A burst on one load thread: which slot belongs to which instance, how many requests each connection
//! has still to send, and when each instance got its last reply. A finished connection is closed and not
//! reopened.

use crate::{
    Plan,
    clock::{MS, Nanos},
    counts::tally::Count,
    running::worker::{
        driver::{Driver, Share},
        state::{KEPT, Worker},
    },
    sockets::connection::{Connection, State, Times},
};
use regatta_record::Drive;
use regatta_script::Dialect;

/// The instances of one load thread. Slots are assigned to them in turn, so that all start together.
pub(in crate::running::worker) struct Burst {
    /// Requests that each slot has not sent yet.
    left: Vec<u32>,
    /// When the last reply of each instance came; 0 for none.
    last_replies: Vec<Nanos>,
    /// Which slots have got no reply yet, and how many.
    unopened: (Vec<bool>, usize),
    /// Finished connections, while others may still wait for the server to accept them.
    parked: Vec<u32>,
    parked_since: Nanos,
}

/// Maximum time that finished connections stay open to learn whether others still wait for the server to
/// accept them. Threads of other processes learn that with the delay of a message.
const PARKED: Nanos = 10 * MS;

impl Burst {
    /// Handles a finished connection. Some of the last stay open to the end, to detect unsolicited
    /// bytes, but not while another connection may wait for the server to accept it.
    fn through<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        let Burst { unopened, parked, parked_since, .. } = &mut worker.drive;
        if worker.shared.opened() == worker.plan.connections {
            if !worker.keeps(slot) {
                worker.close(slot);
            }
        } else if unopened.1 == 0 && parked.len() < KEPT as usize {
            if parked.is_empty() {
                *parked_since = worker.now;
            }
            parked.push(slot);
        } else {
            worker.close(slot);
        }
    }

    fn note_reply(&mut self, slot: u32, at: Nanos) {
        let instance = slot as usize % self.last_replies.len();
        self.last_replies[instance] = at;
    }
}

impl Driver for Burst {
    const ENDS_CONNECTIONS: bool = true;
    const REOPENS_LOST: bool = false;

    /// One thread runs all connections of an instance. Every slot sends the same number of requests.
    fn new(plan: &Plan, share: Share) -> Self {
        let (instances, requests) = match plan.drive {
            Drive::Burst(burst) => (share.part.share(burst.instances as usize), burst.requests),
            _ => (0, 0),
        };
        Burst {
            left: vec![requests; share.active],
            last_replies: vec![0; instances],
            unopened: (vec![true; share.active], share.active),
            parked: Vec::new(),
            parked_since: 0,
        }
    }

    fn answered<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32, replies: u32) {
        worker.drive.note_reply(slot, worker.now);
        worker.record(slot, replies);
    }

    /// Sends further requests on the connection, or finishes it.
    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        let owed = worker.connections[slot as usize].cursor.owed();
        let k = worker.depth_of(slot).saturating_sub(owed);
        let left = &mut worker.drive.left[slot as usize];
        let k = k.min(*left);
        *left -= k;
        match (k, owed) {
            (0, 0) if const { D::MULTIPLEXED } && *left > 0 => {}
            (0, 0) => Burst::through(worker, slot),
            (0, _) => {}
            _ => worker.ask(slot, k),
        }
    }

    fn turns<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        if worker.drive.parked.is_empty() {
            return;
        }
        if worker.shared.opened() == worker.plan.connections {
            let parked = std::mem::take(&mut worker.drive.parked);
            parked.into_iter().for_each(|slot| Burst::through(worker, slot));
        } else if worker.now.saturating_sub(worker.drive.parked_since) > PARKED {
            let parked = std::mem::take(&mut worker.drive.parked);
            parked.into_iter().for_each(|slot| worker.close(slot));
        }
    }

    fn opened<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        let (unopened, left) = &mut worker.drive.unopened;
        if std::mem::take(&mut unopened[slot as usize]) {
            *left -= 1;
            worker.shared.one_opened();
        }
    }

    fn connects<T>(&mut self, slot: u32, _connection: &Connection<T>, _times: &Times) {
        self.left[slot as usize] -= 1;
    }

    fn closes<T>(&mut self, slot: u32, connection: &Connection<T>, _times: &Times) {
        if connection.state == State::Connecting {
            self.takes_back(slot, connection.cursor.owed());
        }
    }

    fn takes_back(&mut self, slot: u32, requests: u32) {
        self.left[slot as usize] += requests;
    }

    fn gives_up(&mut self, slot: u32) -> u32 {
        std::mem::take(&mut self.left[slot as usize])
    }

    fn has_more(&self, slot: u32) -> bool {
        self.left[slot as usize] > 0
    }

    fn answered_wrong<T>(&mut self, slot: u32, _: &Connection<T>, _: &Times, now: Nanos) {
        self.note_reply(slot, now);
    }

    fn count(self, count: &mut Count) {
        count.last_replies = self.last_replies;
    }
}
