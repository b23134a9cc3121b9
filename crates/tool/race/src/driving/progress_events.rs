//! Emits events while a load runs: its phases, and its progress until the window opens.
//!
//! Nothing is emitted inside the measured window. An event is a write to a file and perhaps to a
//! terminal, and the terminal program may then run on any CPU: that disturbance would be measured.
//! So the window is announced before it opens
//! ([`RoundStart::window`](regatta_record::RoundStart)). Its opening and closing are emitted
//! afterwards, with the times of its edges. If an event is being emitted when the window opens, it is
//! completed inside the window, but not on a CPU of the server (`aside`).

use crate::results::events::Events;
use regatta_load::{LoadObserver, Moment, Progress, WarmUpProgress};
use regatta_record::{Happened, Phase};
use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// Minimum interval between two progress events.
const EVERY: Duration = Duration::from_millis(250);

/// When the measured window opened and closed. Written by the thread that leads the load, read by the
/// thread that emits.
#[derive(Debug, Default)]
pub(crate) struct Window {
    opened: OnceLock<Instant>,
    closed: OnceLock<Instant>,
}

impl Window {
    /// Wraps `observer` to also record here when the window opens and closes.
    pub fn around<'a>(&'a self, observer: &'a mut dyn LoadObserver) -> Around<'a> {
        Around { window: self, observer }
    }
}

/// See [`Window::around`].
pub(crate) struct Around<'a> {
    window: &'a Window,
    observer: &'a mut dyn LoadObserver,
}

impl LoadObserver for Around<'_> {
    fn at(&mut self, moment: Moment) {
        // Set before the readings at the edge, so that nothing is emitted during those either. There is
        // only one window; if there were a second, the first would count.
        if moment == Moment::WindowOpens {
            let _ = self.window.opened.set(Instant::now());
        }
        self.observer.at(moment);
        if moment == Moment::WindowCloses {
            let _ = self.window.closed.set(Instant::now());
        }
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.observer.is_warm(so_far)
    }
}

/// Emits the progress of one load.
pub(crate) struct ProgressEvents<'a, 'e> {
    events: &'a mut Events<'e>,
    window: &'a Window,
    phase: Phase,
    /// When progress was emitted last.
    last: Option<Instant>,
}

impl<'a, 'e> ProgressEvents<'a, 'e> {
    /// Starts for a load that is about to open its connections.
    pub fn new(events: &'a mut Events<'e>, window: &'a Window) -> Self {
        events.emit(Happened::PhaseStarted { phase: Phase::Connecting });
        ProgressEvents { events, window, phase: Phase::Connecting, last: None }
    }

    /// Takes the progress that the load reports about ten times a second, in the window once a second.
    pub fn progress(&mut self, progress: &Progress) {
        match (self.window.opened.get(), self.window.closed.get()) {
            (Some(_), None) => {}
            (Some(opened), Some(closed)) => self.window_is_over(*opened, *closed),
            (None, _) => self.before_window(progress),
        }
    }

    /// Emits the remaining phases after the load ended, for whatever reason.
    pub fn ended(mut self) {
        if let (Some(opened), Some(closed)) = (self.window.opened.get(), self.window.closed.get()) {
            self.window_is_over(*opened, *closed);
        }
        if self.phase != Phase::Stopping {
            self.events.emit(Happened::PhaseStarted { phase: Phase::Stopping });
        }
    }

    fn before_window(&mut self, progress: &Progress) {
        use regatta_load::Phase as Load;
        let phase = match progress.phase {
            Load::Starting | Load::Connecting => Phase::Connecting,
            Load::WarmingUp => Phase::WarmUp,
            // The window is just opening, or the load ended without one.
            Load::Measuring | Load::Draining | Load::Resting | Load::Ended => return,
        };
        if phase != self.phase {
            self.phase = phase;
            self.events.emit(Happened::PhaseStarted { phase });
        }
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < EVERY) {
            return;
        }
        self.last = Some(now);
        self.events.emit(Happened::LoadSampled { open: progress.open as u64 });
    }

    fn window_is_over(&mut self, opened: Instant, closed: Instant) {
        if self.phase == Phase::Stopping {
            return;
        }
        self.phase = Phase::Stopping;
        self.events.emit_at(opened, Happened::PhaseStarted { phase: Phase::Window });
        self.events.emit_at(closed, Happened::PhaseStarted { phase: Phase::Stopping });
    }
}

#[cfg(test)]
mod tests;
