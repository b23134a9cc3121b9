//! An open loop on one load thread: sends each request when it is due, independent of earlier replies.
//! Records for every request when it was due and when a connection was free.
//!
//! A due request takes the connection that has been free longest. If none is free, requests queue. A
//! connection whose close the server announced counts as free: the request reopens it. The queue is the
//! schedule itself, so it takes no memory. Requests that queue for longer than the timeout are given up.

mod again;

use super::{timetable::Timetable, turns::Turns};
use crate::{
    Plan, Until,
    clock::{self, Nanos, SECOND},
    counts::tally::Count,
    open_loop::schedule::{Part, Schedule},
    running::{
        orders::Slice,
        shared::Phase,
        worker::{
            driver::{Driver, Share},
            state::Worker,
        },
    },
    sockets::connection::{Connection, Ring, State, Times},
};
use regatta_record::{Arrivals, Drive};
use regatta_script::Dialect;
use std::{collections::VecDeque, num::NonZeroU32};

/// Grace period: requests that were due in the window may still be written for at most this long after
/// it, so that a momentary queue is not cut off.
pub(crate) const GRACE: Nanos = SECOND;
/// If the next send is at least this far away, further sends are computed ahead.
const QUIET: Nanos = 10_000;
/// Maximum number of requests given up at once: it takes some milliseconds, and is more than can fall
/// due in a turn.
const PORTION: usize = 1 << 16;

/// The open loop of one load thread.
pub(in crate::running::worker) struct Open {
    turns: Turns,
    arrivals: Arrivals,
    part: Part,
    warm_up: Schedule,
    window: Timetable,
    /// When the next request is due; [`Nanos::MAX`] if there is none.
    due: Nanos,
    /// When the window opened; [`Nanos::MAX`] before that.
    opened: Nanos,
    /// When the warm-up began.
    begins: Nanos,
    /// When the window ends.
    ends: Nanos,
    /// When writing stops.
    sends_until: Nanos,
    /// Whether more requests must be given up than one portion.
    behind: bool,
    timeout: Nanos,
    spin: Nanos,
    /// All outstanding requests, by their place in [`Times`].
    asked: Vec<Asked>,
    /// Requests that must be sent again: their intended send times, and when they were refused.
    again: VecDeque<(Nanos, Nanos)>,
}

/// A request that was written.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// Its intended send time; 0 if it does not belong to the window, or its outcome is already counted.
    intended: Nanos,
    /// When a connection was free for it. Not before `intended`.
    free: Nanos,
}

impl Open {
    /// Creates the drive of one thread.
    fn at(arrivals: Arrivals, plan: &Plan, share: Share) -> Self {
        let rate = plan.rates().first().map_or(NonZeroU32::MIN, |stage| stage.rate);
        Open {
            turns: Turns::new(share.active),
            arrivals,
            part: share.part,
            warm_up: Schedule::new(arrivals, rate, share.part, plan.seed, 1),
            window: Timetable::new(plan, arrivals, share.part),
            due: Nanos::MAX,
            opened: Nanos::MAX,
            begins: 0,
            ends: 0,
            sends_until: Nanos::MAX,
            behind: false,
            timeout: plan.timeout.as_nanos() as Nanos,
            spin: plan.spin.as_nanos() as Nanos,
            asked: vec![Asked::default(); share.places],
            again: VecDeque::new(),
        }
    }

    /// Whether a request is due at this moment.
    #[inline]
    fn is_due(&self, now: Nanos) -> bool {
        self.due <= now
    }

    /// Whether a request is due that cannot wait for the end of the turn.
    #[inline]
    fn is_urgent(&self, now: Nanos) -> bool {
        self.is_due(now) && !self.behind
    }

    /// Whether every due request is handled, and none will follow.
    fn is_over(&self) -> bool {
        self.due == Nanos::MAX
    }

    /// The warm-up begins.
    fn warms_up(&mut self, at: Nanos) {
        (self.begins, self.ends) = (at, Nanos::MAX);
        self.due = self.next_due();
    }

    /// The window opens. Requests of the warm-up that are still queued are discarded.
    fn opens(&mut self, at: Nanos, length: Nanos, spun: Nanos) {
        self.opened = at;
        self.behind = false;
        self.ends = at + length;
        self.window.opens(at, spun);
        self.due = self.next_due();
    }

