//! How a load thread of a lane rests between two slices. It blocks, so it neither sends nor receives,
//! and no time passes for its connections: a slice ends when every request is settled.

use super::{driver::Driver, loss::Loss, state::Worker};
use crate::{
    clock::{self, Nanos, SECOND},
    counts::tally::Count,
    running::orders::Order,
    sockets::{
        connection::{Connection, State},
        poller::EVENTS,
        waker::Waker,
    },
};
use regatta_script::Dialect;
use rustix::io::Errno;
use std::{cmp::Reverse, io};

/// After a rest that is at least this long, a server may close connections that were idle for too long.
const LONG_REST: Nanos = SECOND;

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Lets other threads wake this one from its poller, if it is one of several of a lane and sleeps.
    pub(super) fn can_be_woken(&self) -> io::Result<()> {
        let several = self.shared.gauges.len() > 1;
        if self.shared.rest.is_some() && several && !self.plan.busy_poll {
            let _ = self.gauge.waker.set(Waker::new(&self.poller)?);
        }
        Ok(())
    }

    /// Hands over what was counted, and blocks until the next order. Then reads what came meanwhile.
    pub(super) fn rest(&mut self) {
        let Some(rest) = &self.shared.rest else { return };
        self.waiting.clear();
        self.count_replies();
        self.count.in_flight_limit = self.dialect.lowest_limit(&self.desk);
        self.drive.count_slice(&mut self.count);
        self.count.last_reply = self.count.last_reply.max(self.count.operations.last());
        self.publish();
        if let Some(waker) = self.gauge.waker.get() {
            waker.clear();
        }
        let next =
            Count::of_slice(self.count.next_run_delay(), rest.spare(), self.dialect.operations());
        let orders = rest.hand_over(self.part.thread, std::mem::replace(&mut self.count, next));
        let began = clock::now();
        let order = rest.next_order(orders);
        self.now = clock::now();
        self.idle = false;
        self.replies_at_rest.clear();
        if self.now - began >= LONG_REST {
            let replies = self.connections.iter().map(|connection| connection.replies);
            self.replies_at_rest.extend(replies);
        }
        match order {
            Order::End => self.slice = None,
            Order::Slice(slice) => {
                self.slice = Some(slice);
                self.open_count(slice.begins);
                self.read_arrived();
            }
        }
    }

    /// Reads what came while the thread rested: the server may have closed connections, and must not
    /// have sent anything else.
    fn read_arrived(&mut self) {
        loop {
            let ready = self.poller.wait(0);
            self.take(ready);
            if ready < EVENTS || self.shared.ends_early() {
                return;
            }
        }
    }

    /// A slice begins: reopens the connections that are closed. They are no error of the server, because
    /// it owed nothing on them.
    pub(super) fn reopen_closed(&mut self) {
        // All closed slots are found below.
        self.ended.clear();
        self.kept = 0;
        let kept = self.passing.slots().start;
        if !V::CHURNS && self.open == kept as usize {
            return;
        }
        for slot in 0..kept {
            let is_closed = self.connections[slot as usize].state == State::Closed;
            match () {
                () if V::CHURNS => {
                    self.close(slot);
                    self.waiting.push(Reverse((self.now, slot)));
                }
                () if !is_closed => {}
                () if slot < self.active => V::reopens(self, slot),
                () => self.waiting.push(Reverse((self.now, slot))),
            }
        }
    }

    /// Whether the server closed this connection because it was idle for too long, while the lane rested
    /// or when it had just ended: the connection was open and owed nothing then, the rest was long, and no
    /// byte of a reply has come since. Requests that were on their way are sent again, as clients do (RFC
    /// 9112, section 9.3.1), except in an open loop, where each has its due time.
    #[cold]
    pub(super) fn was_closed_at_rest(&self, slot: u32, loss: &Loss) -> bool {
        let is_close = matches!(
            loss,
            Loss::Closed
                | Loss::CutOff
                | Loss::Read(Errno::CONNRESET)
                | Loss::Write(Errno::CONNRESET | Errno::PIPE)
        );
        let Connection { state, cursor, talk, replies, .. } = &self.connections[slot as usize];
        is_close
            && (!V::SCHEDULED || cursor.owed() == 0)
            && *state == State::Open
            && self.replies_at_rest.get(slot as usize) == Some(replies)
            && self.dialect.unfinished(cursor, talk).is_none()
    }

    /// Counts the replies that came since the last time.
    pub(super) fn count_replies(&mut self) {
        self.count.replies = self.replies - self.replies_before;
        self.replies_before = self.replies;
    }

    /// In a lane, the leader decides at once whether a slice is drained.
    pub(super) fn wake_leader(&self) {
        if self.part.thread > 0 {
            self.shared.wake(0);
        }
    }
}
