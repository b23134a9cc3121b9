//! The life of a load thread: its loop, its phases, and when connections are opened and given up.

use super::{
    driver::{Driver, Share},
    loss::Loss,
    state::Worker,
};
use crate::{
    Error, Plan,
    clock::{self, MS, Nanos},
    counts::tally::Count,
    open_loop::schedule::Part,
    running::{
        held::Holding,
        leads::Leads,
        passing::Passing,
        shared::{Gauge, Phase, Shared},
        source::Sources,
        worker::Done,
    },
    sockets::{
        connection::{Connection, State, Times},
        poller::{EVENTS, Poller},
        tls::Session,
    },
};
use regatta_script::{Cursor, Dialect, Script};
use rustix::thread::set_current_timer_slack;
use std::{cmp::Reverse, num::NonZeroU64, sync::atomic::Ordering::*};

/// Maximum wait for events: the delay with which a thread without events notices a new phase.
const TURN: Nanos = 5 * MS;
/// The same if a schedule begins with the next phase.
const TURN_BEFORE_WINDOW: Nanos = MS / 4;
/// A turn without work that takes longer than this was preempted. A system call takes a microsecond, or
/// tens of them where each is intercepted; a preemption takes hundreds.
const LONGEST_POLL: Nanos = 50_000;
/// Size of the read buffer.
const BUFFER: usize = Session::PLAIN;

impl<'a, D: Dialect, V: Driver> Worker<'a, D, V> {
    /// Creates the state of a thread, and allocates its buffers.
    pub fn new(
        plan: &'a Plan,
        dialect: &'a D,
        shared: &'a Shared,
        gauge: &'a Gauge,
        part: Part,
    ) -> Result<Self, Error> {
        let Part { thread, threads } = part;
        let (active, left) = plan.share(|n| part.share(n));
        let kept = active + part.share(plan.idle);
        let slots = kept + part.share(plan.passing);
        let number = |slot: usize| (slot * threads + thread) as u32;
        let script = dialect.script();
        let cursor = |slot: usize| Cursor::new(script, start(number(slot), script));
        // An idle connection never has more than one request outstanding.
        let first = |slot: usize| slot.min(active) * plan.pipeline + slot.saturating_sub(active);
        let share = Share { part, active, places: first(slots) };
        let connections = (0..slots)
            .map(|slot| Connection::closed(cursor(slot), dialect.talk(number(slot)), first(slot)))
            .collect();
        // With TLS, each event reads the socket only once, so remaining bytes must be reported again.
        let poller = match plan.tls {
            None => Poller::new_edge_triggered(),
            Some(_) => Poller::new(),
        };
        let poller = poller
            .map_err(|error| Error::Machine { what: "create its poller", error: error.into() })?;
        let mut desk = dialect.desk(clock::wall);
        if plan.tolerates.is_some() {
            dialect.tolerate(&mut desk);
        }
        Ok(Worker {
            plan,
            dialect,
            shared,
            gauge,
            poller,
            buffer: vec![0; BUFFER].into(),
            sealed: vec![0; plan.tls.as_ref().map_or(0, |_| Session::SEALED)].into(),
            desk,
            connections,
            active: active as u32,
            times: Times::new(first(slots), plan.pipeline),
            waiting: (0..kept as u32).map(|slot| Reverse((0, slot))).collect(),
            ended: Vec::new(),
            sources: Sources::new(plan, V::CHURNS, thread),
            holding: Holding::new(plan, thread, active),
            passing: Passing::new(plan, thread, kept, slots),
            drive: V::new(plan, share),
            part,
            phase: Phase::Starting,
            slice: None,
            counts: false,
            polls: false,
            depth: 0,
            left,
            now: clock::now(),
            idle: false,
            turn_began: 0,
            arrives_after: 0,
            reads_all: false,
            next_scan: 0,
            next_sign: 0,
            replies: 0,
            inactive_replies: 0,
            replies_before: 0,
            replies_at_rest: Vec::new(),
            settled: 0,
            awaited: 0,
            refused: 0,
            dropped: 0,
            unexpected: 0,
            statuses: Vec::new(),
            open: 0,
            kept: 0,
            count: Count::new(plan, dialect.operations()),
        })
    }