    /// A slice of a lane begins. Everything due in earlier slices is settled.
    fn slice_opens(&mut self, slice: Slice) {
        self.window.slice_opens(self.arrivals, self.part, slice);
        self.opened = slice.begins;
        self.behind = false;
        self.ends = slice.begins + slice.length;
        self.sends_until = Nanos::MAX;
        self.due = self.next_due();
    }

    /// The window is over: requests due after this moment do not count.
    fn closes_at(&mut self, at: Nanos) {
        self.ends = self.ends.min(at);
        self.sends_until = at + self.timeout.min(GRACE);
        self.due = self.next_due();
    }

    /// The schedule in use: the warm-up's before the window, then the window's.
    fn schedule(&mut self) -> &mut Schedule {
        if self.opened == Nanos::MAX { &mut self.warm_up } else { self.window.schedule() }
    }

    fn next_due(&mut self) -> Nanos {
        if self.opened < Nanos::MAX {
            return self.window.next_due(self.ends);
        }
        let due = self.begins.saturating_add(self.warm_up.first());
        if due < self.ends { due } else { Nanos::MAX }
    }

    /// Takes the next due request: returns its intended send time.
    #[inline]
    fn take(&mut self) -> Nanos {
        let intended = self.due;
        self.schedule().take();
        self.due = self.next_due();
        intended
    }

    /// Gives up requests that queued for longer than the timeout, or all of them once writing has
    /// stopped; at most one portion at a time.
    fn give_up(&mut self, now: Nanos) {
        let over = now >= self.sends_until;
        for _ in 0..PORTION {
            self.behind = !self.is_over() && (over || self.due.saturating_add(self.timeout) < now);
            if !self.behind {
                return;
            }
            let intended = self.take();
            if self.counts(intended) {
                self.window.count(intended).given_up(intended);
            }
        }
    }

    /// Gives up all remaining requests, until the end of the window. If there was no window, nothing
    /// counts: the schedule of the warm-up has no end.
    fn settles(&mut self, now: Nanos) {
        if self.opened == Nanos::MAX {
            self.due = Nanos::MAX;
        }
        self.sends_until = 0;
        for (intended, _) in std::mem::take(&mut self.again) {
            // It has been counted as due.
            self.window.count(intended).unsent += 1;
        }
        while !self.is_over() {
            self.give_up(now);
        }
    }

    /// Records a request due at `intended` that is written now, to a connection that has been free since
    /// `since`.
    #[inline]
    fn writes(&mut self, intended: Nanos, since: Nanos, now: Nanos, place: usize) {
        self.mark_extra(place);
        if self.counts(intended) {
            let free = since.max(intended);
            self.asked[place] = Asked { intended, free };
            self.window.count(intended).written(intended, now.saturating_sub(free), now - intended);
        }
    }

    /// Whether a request belongs to the window.
    #[inline]
    fn counts(&self, intended: Nanos) -> bool {
        intended >= self.opened
    }

    /// Marks the request at this place as outside the schedule.
    fn mark_extra(&mut self, place: usize) {
        self.asked[place] = Asked::default();
    }

    /// Counts the outstanding requests of a connection as timed out or lost.
    fn no_reply(&mut self, times: &Times, ring: &Ring, owed: u32, timed_out: bool) {
        for place in times.places(ring, owed) {
            let Asked { intended, .. } = std::mem::take(&mut self.asked[place]);
            if intended > 0 {
                let count = self.window.count(intended);
                *(if timed_out { &mut count.timed_out } else { &mut count.lost }) += 1;
            }
        }
    }
}

impl Open {
    /// Sends due requests while connections are free, and gives up those that queued for too long.
    fn send_due<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        if worker.depth == 0 {
            return;
        }
        loop {
            worker.now = clock::now();
            if const { D::MULTIPLEXED } && !Open::send_again(worker) {
                return;
            }
            let open = &mut worker.drive;
            if open.window.is_stage_over(worker.now) {
                open.window.next_stage(worker.now, worker.count.spun_ns);
            }
            if !open.is_due(worker.now) {
                if open.due - worker.now > QUIET {
                    open.schedule().make_ahead();
                }
                return;
            }
            open.give_up(worker.now);
            if open.behind {
                return;
            }
            if !open.is_due(worker.now) {
                continue;
            }
            let Some((slot, since)) = open.turns.next() else { return };
            let depth = worker.depth_of(slot);
            let connection = &worker.connections[slot as usize];
            let owed = connection.cursor.owed();
            let closed = connection.state == State::Closed;
            if !closed && (connection.state != State::Open || owed >= depth) {
                continue;
            }
            let open = &mut worker.drive;
            let intended = open.take();
            open.writes(intended, since, worker.now, worker.times.next_place(&connection.sent));
            if closed {
                worker.connect_in_turn(slot);
                continue;
            }
            if owed + 1 < depth {
                open.turns.freed(slot, since);
            }
            worker.ask(slot, 1);
        }
    }
}

