//! Leads all threads through the phases. Runs on the first load thread, once per turn of its loop,
//! so that the edges of the window and what the caller reads there are the same moment.

use crate::{
    Error, Plan, Until, WarmUp,
    clock::{self, MS, Nanos, SECOND},
    edges::{Edges, SoFar},
    leads::Leads,
    shared::{Phase, Shared, Sums},
    tally::Frame,
    worker::GRACE,
};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

/// Between two looks at what the threads say.
const LOOK: Nanos = 5 * MS;
/// A slice of the warm-up.
const SLICE: Nanos = 100 * MS;
/// This long without a reply, and only refusals: the server is gone.
const DEAD_AFTER: Nanos = 2 * SECOND;
/// How often the server may close a connection after its first reply, for each that is to be opened,
/// before it is said not to keep connections open.
const MOST_DROPS: u64 = 8;
/// How long connections stay open after the last reply, to see whether more comes than was asked for.
const SETTLE: Nanos = 30 * MS;
/// How long a server may take to close a connection whose last request asked it to.
const CLOSES_WITHIN: Nanos = SECOND;
/// A load thread that rested for longer than this before the window works off what piled up.
const SHORT_PAUSE: Nanos = 50_000;
/// For so long at least, and for twice as long as it rested.
const WORKED_OFF: Nanos = 20 * MS;

/// Leads the threads.
pub(crate) struct Director<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
    stop: &'a AtomicBool,
    edges: &'a mut dyn Edges,
    next_look: Nanos,
    /// When the current phase began.
    began: Nanos,
    /// Most connections that were open at a time, and since when.
    most_open: (usize, Nanos),
    warming: Warming,
    pulse: Pulse,
    /// Whether the caller was notified that the load is over.
    notified_over: bool,
    /// When the last reply had come.
    drained: Option<Nanos>,
    outcome: Frame,
    not_opened: Option<Error>,
}

impl<'a> Director<'a> {
    pub fn new(
        plan: &'a Plan,
        shared: &'a Shared,
        stop: &'a AtomicBool,
        edges: &'a mut dyn Edges,
    ) -> Self {
        let outcome = Frame::default();
        Director {
            plan,
            shared,
            stop,
            edges,
            next_look: 0,
            began: clock::now(),
            most_open: (0, clock::now()),
            warming: Warming::default(),
            pulse: Pulse {
                patience: (plan.timeout + plan.patience).as_nanos() as Nanos,
                ..Pulse::default()
            },
            notified_over: false,
            drained: None,
            outcome,
            not_opened: None,
        }
    }

    /// How it went.
    pub fn outcome(self) -> Result<Frame, Error> {
        match self.not_opened {
            Some(error) => Err(error),
            None => Ok(self.outcome),
        }
    }

    fn look(&mut self, now: Nanos, sums: Sums) {
        match self.shared.phase() {
            Phase::Starting => self.starting(now, sums),
            Phase::Connecting => self.connecting(now, sums),
            Phase::WarmingUp => self.warming_up(now, sums),
            Phase::Measuring => self.measuring(now, sums),
            Phase::Draining => self.draining(now, sums),
            Phase::Ended => {}
        }
    }

    fn starting(&mut self, now: Nanos, sums: Sums) {
        if !sums.together {
            return;
        }
        match self.plan.until {
            Until::Elapsed(_) if self.plan.drive.churns() => self.warm_up(now, sums),
            Until::Elapsed(_) => self.connect(now),
            Until::Requests(_) if self.plan.joins_first() => self.connect(now),
            Until::Requests(_) | Until::Done => self.open_counted(),
        }
    }

    fn connect(&mut self, now: Nanos) {
        self.most_open = (0, now);
        self.enter(Phase::Connecting, now);
    }

    /// The window of a counted load, which has no warm-up.
    fn open_counted(&mut self) {
        self.edges.before_window();
        self.open_window();
    }