    /// Works until the phase is [`Phase::Ended`].
    pub fn run(mut self, mut leader: Option<&mut dyn Leads>) -> Done {
        if V::SCHEDULED {
            // By default the kernel may wake a thread 50 µs late, to save wake-ups. If this call fails,
            // requests are sent that much later.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
        }
        while self.phase != Phase::Ended {
            let longest = self.longest_wait(leader.as_ref().map(|leader| leader.next_check()));
            self.begins_turn();
            let ready = self.poller.wait(longest);
            match ready {
                0 => self.nothing_ready(longest),
                _ => self.idle = false,
            }
            self.take(ready);
            self.scan();
            self.keep_alive();
            self.open_due();
            self.release(self.now);
            V::turns(&mut self);
            self.update_members();
            self.count.tick(self.now);
            self.count.hand_over(&self.gauge.handed);
            self.publish();
            if let Some(leader) = &mut leader {
                leader.turn(self.now);
            }
            while let phase = self.shared.phase()
                && phase != self.phase
            {
                self.enter(phase);
            }
        }
        self.verify();
        self.count_replies();
        self.count.in_flight_limit = self.dialect.lowest_limit(&self.desk);
        self.drive.count(&mut self.count);
        self.count.hand_over_last(&self.gauge.handed);
        let open =
            self.connections.into_iter().filter_map(|connection| connection.socket).collect();
        Done { count: self.count, open }
    }

    /// Maximum number of requests outstanding on a connection now.
    #[inline]
    pub fn depth_of(&self, slot: u32) -> u32 {
        if const { D::MULTIPLEXED } {
            let talk = &self.connections[slot as usize].talk;
            return self.depth.min(self.dialect.in_flight_limit(talk));
        }
        self.depth
    }

    pub fn take(&mut self, ready: usize) {
        self.reads_all &= ready < EVENTS;
        for i in 0..ready {
            let ready = self.poller.ready(i);
            if ready.write && self.connections[ready.token as usize].waits_to_write {
                self.write(ready.token);
            }
            if ready.read && self.connections[ready.token as usize].is_read() {
                self.read_all(ready.token, ready.end);
                V::between(self);
            }
        }
    }

    fn nothing_ready(&mut self, waited_for: Nanos) {
        let now = clock::now();
        let turn = now - self.now;
        // The first turn without events also contains the work before it, so it does not count.
        if waited_for == 0 && self.idle && turn < LONGEST_POLL && self.counts {
            self.count.spun_ns += turn;
        }
        self.idle = true;
        self.now = now;
    }

    fn longest_wait(&self, next_check: Option<Nanos>) -> Nanos {
        if self.polls {
            return 0;
        }
        let opens_soon = V::SCHEDULED && self.phase == Phase::WarmingUp && self.slice.is_none();
        let turn = if opens_soon { TURN_BEFORE_WINDOW } else { TURN };
        let mut until = self.holding.due().min(self.now + turn);
        if let Some(next_check) = next_check {
            until = until.min(next_check);
        }
        if self.depth > 0
            && let Some(wakes_at) = self.drive.wakes_at()
        {
            until = until.min(wakes_at);
        }
        // A slot that is due but not opened waits until other connections are answered: that is an
        // event of this thread or of another one.
        if let Some(Reverse((due, _))) = self.waiting.peek()
            && *due > self.now
        {
            until = until.min(*due);
        }
        until.saturating_sub(self.now)
    }

