//! Replies that are not as they must be. The run ends with the first, unless errors are tolerated: then
//! they are counted, and the load goes on, on the same connection where the protocol permits that.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::{
    clock::{self, Nanos, SECOND},
    connection::{Connection, State},
};
use regatta_record::Exchange;
use regatta_script::Dialect;

/// How long replies are verified that could only be kept while the load ran.
const VERIFIES: Nanos = 2 * SECOND;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// The load is over: verifies the replies that could only be kept, and reports what never came if the load
    /// has waited for it. Does nothing if the load has failed already.
    pub(super) fn verify(&mut self) {
        if self.shared.ends_early() {
            return;
        }
        let (shared, tolerates) = (self.shared, self.plan.tolerates.is_some());
        let errors = &mut self.count.errors;
        let mut wrong = |exchange| {
            errors.wrong_reply += 1;
            match tolerates {
                false => shared.disqualify(exchange),
                true => shared.saw_wrong(exchange),
            }
        };
        let until = clock::now() + VERIFIES;
        self.dialect.verify(&mut self.desk, &|| clock::now() >= until, &mut wrong);
        if !self.shared.is_cut_short() {
            self.dialect.missing(&mut wrong);
        }
    }

    /// Of the `n` bytes in the buffer some are not what had to come.
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

    /// The end of a connection completed a reply, which is wrong.
    #[cold]
    pub(super) fn unexpected_end(&mut self, slot: u32, exchange: Exchange) {
        if self.plan.tolerates.is_none() {
            return self.wrong(slot, exchange);
        }
        self.shared.saw_wrong(exchange);
        self.lost(slot, Loss::Wrong);
    }

    /// Counts a wrong reply, and ends the run if none is tolerated. Closes the connection.
    #[cold]
    pub(super) fn wrong(&mut self, slot: u32, exchange: Exchange) {
        self.count.errors.wrong_reply += 1;
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

    /// Counts a wrong reply that was whole: it settles its request, and has no latency.
    fn settle_wrong(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.replies += 1;
        self.unexpected += 1;
        self.settled += 1;
        self.awaited -= 1;
        self.count.errors.wrong_reply += 1;
        let opens = connection.state == State::Unanswered;
        self.drive.answered_wrong(slot, connection, &self.times, self.now);
        self.times.pop_run(&mut connection.sent, 1);
        if opens {
            self.opened(slot);
        }
    }
}