impl Driver for Open {
    const SCHEDULED: bool = true;

    fn new(plan: &Plan, share: Share) -> Self {
        let arrivals = match plan.drive {
            Drive::Open { arrivals, .. } => arrivals,
            _ => Arrivals::default(),
        };
        Open::at(arrivals, plan, share)
    }

    /// The schedule of the window counts from its start, which is the same moment for all threads of a
    /// process.
    fn begins<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        if let Some(slice) = worker.slice {
            return worker.drive.slice_opens(slice);
        }
        match (worker.phase, worker.plan.until) {
            (Phase::Measuring, Until::Elapsed(window)) => {
                let opened_at = worker.shared.window_opened_at();
                let spun = worker.count.spun_ns;
                worker.drive.opens(opened_at, window.as_nanos() as Nanos, spun);
            }
            _ => worker.drive.warms_up(clock::now()),
        }
    }

    #[inline]
    fn turns<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        Open::send_due(worker);
    }

    /// Due requests are sent before other ready sockets are handled.
    #[inline]
    fn between<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        if worker.drive.is_urgent(worker.now) {
            Open::send_due(worker);
        }
    }

    fn closes_window<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        // Sends what was due before the end, in case this thread is late.
        Open::send_due(worker);
        let now = clock::now();
        worker.drive.window.closes(now, worker.count.spun_ns);
        worker.drive.closes_at(now);
    }

    /// Gives every remaining request an outcome.
    fn ends<D: Dialect>(worker: &mut Worker<'_, D, Self>) {
        worker.drive.settles(worker.now);
        for connection in &worker.connections {
            let owed = connection.cursor.owed();
            worker.drive.no_reply(&worker.times, &connection.sent, owed, false);
        }
    }

    /// Records latencies of requests due in the window, whenever their replies come.
    fn answered<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32, replies: u32) {
        let open = &mut worker.drive;
        let connection = &mut worker.connections[slot as usize];
        if worker.counts && slot < worker.active && open.is_counted(connection) {
            worker.count.record_replies(worker.now, replies);
            open.window.record_replies(replies);
        }
        for _ in 0..replies {
            let place = worker.times.oldest_place(&connection.sent);
            let Asked { intended, free } = open.asked[place];
            let (written, _) = worker.times.pop_run(&mut connection.sent, 1);
            if intended > 0 {
                let latency = worker.now - intended;
                let count = open.window.count(intended);
                count.answered(free - intended, written - free, worker.now - written);
                open.window.record_latency(intended, latency);
                worker.count.record_latency(latency, 1);
            }
        }
    }

    #[inline]
    fn is_counted<T>(&self, connection: &Connection<T>) -> bool {
        !connection.awaits_extra()
    }

    /// `None` for requests outside the window.
    fn intended(&self, place: usize) -> Option<Nanos> {
        Some(self.asked[place].intended).filter(|intended| *intended > 0)
    }

    fn goes_on<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.drive.turns.freed(slot, worker.now);
    }

    fn reopens<D: Dialect>(worker: &mut Worker<'_, D, Self>, slot: u32) {
        worker.drive.turns.freed(slot, worker.now);
    }

    /// Without a free connection there is no wake-up time: only an event helps, unless more requests
    /// must be given up. The wake-up is early by the time that is spent spinning.
    fn wakes_at(&self) -> Option<Nanos> {
        (self.behind || !self.turns.is_empty()).then(|| self.due.saturating_sub(self.spin))
    }

    fn has_due(&self) -> bool {
        !self.is_over() || !self.again.is_empty()
    }

    fn connects<T>(&mut self, _slot: u32, connection: &Connection<T>, times: &Times) {
        if connection.extra {
            self.mark_extra(times.next_place(&connection.sent));
        }
    }

    fn closes<T>(&mut self, slot: u32, connection: &Connection<T>, times: &Times) {
        self.no_reply(times, &connection.sent, connection.cursor.owed(), false);
        if connection.state == State::Open {
            self.turns.gone(slot);
        }
    }

    fn timed_out<T>(&mut self, connection: &Connection<T>, times: &Times) {
        self.no_reply(times, &connection.sent, connection.cursor.owed(), true);
    }

    fn answered_wrong<T>(&mut self, _: u32, of: &Connection<T>, times: &Times, _: Nanos) {
        self.no_reply(times, &of.sent, 1, false);
    }

    fn refused<T>(&mut self, _: u32, of: &Connection<T>, times: &Times, _: Nanos) {
        let Asked { intended, .. } = std::mem::take(&mut self.asked[times.oldest_place(&of.sent)]);
        if intended > 0 {
            self.window.count(intended).refused += 1;
        }
    }

    fn one_timed_out<T>(&mut self, _: u32, of: &Connection<T>, times: &Times, _: Nanos) {
        self.no_reply(times, &of.sent, 1, true);
    }

    fn not_processed<T>(&mut self, _: u32, of: &Connection<T>, times: &Times, now: Nanos) -> bool {
        let asked = std::mem::take(&mut self.asked[times.oldest_place(&of.sent)]);
        // Those of the warm-up are dropped.
        let is_due = asked.intended > 0;
        if is_due {
            self.again.push_back((asked.intended, now));
        }
        is_due
    }

    fn exchanges_places(&mut self, one: usize, other: usize) {
        self.asked.swap(one, other);
    }

    fn count_slice(&mut self, count: &mut Count) {
        self.window.count_slice(count);
    }

    fn count(self, count: &mut Count) {
        self.window.add_to(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MS;
    use regatta_script::Workload;

    /// Constant arrivals at the maximum rate on one connection, with the maximum timeout.
    fn open() -> Open {
        let rate = NonZeroU32::new(Plan::MAX_RATE).unwrap();
        let plan = Plan {
            pipeline: 2,
            drive: Drive::Open { rate, arrivals: Arrivals::Constant },
            timeout: Plan::MAX_TIMEOUT,
            ..Plan::closed(([127, 0, 0, 1], 1).into(), Workload::parse("double").unwrap())
        };
        Open::new(&plan, Share { part: Part { thread: 0, threads: 1 }, active: 1, places: 2 })
    }

    /// Requests that were due in the window so far.
    fn due(open: &mut Open) -> u64 {
        open.window.count(Nanos::MAX).due
    }

    #[test]
    fn warm_up_requests_sent_after_the_window_opened_do_not_count() {
        let mut open = open();
        open.warms_up(SECOND);
        let intended = open.take();
        open.writes(intended, 0, 2 * SECOND, 0);
        // The window was open before that was due.
        open.opens(intended - 1, SECOND, 0);
        assert_eq!((open.asked[0].intended, due(&mut open)), (0, 0));
        let intended = open.take();
        open.writes(intended, 0, 2 * SECOND, 1);
        assert_eq!((open.asked[1].intended, due(&mut open)), (intended, 1));
    }

    #[test]
    fn a_long_queue_is_given_up_in_portions_and_completely() {
        let mut open = open();
        open.opens(SECOND, 100 * MS, 0);
        open.closes_at(2 * SECOND);
        open.give_up(2 * SECOND);
        assert!(!open.behind && due(&mut open) == 0, "the grace is not over");
        let over = 3 * SECOND;
        open.give_up(over);
        assert_eq!(
            (due(&mut open), open.window.count(SECOND).unsent),
            (PORTION as u64, PORTION as u64)
        );
        assert!(open.behind && !open.is_urgent(over));
        assert!(open.wakes_at().is_some_and(|at| at < over), "there is more to do at once");
        open.settles(over);
        assert_eq!((due(&mut open), open.window.count(SECOND).unsent), (1_000_000, 1_000_000));
        assert!(open.is_over() && !open.behind);
    }

    #[test]
    fn a_request_that_waited_for_a_connection_arrived_when_it_was_due() {
        let mut open = open();
        open.opens(SECOND, SECOND, 0);
        let intended = open.take();
        let free = 100 * SECOND;
        open.writes(intended, free, free, 0);
        let seen = open.window.count(intended).seen.clone().seen();
        assert_eq!(seen.tenths, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_warm_up_without_a_window_settles_at_once() {
        let mut open = open();
        open.warms_up(SECOND);
        assert!(open.is_due(100 * SECOND) && !open.is_over());
        open.settles(100 * SECOND);
        assert!(open.is_over());
        assert_eq!(due(&mut open), 0);
    }
}