    /// Gives up requests, or answers to Close frames, that have timed out. This check is coarse: it runs
    /// every tenth of the timeout, limited to 1 to 100 ms. What has arrived by then is read first: a reply
    /// that is among it waited for the load, not for the server.
    pub fn scan(&mut self) {
        if self.now < self.next_scan {
            return;
        }
        let limit = self.timeout();
        self.next_scan = self.now + (limit / 10).clamp(MS, 100 * MS);
        let since = self.now.saturating_sub(limit);
        // If all are open, no idle connection has a pending reply.
        let passing = self.passing.slots();
        let kept = passing.start;
        let slots = if self.open == kept as usize { self.active } else { kept };
        for slot in (0..slots).chain(passing) {
            if !self.is_overdue(slot, since) {
                continue;
            }
            self.read_arrived_on(slot);
            match () {
                () if const { D::MULTIPLEXED } => self.cancel_overdue(slot, since),
                () if self.is_overdue(slot, since) => self.lost(slot, Loss::TimedOut),
                () => {}
            }
        }
    }

    /// Maximum time from a request to its reply.
    pub fn timeout(&self) -> Nanos {
        self.plan.timeout.as_nanos() as Nanos
    }

    /// Whether a connection waits for the reply to a request that was sent before `since`, or has waited
    /// too long for the answer to a Close frame.
    fn is_overdue(&self, slot: u32, since: Nanos) -> bool {
        let Connection { state, cursor, sent, .. } = &self.connections[slot as usize];
        let owed = cursor.owed();
        let is_late = match () {
            () if owed == 0 => false,
            () if const { D::MULTIPLEXED } => self.times.any_before(sent, owed, since),
            () => self.times.oldest(sent) < since,
        };
        *state != State::Closed && (is_late || self.passing.is_overdue(slot, self.now))
    }

    /// The next turn begins. What it reads has arrived since the wait of the last turn began, if that turn
    /// read all that was ready.
    #[inline]
    fn begins_turn(&mut self) {
        if std::mem::replace(&mut self.reads_all, true) {
            self.arrives_after = self.turn_began;
        }
        self.turn_began = self.now;
    }

    pub fn open_due(&mut self) {
        if self.phase == Phase::Starting {
            return;
        }
        while self.left > 0
            && let Some(&Reverse((due, slot))) = self.waiting.peek()
            && due <= self.now
            && (V::CHURNS || self.shared.try_reserve_opening())
        {
            self.waiting.pop();
            self.connections[slot as usize].extra = true;
            self.connect(slot);
        }
    }

    pub fn publish(&self) {
        let replies = self.replies + self.unexpected;
        self.gauge.replies.store(replies, Relaxed);
        // A reply that came too late may have been taken back.
        let active = replies.saturating_sub(self.inactive_replies);
        self.gauge.active_replies.store(active, Relaxed);
        self.gauge.settled.store(self.settled, Relaxed);
        // After the window, requests that are still queued count as pending too.
        let queued = self.phase == Phase::Draining && self.drive.has_due();
        // So do pushed messages; one thread reports them for all.
        let owes = self.phase == Phase::Draining && self.part.thread == 0 && self.dialect.owes();
        let closing = if self.phase == Phase::Draining { self.passing.closing() } else { 0 };
        let more = u64::from(queued) + u64::from(owes) + closing;
        self.gauge.awaited.store(self.awaited + more, Relaxed);
        self.gauge.refused.store(self.refused, Relaxed);
        self.gauge.dropped.store(self.dropped, Relaxed);
        if self.phase == Phase::Draining {
            self.gauge.owed_ends.store(self.owed_ends(), Relaxed);
        }
        self.gauge.errors.store(self.count.errors.total(), Relaxed);
        self.gauge.open.store(self.open + self.ended.len(), Relaxed);
        self.gauge.entered.store(self.phase as u8 + 1, Release);
        if self.slice.is_some() && self.phase == Phase::Draining && self.awaited + more == 0 {
            self.wake_leader();
        }
    }

