//! Leads all threads through the phases. In a single process it runs on the first load thread, once per
//! turn of its loop, so that the caller's readings and the edges of the window fall on the same moment.

use crate::{
    Error, Plan, Until, WarmUp,
    clock::{self, MS, Nanos, SECOND},
    counts::tally::RunOutcome,
    running::{
        leads::Leads,
        observer::{LoadObserver, Moment, WarmUpProgress},
        pulse::{DEAD_AFTER, Pulse},
        shared::{Phase, Shared, Sums},
        worker::GRACE,
    },
};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

/// Interval between two checks of the threads' gauges.
pub(crate) const CHECK_EVERY: Nanos = 5 * MS;
/// Length of a slice of the warm-up.
const SLICE: Nanos = 100 * MS;
/// The run is given up when more connections than this, per connection to open, were lost after their
/// first reply while connections are being opened.
const MOST_DROPS: u64 = 8;
/// How long connections stay open after the last reply, to detect unsolicited bytes.
const SETTLE: Nanos = 30 * MS;
/// The same in a lane: those of all slices but the last one are detected in the next slice.
const SETTLE_OF_LANE: Nanos = 5 * MS;
/// Maximum time for a server to close a connection after a request with e.g. `Connection: close`.
const CLOSES_WITHIN: Nanos = SECOND;
/// After a pause longer than this before the window, the load first works off its backlog.
const SHORT_PAUSE: Nanos = 50_000;
/// Minimum time to work off a backlog; otherwise it is twice the pause.
const WORKED_OFF: Nanos = 20 * MS;

/// Leads the threads.
pub(crate) struct Director<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
    stop: &'a AtomicBool,
    observer: &'a mut dyn LoadObserver,
    next_check: Nanos,
    /// When the current phase began.
    began: Nanos,
    /// Maximum number of connections that were open at a time while connecting, and when it was reached.
    most_open: (usize, Nanos),
    warming: Warming,
    pulse: Pulse,
    /// Whether the caller was notified that the load is over.
    notified_over: bool,
    /// When the load was found to be drained, or the wait was given up.
    drained: Option<Nanos>,
    outcome: RunOutcome,
    not_opened: Option<Error>,
    /// Number of stages of the window that are over, and reported to the caller.
    stages_over: usize,
    /// The load rests when its connections are open, because it is a lane.
    rests: bool,
    /// Minimum time between the decision to open the window and its opening.
    lead: Nanos,
}

impl<'a> Director<'a> {
    pub fn new(
        plan: &'a Plan,
        shared: &'a Shared,
        stop: &'a AtomicBool,
        observer: &'a mut dyn LoadObserver,
    ) -> Self {
        let outcome = RunOutcome::default();
        Director {
            plan,
            shared,
            stop,
            observer,
            next_check: 0,
            began: clock::now(),
            most_open: (0, clock::now()),
            warming: Warming::default(),
            pulse: Pulse::new(plan),
            notified_over: false,
            drained: None,
            outcome,
            not_opened: None,
            stages_over: 0,
            rests: false,
            lead: 0,
        }
    }

    /// Opens the window at least this long after that is decided: the time that all processes need to
    /// know it in advance. Does not apply without a warm-up.
    pub fn with_lead(self, lead: Nanos) -> Self {
        Director { lead, ..self }
    }

    /// When the window opens, once that is decided and until it opens.
    pub fn opens_at(&self) -> Option<Nanos> {
        self.warming.opens_at.filter(|_| self.shared.phase() == Phase::WarmingUp)
    }

    /// For a lane: leads until it rests, and again when it ends.
    pub fn of_lane(self) -> Self {
        Director { rests: true, ..self }
    }

    /// Returns the window, the warm-up, and how the run ended.
    pub fn outcome(self) -> Result<RunOutcome, Error> {
        match self.not_opened {
            Some(error) => Err(error),
            None => Ok(self.outcome),
        }
    }

    fn check(&mut self, now: Nanos, sums: Sums) {
        match self.shared.phase() {
            Phase::Starting => self.starting(now, sums),
            Phase::Connecting => self.connecting(now, sums),
            Phase::WarmingUp => self.warming_up(now, sums),
            Phase::Measuring => self.measuring(now, sums),
            Phase::Draining => self.draining(now, sums),
            Phase::Resting | Phase::Ended => {}
        }
    }

    fn starting(&mut self, now: Nanos, sums: Sums) {
        if !sums.all_entered {
            return;
        }
        match self.plan.until {
            Until::Elapsed(_) if self.plan.drive.churns() => self.warm_up_or_rest(now, sums),
            Until::Elapsed(_) => self.connect(now),
            Until::Requests(_) if self.plan.joins_first() => self.connect(now),
            Until::Requests(_) | Until::Done => self.open_counted(),
        }
    }

    fn connect(&mut self, now: Nanos) {
        self.most_open = (0, now);
        self.enter(Phase::Connecting, now);
    }

    /// Opens the window of a counted load or a burst, which have no warm-up.
    fn open_counted(&mut self) {
        self.observer.at(Moment::BeforeWindow);
        self.open_window();
    }

