//! Wrong replies. The first one ends the run, unless errors are tolerated. Then they are counted and the
//! load continues, on the same connection if the protocol permits that.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::{
    clock::{self, Nanos, SECOND},
    counts::tally::Count,
    sockets::connection::{Connection, State},
};
use regatta_record::Exchange;
use regatta_script::Dialect;

/// Time after the load in which to verify the replies that could only be stored while it ran. A dialect
/// may need longer for a smallest sample, or for a joint check of all connections.
const VERIFIES: Nanos = 2 * SECOND;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// After the load: verifies the replies that could only be stored. Also reports missing ones, unless
    /// the load was cut short. Does nothing if the load has already failed.
    pub(super) fn verify(&mut self) {
        if self.shared.ends_early() {
            return;
        }
        let (shared, tolerates) = (self.shared, self.plan.tolerates.is_some());
        let Count { sum, operations, .. } = &mut self.count;
        let mut wrong = |count, exchange| {
            sum.errors.wrong_reply += count;
            match tolerates {
                false => shared.disqualify(exchange),
                true => shared.saw_wrong(exchange),
            }
        };
        let until = clock::now() + VERIFIES;
        let is_late = || clock::now() >= until;
        self.dialect.verify(&mut self.desk, &is_late, &mut |exchange| wrong(1, exchange));
        if !self.shared.is_cut_short() {
            self.dialect.missing(&mut operations.listen(self.now), &mut wrong);
        }
    }

    /// Handles a wrong reply among the `n` bytes in the buffer.
    #[cold]
    pub(super) fn unexpected(&mut self, slot: u32, exchange: Box<Exchange>, n: usize) {
        if self.plan.tolerates.is_none() {
            return self.wrong(slot, *exchange);
        }
        let (mut exchange, mut from) = (exchange, 0);
        loop {
            let Connection { cursor, talk, replies, .. } = &mut self.connections[slot as usize];
            let right = (exchange.reply_index - *replies) as u32;
            self.shared.saw_wrong(*exchange);
            let Some(used) = self.dialect.resume(talk) else {
                cursor.answer(right, self.dialect.script());
                self.settle_some(slot, right);
                return self.lost(slot, Loss::Wrong);
            };
            self.settle_some(slot, right);
            self.settle_wrong(slot);
            from += used;
            if from >= n {
                break;
            }
            match self.receive(slot, from..n) {
                Ok(replies) => {
                    self.settle_some(slot, replies);
                    break;
                }
                Err(next) => exchange = next,
            }
        }
        self.go_on(slot);
    }

    /// Handles a wrong reply that was completed by the close of its connection.
    #[cold]
    pub(super) fn unexpected_end(&mut self, slot: u32, exchange: Exchange) {
        if self.plan.tolerates.is_none() {
            return self.wrong(slot, exchange);
        }
        self.shared.saw_wrong(exchange);
        self.lost(slot, Loss::Wrong);
    }

    /// Counts a wrong reply, with what the server owed on its connection, and ends the run if none is tolerated. Closes
    /// the connection.
    #[cold]
    pub(super) fn wrong(&mut self, slot: u32, exchange: Exchange) {
        let undelivered = self.undelivered(slot);
        self.count.errors.wrong_reply += 1 + undelivered;
        match self.plan.tolerates {
            None => self.shared.disqualify(exchange),
            Some(_) => self.shared.saw_wrong(exchange),
        }
        self.close(slot);
    }

    fn settle_some(&mut self, slot: u32, replies: u32) {
        if replies > 0 {
            self.settle(slot, replies);
        }
    }

    /// Counts a complete wrong reply: it settles its request, and has no latency.
    fn settle_wrong(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.replies += 1;
        self.unexpected += 1;
        self.settled += 1;
        self.awaited -= 1;
        self.count.errors.wrong_reply += 1;
        let opens = connection.state == State::Unanswered;
        if const { D::MULTIPLEXED } {
            self.order_answered(slot, 1);
        }
        let connection = &mut self.connections[slot as usize];
        self.drive.answered_wrong(slot, connection, &self.times, self.now);
        self.times.pop_run(&mut connection.sent, 1);
        if opens {
            self.opened(slot);
        }
    }
}