    fn enter(&mut self, phase: Phase) {
        if self.missed_window(phase) {
            self.enter(Phase::Measuring);
        }
        let before = std::mem::replace(&mut self.phase, phase);
        let is_loaded = matches!(phase, Phase::WarmingUp | Phase::Measuring);
        let is_slice = self.slice.is_some();
        if before == Phase::Measuring || (is_slice && before == Phase::WarmingUp) {
            V::closes_window(self);
        }
        // The counts of a slice include those of its drain.
        if self.counts && (!is_slice || phase >= Phase::Resting) {
            self.close_count();
        }
        self.polls =
            self.plan.busy_poll && (is_loaded || (self.counts && phase == Phase::Draining));
        self.hold_in(phase);
        match phase {
            Phase::WarmingUp | Phase::Measuring => {
                if is_slice {
                    self.reopen_closed();
                } else if phase == Phase::Measuring {
                    self.open_count(self.shared.window_opened_at());
                }
                self.depth = self.plan.pipeline as u32;
                for slot in std::mem::take(&mut self.ended) {
                    self.open_again(slot);
                }
                self.count.began = clock::now();
                V::begins(self);
                if is_slice {
                    self.open_due();
                }
                self.start_members();
            }
            Phase::Draining => {
                self.stop_sending();
                // The last drain of a lane begins when nothing is pending.
                if before == Phase::Resting {
                    (0..self.active).for_each(|slot| self.ask_once_more(slot));
                }
            }
            Phase::Resting => self.rest(),
            Phase::Ended => {
                if before == Phase::Draining {
                    // Reads unsolicited bytes that came meanwhile.
                    let ready = self.poller.wait(0);
                    self.take(ready);
                }
                // What is still owed after the drain has timed out.
                self.now = clock::now();
                self.next_scan = 0;
                self.scan();
                if V::ENDS_CONNECTIONS {
                    self.end_kept();
                }
                V::ends(self);
            }
            Phase::Starting | Phase::Connecting => {}
        }
        if is_slice && phase != Phase::Resting {
            self.publish();
        }
    }

    /// The window opened at this moment.
    pub fn open_count(&mut self, at: Nanos) {
        self.count.window_opens(at);
        self.statuses = self.dialect.statuses(&self.desk).to_vec();
        self.counts = true;
    }

    /// The window is over.
    fn close_count(&mut self) {
        self.counts = false;
        self.count.window_closes();
        self.count_statuses();
    }

    /// Counts the statuses received inside the window.
    fn count_statuses(&mut self) {
        let all = self.dialect.statuses(&self.desk).iter().zip(&self.statuses);
        let inside = all.map(|(now, before)| now - before).enumerate().skip(1);
        self.count.statuses = inside
            .filter(|(_, replies)| *replies > 0)
            .map(|(status, replies)| (status as u16, replies))
            .collect();
    }

    /// Whether this thread missed a whole window. Its requests were due nevertheless.
    fn missed_window(&self, next: Phase) -> bool {
        V::SCHEDULED
            && self.slice.is_none()
            && self.phase < Phase::Measuring
            && next > Phase::Measuring
            && self.shared.window_opened_at() > 0
    }

    /// Fills every pipeline.
    pub fn load_all(&mut self) {
        for slot in 0..self.active {
            if self.connections[slot as usize].state == State::Open {
                self.now = clock::now();
                self.fill(slot);
            }
        }
    }

    fn stop_sending(&mut self) {
        if !V::SCHEDULED {
            self.depth = 0;
        }
        self.waiting.clear();
        for slot in 0..self.connections.len() as u32 {
            let connection = &self.connections[slot as usize];
            let is_due = V::SCHEDULED && !connection.extra;
            if connection.state == State::Connecting && !is_due {
                self.close(slot);
            }
        }
    }
}

/// The place in the script where a connection starts. Places are spread by the golden ratio, so that few
/// connections read the same cache lines, or lines in the same cache set.
fn start(slot: u32, script: &Script) -> u32 {
    script.conversation_from(slot.wrapping_mul(0x9E37_79B1) % script.count())
}