    fn connecting(&mut self, now: Nanos, sums: Sums) {
        let wanted = self.plan.connections + self.plan.idle;
        if sums.open == wanted {
            self.observer.at(Moment::Connected);
            return match self.plan.until {
                Until::Elapsed(_) => self.warm_up_or_rest(clock::now(), sums),
                Until::Requests(_) | Until::Done => self.open_counted(),
            };
        }
        if sums.open > self.most_open.0 {
            self.most_open = (sums.open, now);
        }
        let (most, since) = self.most_open;
        let patience = self.patience();
        let nobody_there = most == 0 && sums.awaited == 0 && sums.refused > 0;
        let longest = 3 * patience + wanted as Nanos * 10 * MS;
        if now - since > patience
            || sums.dropped > MOST_DROPS * wanted as u64
            || (nobody_there && now - since > DEAD_AFTER)
            || now - self.began > longest
        {
            let last = self.shared.last_trouble();
            self.not_opened = Some(Error::NotOpened { opened: most, wanted, last });
            self.enter(Phase::Ended, now);
        }
    }

    /// How long to wait for a further connection to open: at least until its first reply has timed out.
    fn patience(&self) -> Nanos {
        let Plan { patience, timeout, .. } = self.plan;
        (*patience).max(*timeout + Duration::from_nanos(2 * SLICE)).as_nanos() as Nanos
    }

    fn warm_up_or_rest(&mut self, now: Nanos, sums: Sums) {
        if self.rests {
            return self.enter(Phase::Resting, now);
        }
        self.warming = Warming { replies: sums.active_replies, ..Warming::default() };
        self.enter(Phase::WarmingUp, now);
    }

    fn warming_up(&mut self, now: Nanos, sums: Sums) {
        if let Some(opens_at) = self.warming.opens_at {
            if now >= opens_at {
                return self.open_window();
            }
            self.next_check = self.next_check.min(opens_at);
        } else if self.is_warm(now, &sums) {
            let lasted = now - self.began;
            (self.outcome.warm_up_ns, self.outcome.warm_up_requests) =
                (lasted, sums.active_replies - self.warming.replies);
            return self.rest_before_window();
        }
        if !self.pulse.is_alive(now, &sums) {
            self.outcome.server_died = true;
            self.enter(Phase::Ended, now);
        }
    }

    fn is_warm(&mut self, now: Nanos, sums: &Sums) -> bool {
        let lasted = now - self.began;
        let replies = sums.active_replies - self.warming.replies;
        let ns = |length: Duration| length.as_nanos() as Nanos;
        match self.plan.warm_up {
            WarmUp::Fixed(length) => lasted >= ns(length),
            WarmUp::Steady { least, requests, longest } => {
                let is_steady = self.warming.steadiness.reached(now, replies);
                (is_steady && lasted >= ns(least) && replies >= requests) || lasted >= ns(longest)
            }
            WarmUp::Judged { longest } => {
                let so_far = WarmUpProgress { lasted: Duration::from_nanos(lasted), replies };
                (self.warming.is_next_slice(lasted) && self.observer.is_warm(&so_far))
                    || lasted >= ns(longest)
            }
        }
    }

    /// Lets the caller take its slow readings. A backlog that builds up meanwhile is worked off before
    /// the window opens.
    fn rest_before_window(&mut self) {
        let from = clock::now();
        self.observer.at(Moment::BeforeWindow);
        let to = clock::now();
        let rested = to - from;
        if rested <= SHORT_PAUSE && self.lead == 0 {
            return self.open_window();
        }
        let working_off = if rested <= SHORT_PAUSE { 0 } else { WORKED_OFF.max(2 * rested) };
        let opens_at = to + working_off.max(self.lead);
        self.warming.opens_at = Some(opens_at);
        self.next_check = opens_at.min(self.next_check);
        self.pulse.restart(to);
    }

    fn measuring(&mut self, now: Nanos, sums: Sums) {
        let over = match self.plan.until {
            Until::Elapsed(window) => {
                let end = self.began + window.as_nanos() as Nanos;
                self.pass_stages(now);
                self.next_check = self.next_check.min(end.max(now));
                now >= end
            }
            Until::Requests(n) => sums.settled >= n + self.plan.joining() as u64,
            Until::Done => {
                let each = self.plan.drive.burst().map_or(0, |burst| burst.requests);
                sums.settled >= self.plan.connections as u64 * u64::from(each)
            }
        };
        if over {
            self.close_window();
            self.enter(Phase::Draining, clock::now());
        } else if !self.pulse.is_alive(now, &sums) {
            self.server_died(now);
        }
    }

    /// Reports the stages that are over by now. The last one ends with the window.
    fn pass_stages(&mut self, now: Nanos) {
        let stages = self.plan.stages.split_last().map_or(&[][..], |(_, before)| before);
        let mut ends = self.began + stages.iter().take(self.stages_over).map(|s| s.ns).sum::<u64>();
        for stage in stages.iter().skip(self.stages_over) {
            ends += stage.ns;
            if now < ends {
                self.next_check = self.next_check.min(ends);
                return;
            }
            self.observer.at(Moment::StageEnds);
            self.stages_over += 1;
        }
    }