    fn connecting(&mut self, now: Nanos, sums: Sums) {
        let wanted = self.plan.connections + self.plan.idle;
        if sums.open == wanted {
            self.edges.connected();
            return match self.plan.until {
                Until::Elapsed(_) => self.warm_up(clock::now(), sums),
                Until::Requests(_) | Until::Done => self.open_counted(),
            };
        }
        if sums.open > self.most_open.0 {
            self.most_open = (sums.open, now);
        }
        let (most, since) = self.most_open;
        let patience = self.plan.patience.as_nanos() as Nanos;
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

    fn warm_up(&mut self, now: Nanos, sums: Sums) {
        self.warming = Warming { replies: sums.replies, ..Warming::default() };
        self.enter(Phase::WarmingUp, now);
    }

    fn warming_up(&mut self, now: Nanos, sums: Sums) {
        if let Some(opens_at) = self.warming.opens_at {
            if now >= opens_at {
                return self.open_window();
            }
            self.next_look = self.next_look.min(opens_at);
        } else if self.is_warm(now, &sums) {
            let lasted = now - self.began;
            (self.outcome.warm_up_ns, self.outcome.warm_up_requests) =
                (lasted, sums.replies - self.warming.replies);
            return self.rest_before_window();
        }
        if !self.pulse.beats(now, &sums) {
            self.outcome.server_died = true;
            self.enter(Phase::Ended, now);
        }
    }

    fn is_warm(&mut self, now: Nanos, sums: &Sums) -> bool {
        let lasted = now - self.began;
        let replies = sums.replies - self.warming.replies;
        let ns = |length: Duration| length.as_nanos() as Nanos;
        match self.plan.warm_up {
            WarmUp::Fixed(length) => lasted >= ns(length),
            WarmUp::Steady { least, requests, longest } => {
                let is_steady = self.warming.steadiness.reached(now, replies);
                (is_steady && lasted >= ns(least) && replies >= requests) || lasted >= ns(longest)
            }
            WarmUp::Judged { longest } => {
                let so_far = SoFar { lasted: Duration::from_nanos(lasted), replies };
                (self.warming.is_next_slice(lasted) && self.edges.is_warm(&so_far))
                    || lasted >= ns(longest)
            }
        }
    }

    /// Has the caller read what takes long. Whatever piled up meanwhile is worked off before the
    /// window opens.
    fn rest_before_window(&mut self) {
        let from = clock::now();
        self.edges.before_window();
        let to = clock::now();
        let rested = to - from;
        if rested <= SHORT_PAUSE {
            return self.open_window();
        }
        let opens_at = to + WORKED_OFF.max(2 * rested);
        self.warming.opens_at = Some(opens_at);
        self.next_look = opens_at.min(self.next_look);
        self.pulse.beat(to);
    }

    fn measuring(&mut self, now: Nanos, sums: Sums) {
        let over = match self.plan.until {
            Until::Elapsed(window) => {
                let end = self.began + window.as_nanos() as Nanos;
                self.next_look = self.next_look.min(end.max(now));
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
        } else if !self.pulse.beats(now, &sums) {
            self.outcome.server_died = true;
            self.end_early(now);
        }
    }

    /// Requests that are not answered within the limit are counted by the threads.
    fn draining(&mut self, now: Nanos, sums: Sums) {
        let scheduled = self.plan.drive.rate().is_some();
        let grace = if scheduled { GRACE } else { 0 };
        let longest = grace + self.plan.timeout.as_nanos() as Nanos + 2 * SLICE;
        // A request that was due may still be connected for.
        let connects = scheduled && self.shared.is_opening();
        let drained = sums.together && sums.awaited == 0 && !connects;
        let late = now - self.began > longest;
        if !drained && !late && self.drained.is_none() {
            return;
        }
        let drained = match self.drained {
            Some(at) => at,
            None => {
                self.notify_over();
                if self.plan.until != Until::Done {
                    self.edges.connections_open();
                }
                *self.drained.insert(clock::now())
            }
        };
        // With a connection per request, those that are still open may wait for the server to close.
        let waits = sums.owed_ends > 0;
        if now.saturating_sub(drained) >= if waits { CLOSES_WITHIN } else { SETTLE } {
            if waits {
                self.shared.closes_overdue();
            }
            self.enter(Phase::Ended, now);
        }
    }

    /// The moment is taken right after the caller has read what it reads; at both edges, so that
    /// the same part of the reading falls into the window as out of it.
    fn open_window(&mut self) {
        self.edges.window_opens();
        let at = clock::now();
        self.outcome.window = Some((at, at));
        self.shared.open_window(at);
        self.begin(at);
    }

    fn close_window(&mut self) {
        self.edges.window_closes();
        if let Some((_, end)) = &mut self.outcome.window {
            *end = clock::now();
        }
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
            self.edges.load_over();
        }
    }

    fn enter(&mut self, phase: Phase, now: Nanos) {
        self.shared.set_phase(phase);
        self.begin(now);
    }

    fn begin(&mut self, now: Nanos) {
        self.began = now;
        self.next_look = now;
        self.pulse.beat(now);
    }
}

impl Leads for Director<'_> {
    fn next_look(&self) -> Nanos {
        self.next_look
    }

    fn turn(&mut self, now: Nanos) {
        let stopped = self.stop.load(Relaxed);
        if stopped || self.shared.ends_early() {
            self.outcome.interrupted = stopped;
            self.end_early(now);
        } else if now >= self.next_look {
            self.next_look = now + LOOK;
            self.look(now, self.shared.sums());
        }
    }
}

/// How far the warm-up is.
#[derive(Default)]
struct Warming {
    /// Replies before it began.
    replies: u64,
    steadiness: Steadiness,
    /// Slices of which the caller was told.
    slices: u64,
    /// When the window opens, where that is decided.
    opens_at: Option<Nanos>,
}

impl Warming {
    /// Whether one more slice, or several, are over.
    fn is_next_slice(&mut self, lasted: Nanos) -> bool {
        let over = lasted / SLICE;
        let is_next = over > self.slices;
        self.slices = over;
        is_next
    }
}

/// Whether the rate has settled: the last three slices within 10% of one another.
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

/// Whether the server is alive: it answers, or awaits being asked, or at least does not refuse.
/// One that neither answers nor lets a request be given up takes no connections: silence for
/// `patience` is its end too. So are only lost requests for so long, however many.
#[derive(Default)]
struct Pulse {
    settled: u64,
    refused: u64,
    last: Nanos,
    replies: u64,
    /// Requests that were settled when the last reply came, and when that was.
    answered: (u64, Nanos),
    patience: Nanos,
}

impl Pulse {
    fn beat(&mut self, now: Nanos) {
        self.last = now;
        self.answered.1 = now;
    }

    fn beats(&mut self, now: Nanos, sums: &Sums) -> bool {
        if sums.settled != self.settled {
            *self = Pulse { settled: sums.settled, refused: sums.refused, last: now, ..*self };
        }
        if sums.replies != self.replies {
            *self = Pulse { replies: sums.replies, answered: (sums.settled, now), ..*self };
        }
        let only_refusals = sums.awaited == 0 && sums.refused > self.refused;
        let silence = now - self.last;
        let (settled, answered) = self.answered;
        let only_losses = sums.settled > settled && now - answered >= self.patience;
        !only_losses && silence < if only_refusals { DEAD_AFTER } else { self.patience }
    }
}

#[cfg(test)]
mod tests;
