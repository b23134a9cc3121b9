//! When a connection times out, and what is checked before that.

use super::{ConnInterest, End, Link, OUTPUT_FULL, SocketProbe, State, Timer};
use crate::{Conn, Limits};
use std::time::{Duration, Instant};

/// Interval between checks whether the peer has acknowledged everything, before a drain closes a
/// connection.
const DELIVERY: Duration = Duration::from_millis(5);

/// Interval between checks of a connection that is past its deadline but has unread input.
pub(super) const AGAIN: Duration = Duration::from_millis(1);

impl Link {
    /// The alarm, unless it is deferred until the peer reads.
    fn alarm(&self) -> Option<Instant> {
        self.status.alarm.filter(|_| self.is_open() && self.pending() < OUTPUT_FULL)
    }

    /// When it is cut. An alarm that is not deferred comes first.
    fn cut_at(&self) -> Option<Instant> {
        let is_deferred = self.is_open() && self.pending() >= OUTPUT_FULL;
        let is_closing = matches!(self.state, State::Closing { .. });
        self.status.cut_at.filter(|_| is_deferred || is_closing)
    }

    /// What the engine wants, without an alarm that is deferred.
    pub(crate) fn interest(&self) -> ConnInterest {
        ConnInterest { alarm: self.alarm(), ..self.status }
    }

    /// Whether an alarm was due at `at` and there is room for its output.
    #[inline]
    pub(crate) fn is_due(&self, at: Instant) -> bool {
        self.alarm().is_some_and(|alarm| alarm <= at)
    }

    /// Takes the alarm if it was due at `at`, even without room for its output.
    pub(crate) fn rings_late(&mut self, at: Instant) -> bool {
        let rings = self.is_open() && self.status.alarm.is_some_and(|alarm| alarm <= at);
        if rings {
            self.status.alarm = None;
        }
        rings
    }

    /// Takes the alarm if it is due and there is room for its output.
    pub(crate) fn rings(&mut self, now: Instant) -> bool {
        let rings = self.alarm().is_some_and(|at| at <= now);
        if rings {
            self.status.alarm = None;
        }
        rings
    }

    /// The new deadline, if it may be earlier than before.
    #[inline]
    pub(crate) fn sooner_due(&mut self, limits: &Limits) -> Option<Instant> {
        if !std::mem::replace(&mut self.sooner, false) {
            return None;
        }
        self.armed |= self.stuck.is_some();
        self.due(limits)
    }

    /// When [`Link::look`] must be called.
    pub(crate) fn due(&self, limits: &Limits) -> Option<Instant> {
        self.deadline(limits).map(|(due, _)| due)
    }

    /// The next deadline, and what it is for.
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<(Instant, Timer)> {
        let due = match self.state {
            State::Connecting { until } => (until, Timer::Connect),
            State::Lingering { until, .. } => (until, Timer::Linger),
            State::Delivering => (self.looked + DELIVERY, Timer::Delivery),
            State::Closed(_) => return None,
            State::Open | State::Closing { .. } => self.activity(limits),
        };
        let alarm = self.alarm().into_iter().chain(self.cut_at()).min();
        Some(alarm.filter(|alarm| *alarm < due.0).map_or(due, |alarm| (alarm, Timer::Alarm)))
    }

    /// The next deadline of a connection that is open or closing.
    fn activity(&self, limits: &Limits) -> (Instant, Timer) {
        if let Some(since) = self.stuck {
            return (self.looked.max(since) + limits.progress_interval(), Timer::Progress);
        }
        if self.is_held_up() {
            return (self.looked + Limits::LIVENESS_INTERVAL, Timer::HeldUp);
        }
        let idle = self.active() + limits.idle;
        // A check may find unread input. The next check must not be in the same tick.
        let due = limits.due(self.active(), self.status.inside).max(self.looked + AGAIN);
        // Acknowledgements are noticed only by checking. This check needs a silent peer, so it is
        // not made for each request.
        let look = self.heard.max(self.looked) + limits.idle / 4;
        match self.owes {
            true if look < due => (look, Timer::Owed),
            _ if due < idle => (due, Timer::Request),
            _ => (due, Timer::Idle),
        }
    }

    fn is_held_up(&self) -> bool {
        self.status.waits || !self.status.reads || self.ended
    }

    fn active(&self) -> Instant {
        self.heard.max(self.progress.last_progress())
    }

    /// The timer has fired. The next one is set for the next deadline.
    pub(crate) fn timer_is_gone(&mut self) {
        self.armed = self.stuck.is_some();
    }

    /// Called at the deadline: closes the connection if it has timed out.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        limits: &Limits,
        conn: Conn,
        socket: &impl SocketProbe,
    ) {
        let timeout = self.timeout(now, limits, conn, socket);
        self.looked = now;
        self.sooner = true;
        if let Some(timeout) = timeout {
            self.end(timeout);
        }
    }

    fn timeout(
        &mut self,
        now: Instant,
        limits: &Limits,
        conn: Conn,
        socket: &impl SocketProbe,
    ) -> Option<End> {
        match self.state {
            State::Connecting { until } => (now >= until).then_some(End::Connect),
            State::Lingering { until, .. } => (now >= until).then_some(End::Linger),
            State::Delivering => (socket.unacknowledged(conn) == 0).then_some(End::Delivered),
            State::Closed(_) => None,
            _ if self.cut_at().is_some_and(|at| at <= now) => Some(End::Aborted),
            State::Open | State::Closing { .. } => {
                if self.stuck.is_some() || self.owes {
                    let unacknowledged = socket.unacknowledged(conn);
                    self.progress.sample(now, self.sent, unacknowledged);
                    self.owes = unacknowledged > 0;
                }
                if self.stuck.is_some() {
                    self.progress.is_stalled(now, limits.idle).then_some(End::Stalled)
                } else if self.is_held_up() {
                    let ends = self.status.gone_at_end.is_some_and(|from| now >= from)
                        && !self.wants_read();
                    let is_gone = if ends { socket.has_ended(conn) } else { socket.is_gone(conn) };
                    is_gone.then_some(End::Gone)
                } else if now >= limits.due(self.active(), self.status.inside)
                    // After a stall of the process, input that arrived in time may still be unread.
                    && !socket.is_readable(conn)
                {
                    let idle = now >= self.active() + limits.idle;
                    Some(if idle { End::Idle } else { End::Request })
                } else {
                    None
                }
            }
        }
    }
}
