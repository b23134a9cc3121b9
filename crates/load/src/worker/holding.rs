//! Requests whose last byte is held back for a while. Nobody can know such a request yet: a reply that
//! comes before the byte was made up, and disqualifies.
//!
//! A sample of a few connections of each thread, at random moments of the warm-up, and once more after
//! the window on connections that are kept: never inside the window. Held back is the end of what is
//! written at once, so the last of several requests.

use super::{driver::Driver, state::Worker};
use crate::{
    Plan, Until,
    clock::{MS, Nanos},
    connection::{Connection, State},
    held::Held,
    shared::Phase,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use regatta_record::Exchange;
use regatta_script::{Dialect, printable};
use std::collections::VecDeque;

/// How long a byte is held back. A server that has not read it has nothing to say for as long.
pub(super) const HELD: Nanos = 50 * MS;
/// How many are held back by a thread, in the warm-up and after the window, at most one for each of its
/// connections.
const SAMPLE: u32 = 8;
/// Longest pause between two of the warm-up.
const PAUSE: Nanos = 20 * MS;

/// What one thread holds back.
pub(super) struct Holding {
    /// None at all.
    never: bool,
    sample: u32,
    /// How many more are to be held back in this phase.
    left: u32,
    /// The next one not before this moment.
    next: Nanos,
    random: SmallRng,
    /// When to release which slots; the earliest first.
    held: VecDeque<(Nanos, u32)>,
}

/// What is kept back of what is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    Nothing,
    LastByte,
    /// The last byte of what was written before is kept back still.
    All,
}

impl Holding {
    /// Of the thread of this number with so many connections that ask.
    pub fn new(plan: &Plan, thread: usize, active: usize) -> Self {
        let by_time = matches!(plan.until, Until::Elapsed(_));
        Holding {
            never: !plan.withholds || !by_time || plan.tls.is_some(),
            sample: SAMPLE.min(active as u32),
            left: 0,
            next: 0,
            random: SmallRng::seed_from_u64(plan.seed ^ (thread as u64) << 32),
            held: VecDeque::new(),
        }
    }

    /// When the next byte is due; never, where none is held back.
    pub fn due(&self) -> Nanos {
        self.held.front().map_or(Nanos::MAX, |(due, _)| *due)
    }

    /// Whether the end of what is to be written now, so many bytes, is held back.
    fn takes(&mut self, phase: Phase, bytes: usize, now: Nanos) -> bool {
        let may = self.left > 0 && bytes > 1;
        if !may || (phase == Phase::WarmingUp && now < self.next) {
            return false;
        }
        self.left -= 1;
        self.next = now + self.random.random_range(0..PAUSE);
        true
    }
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// A phase begins: where a sample is to be taken, it is; what is held back elsewhere is released.
    pub(super) fn hold_in(&mut self, phase: Phase) {
        self.release(Nanos::MAX);
        // After the window nothing may be sent that was not due, and connections may be closed by now.
        let kept = !V::SCHEDULED && !V::ENDS_CONNECTIONS;
        let samples = phase == Phase::WarmingUp || (phase == Phase::Draining && kept);
        self.holding.left = if samples && !self.holding.never { self.holding.sample } else { 0 };
        self.holding.next = self.now + self.holding.random.random_range(0..PAUSE);
    }

    /// What a connection keeps back of what it has to write.
    #[inline]
    pub(super) fn holds_back(&mut self, slot: u32) -> Back {
        match (self.connections[slot as usize].held, self.holding.left) {
            (None, 0) => Back::Nothing,
            (None, _) => self.begin_to_hold(slot),
            (Some(_), _) => Back::All,
        }
    }

    #[cold]
    fn begin_to_hold(&mut self, slot: u32) -> Back {
        let connection = &mut self.connections[slot as usize];
        let bytes = self.dialect.unsent(&connection.cursor, &mut connection.talk, self.now).len();
        if connection.socket.is_none() || !self.holding.takes(self.phase, bytes, self.now) {
            return Back::Nothing;
        }
        let until = self.now + HELD;
        connection.held = Some(Held { until, behind: 0 });
        self.holding.held.push_back((until, slot));
        Back::LastByte
    }

    /// Writes the bytes that were due until now.
    pub(super) fn release(&mut self, now: Nanos) {
        while let Some(&(due, slot)) = self.holding.held.front()
            && due <= now
        {
            self.holding.held.pop_front();
            // The slot may have another connection since then.
            let held = &mut self.connections[slot as usize].held;
            if held.take_if(|held| held.until == due).is_some() {
                self.write(slot);
            }
        }
    }

    /// After the window: a connection that has all of its replies is asked once more, if the sample wants
    /// one.
    #[inline]
    pub(super) fn ask_once_more(&mut self, slot: u32) {
        if self.holding.left == 0 || self.phase != Phase::Draining || slot >= self.active {
            return;
        }
        let connection = &self.connections[slot as usize];
        let is_idle = connection.state == State::Open && connection.cursor.owed() == 0;
        if is_idle && !connection.ended && !self.dialect.ends(&connection.talk) {
            self.ask(slot, 1);
        }
    }

    /// What is wrong if one of the replies that have just come, in the first `n` bytes of the buffer, is
    /// to a request of which the last byte is still held back.
    #[inline]
    pub(super) fn too_early(&self, slot: u32, n: usize) -> Option<Exchange> {
        let Connection { held, cursor, .. } = &self.connections[slot as usize];
        let is_answered = cursor.owed() <= held.as_ref()?.behind;
        is_answered.then(|| self.early(slot, n))
    }

    /// The same of bytes that are no reply that is due, where every other request had its reply before.
    pub(super) fn nothing_but_early(&self, slot: u32, n: usize) -> Option<Exchange> {
        let Connection { held, cursor, .. } = &self.connections[slot as usize];
        let is_alone = cursor.owed() <= held.as_ref()?.behind + 1;
        is_alone.then(|| self.early(slot, n))
    }

    fn early(&self, slot: u32, n: usize) -> Exchange {
        let Connection { cursor, replies, .. } = &self.connections[slot as usize];
        let request = cursor.last_request(self.dialect.script()).unwrap_or_default();
        Exchange {
            sent: printable(&request[..request.len().saturating_sub(1)]),
            expected: "nothing yet: the last byte of the request had not been sent".into(),
            received: printable(&self.buffer[..n]),
            reply_index: *replies,
        }
    }
}