    /// Waits until the load is drained. The threads count requests that time out.
    fn draining(&mut self, now: Nanos, sums: Sums) {
        let drained = self.is_drained(&sums);
        let late = now - self.began > self.longest_drain();
        if !drained && !late && self.drained.is_none() {
            return;
        }
        let drained = match self.drained {
            Some(at) => at,
            None => {
                self.notify_over();
                if self.plan.until != Until::Done {
                    self.observer.at(Moment::ConnectionsOpen);
                }
                *self.drained.insert(clock::now())
            }
        };
        // With a connection per request, some connections may still wait for the server to close.
        let waits = sums.owed_ends > 0;
        let settle = if self.rests { SETTLE_OF_LANE } else { SETTLE };
        if now.saturating_sub(drained) >= if waits { CLOSES_WITHIN } else { settle } {
            if waits {
                self.shared.set_closes_overdue();
            }
            self.enter(Phase::Ended, now);
        }
    }

    /// Whether every request that was sent, or is due, is settled.
    pub fn is_drained(&self, sums: &Sums) -> bool {
        // A connection may still be opening for a request that was due.
        let connects = self.plan.drive.rate().is_some() && self.shared.is_opening();
        sums.all_entered && sums.awaited == 0 && !connects && !self.shared.owes_across()
    }

    /// Maximum time in which the load is drained. The threads give up requests before.
    pub fn longest_drain(&self) -> Nanos {
        let grace = if self.plan.drive.rate().is_some() { GRACE } else { 0 };
        grace + self.plan.timeout.as_nanos() as Nanos + 2 * SLICE
    }

    /// Takes the time right after the caller's reading. Both edges do so: the window then excludes the
    /// first reading and includes the last one, which takes equally long.
    fn open_window(&mut self) {
        self.observer.at(Moment::WindowOpens);
        let at = clock::now();
        self.outcome.window = Some((at, at));
        self.shared.open_window(at);
        self.begin(at);
    }

    fn close_window(&mut self) {
        self.observer.at(Moment::WindowCloses);
        if let Some((_, end)) = &mut self.outcome.window {
            *end = clock::now();
        }
    }

    /// Ends the load because the server counts as dead.
    pub fn server_died(&mut self, now: Nanos) {
        self.outcome.server_died = true;
        self.end_early(now);
    }

    /// Ends the load if the caller stops it, or a thread has a reason to. Returns whether it does.
    pub fn ends_early(&mut self, now: Nanos) -> bool {
        let stopped = self.stop.load(Relaxed);
        let ends = stopped || self.shared.ends_early();
        if ends {
            self.outcome.interrupted = stopped;
            self.end_early(now);
        }
        ends
    }

    fn end_early(&mut self, now: Nanos) {
        self.shared.cut_short();
        if self.shared.phase() == Phase::Measuring {
            self.close_window();
        }
        self.notify_over();
        self.enter(Phase::Ended, now);
    }

    fn notify_over(&mut self) {
        if self.outcome.window.is_some() && !std::mem::replace(&mut self.notified_over, true) {
            self.observer.at(Moment::LoadOver);
        }
    }

    fn enter(&mut self, phase: Phase, now: Nanos) {
        self.shared.set_phase(phase);
        self.begin(now);
    }

    /// A phase begins.
    pub fn begin(&mut self, now: Nanos) {
        self.began = now;
        self.next_check = now;
        self.pulse.restart(now);
    }
}

impl Leads for Director<'_> {
    fn next_check(&self) -> Nanos {
        self.next_check
    }

    fn turn(&mut self, now: Nanos) {
        if !self.ends_early(now) && now >= self.next_check {
            self.next_check = now + CHECK_EVERY;
            self.check(now, self.shared.sums());
        }
    }
}

/// Progress of the warm-up.
#[derive(Default)]
struct Warming {
    /// Replies on active connections before it began.
    replies: u64,
    steadiness: Steadiness,
    /// Slices that were over at the last check.
    slices: u64,
    /// When the window opens, once that is decided.
    opens_at: Option<Nanos>,
}

impl Warming {
    /// Whether at least one more slice is over since the last check.
    fn is_next_slice(&mut self, lasted: Nanos) -> bool {
        let over = lasted / SLICE;
        let is_next = over > self.slices;
        self.slices = over;
        is_next
    }
}

/// Whether the rate is steady: the last three slices lie within 10% of one another.
#[derive(Default)]
struct Steadiness {
    slice_began: Option<(Nanos, u64)>,
    rates: [f64; 3],
}

impl Steadiness {
    fn reached(&mut self, now: Nanos, replies: u64) -> bool {
        let (began, before) = *self.slice_began.get_or_insert((now, replies));
        if now - began < SLICE {
            return false;
        }
        self.slice_began = Some((now, replies));
        self.rates.rotate_left(1);
        self.rates[2] = (replies - before) as f64 / (now - began) as f64;
        let lowest = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.rates.iter().copied().fold(0.0, f64::max);
        lowest > 0.0 && lowest >= 0.9 * highest
    }
}

#[cfg(test)]
mod tests;
