//! Connections on which replies come in another order than their requests, and on which single requests
//! can end without a reply while the others continue. For dialects whose replies are in order, none of this
//! is compiled.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::{clock::Nanos, running::shared::Phase, sockets::connection::State};
use regatta_script::{Dialect, Turn, Unanswered};

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Checks the `n` bytes in the buffer, settles the requests that they end, and sends what is due.
    pub(super) fn handle_streams(&mut self, slot: u32, n: usize) {
        match self.receive(slot, 0..n) {
            Ok(replies) => {
                if replies > 0 {
                    self.settle(slot, replies);
                }
                if let Some(exchange) = self.too_early_on_stream(slot) {
                    return self.wrong(slot, *exchange);
                }
                self.continue_streams(slot, replies > 0);
            }
            Err(exchange) => {
                self.unexpected(slot, exchange, n);
                self.continue_streams(slot, false);
            }
        }
    }

    /// Settles requests that got no reply, continues the connection if any request has ended, and writes
    /// what the dialect has to write.
    fn continue_streams(&mut self, slot: u32, is_answered: bool) {
        let has_ended = self.settle_unanswered(slot) || is_answered;
        let connection = &mut self.connections[slot as usize];
        if connection.state == State::Closed {
            return;
        }
        let has_room = self.dialect.has_more_room(&mut connection.talk)
            && connection.cursor.owed() < self.depth
            && self.drive.has_more(slot);
        let is_open = connection.state == State::Open;
        match is_open && (has_ended || has_room) {
            true => self.go_on(slot),
            false => self.close_if_announced(slot),
        }
        self.ask_once_more(slot);
        let connection = &self.connections[slot as usize];
        if matches!(connection.state, State::Unanswered | State::Open)
            && !connection.waits_to_write
            && self.dialect.has_to_write(&connection.cursor, &connection.talk)
        {
            self.write(slot);
        }
    }

    /// Moves the next `k` requests that were answered to the front of those outstanding, in this order.
    #[inline]
    pub(super) fn order_answered(&mut self, slot: u32, k: u32) {
        for _ in 0..k {
            let connection = &mut self.connections[slot as usize];
            let Some(turn) = self.dialect.next_answered(&mut connection.talk) else { return };
            self.bring_forward(slot, turn);
        }
    }

    #[inline]
    fn bring_forward(&mut self, slot: u32, Turn { position, first }: Turn) {
        if position != first {
            let ring = self.connections[slot as usize].sent;
            let (one, other) = self.times.exchange(&ring, position, first);
            self.drive.exchanges_places(one, other);
        }
    }

    /// Settles the requests that ended without a reply. Returns whether there were any.
    pub(super) fn settle_unanswered(&mut self, slot: u32) -> bool {
        let mut any = false;
        loop {
            let connection = &mut self.connections[slot as usize];
            let (cursor, talk) = (&mut connection.cursor, &mut connection.talk);
            let Some((turn, why)) = self.dialect.next_unanswered(cursor, talk) else { return any };
            any = true;
            self.bring_forward(slot, turn);
            self.settle_one(slot, why);
        }
    }

    #[cold]
    fn settle_one(&mut self, slot: u32, why: Unanswered) {
        self.awaited -= 1;
        let connection = &mut self.connections[slot as usize];
        match why {
            Unanswered::NotProcessed if connection.replies == 0 => {
                // Else a server could refuse what it likes for ever.
                self.drive.answered_wrong(slot, connection, &self.times, self.now);
                self.count.errors.closed_early += 1;
                self.count.lost("the server announced the close of a connection before any reply");
            }
            Unanswered::NotProcessed => {
                connection.refused += 1;
                let again = self.drive.not_processed(slot, connection, &self.times, self.now);
                self.times.pop_run(&mut connection.sent, 1);
                let sends = V::SCHEDULED || self.phase <= Phase::Measuring;
                self.count.sent_again += u64::from(again && sends);
                self.left += 1;
                return;
            }
            Unanswered::Ended(cause) => {
                self.drive.answered_wrong(slot, connection, &self.times, self.now);
                self.count.errors.reset += 1;
                self.count.lost(&cause);
            }
            Unanswered::TimedOut => {
                self.drive.one_timed_out(slot, connection, &self.times, self.now);
                self.count_timeout();
            }
        }
        let connection = &mut self.connections[slot as usize];
        self.times.pop_run(&mut connection.sent, 1);
        self.settled += 1;
        if connection.state == State::Unanswered {
            self.opened(slot);
        }
    }

    #[cold]
    fn count_timeout(&mut self) {
        self.count.errors.timeout += 1;
        self.count.timeouts_in_window += u64::from(self.counts);
        self.count.lost(&format!("no reply within {:?}", self.plan.timeout));
    }

    /// Counts the next `replies` replies that are no streams. Late ones are timeouts.
    #[inline]
    pub(super) fn count_answered(&mut self, slot: u32, replies: u32) {
        self.order_answered(slot, replies);
        if !self.are_late(slot, replies) {
            return V::answered(self, slot, replies);
        }
        for _ in 0..replies {
            match self.are_late(slot, 1) {
                true => self.answered_late(slot),
                false => V::answered(self, slot, 1),
            }
        }
    }

    /// Whether any of the `k` oldest requests had timed out before the bytes arrived that are handled now:
    /// their replies are late, and did not wait for the load.
    #[inline]
    pub(super) fn are_late(&self, slot: u32, k: u32) -> bool {
        let since = self.arrives_after.saturating_sub(self.timeout());
        self.times.any_before(&self.connections[slot as usize].sent, k, since)
    }

    /// Counts the oldest request as a timeout although its reply is complete.
    #[cold]
    pub(super) fn answered_late(&mut self, slot: u32) {
        self.replies -= 1;
        let connection = &mut self.connections[slot as usize];
        self.drive.one_timed_out(slot, connection, &self.times, self.now);
        self.times.pop_run(&mut connection.sent, 1);
        self.count_timeout();
    }

    /// Gives up the requests of a connection that were sent before `since`, and the whole connection if
    /// all were.
    pub(super) fn cancel_overdue(&mut self, slot: u32, since: Nanos) {
        let connection = &self.connections[slot as usize];
        let owed = connection.cursor.owed();
        let overdue = self.times.sent_before(&connection.sent, owed, since);
        if connection.state == State::Closed || overdue.is_empty() {
            return;
        }
        if overdue.len() == owed as usize {
            return self.lost(slot, Loss::TimedOut);
        }
        for position in overdue {
            self.dialect.cancel(&mut self.connections[slot as usize].talk, position);
        }
        self.continue_streams(slot, false);
    }
}
