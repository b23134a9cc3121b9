//! A closed loop with a bound on the requests in flight over all connections: connections take turns,
//! and each reply permits one more request.

use super::turns::Turns;
use crate::{
    Plan,
    clock::Nanos,
    running::worker::{
        driver::{Driver, Share},
        state::Worker,
    },
    sockets::connection::{Connection, State, Times},
};
use regatta_record::Drive;
use regatta_script::Dialect;

/// The number of requests that a load thread may still send, and which connection sends the next one.
pub(in crate::running::worker) struct Bounded {
    turns: Turns,
    /// How many more requests may be outstanding. The first request of a connection does not count,
    /// unless the connection is opened in its turn.
    left: u32,
}

impl Bounded {
    /// Sends as many requests as the bound and the connections permit.
    fn send<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        while worker.depth > 0
            && let Bounded { turns, left: 1.. } = &mut worker.drive
        {
            let Some((slot, since)) = turns.next() else { return };
            let connection = &worker.connections[slot as usize];
            let (owed, depth) = (connection.cursor.owed(), worker.depth_of(slot));
            let Bounded { turns, left } = &mut worker.drive;
            if connection.state == State::Closed {
                *left -= 1;
                worker.connect_in_turn(slot);
                continue;
            }
            if connection.state != State::Open || owed >= depth {
                continue;
            }
            *left -= 1;
            if owed + 1 < depth {
                turns.freed(slot, since);
            }
            worker.ask(slot, 1);
        }
    }
}

impl Driver for Bounded {
    fn new(plan: &Plan, share: Share) -> Self {
        let most = match plan.drive {
            Drive::Bounded { in_flight } => share.part.share(in_flight.get() as usize),
            _ => 0,
        };
        Bounded { turns: Turns::new(share.active), left: most as u32 }
    }

    fn begins<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        Bounded::send(worker);
    }

    #[inline]
    fn turns<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        Bounded::send(worker);
    }

    fn answered<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32, replies: u32) {
        let connection = &mut worker.connections[slot as usize];
        if !worker.drive.is_counted(connection) {
            worker.times.pop_run(&mut connection.sent, replies);
            return;
        }
        worker.drive.left += replies;
        worker.record(slot, replies);
    }

    #[inline]
    fn is_counted<T>(&self, connection: &Connection<T>) -> bool {
        !connection.awaits_extra()
    }

    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.drive.turns.freed(slot, worker.now);
        Bounded::send(worker);
    }

    fn reopens<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.drive.turns.freed(slot, worker.now);
    }

    fn closes<T>(&mut self, slot: u32, connection: &Connection<T>, _times: &Times) {
        if connection.state == State::Open || !connection.extra {
            self.turns.gone(slot);
            self.left += connection.cursor.owed();
        }
    }

    fn not_processed<T>(
        &mut self,
        slot: u32,
        of: &Connection<T>,
        times: &Times,
        now: Nanos,
    ) -> bool {
        self.answered_wrong(slot, of, times, now);
        true
    }

    fn answered_wrong<T>(&mut self, _: u32, of: &Connection<T>, _: &Times, _: Nanos) {
        if self.is_counted(of) {
            self.left += 1;
        }
    }
}
