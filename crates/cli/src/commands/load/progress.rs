//! What is shown while a load runs: a line that changes on a terminal, otherwise a line per second.

use super::seconds::Seconds;
use crate::output;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_load::{Phase, Progress};
use std::time::Duration;

/// The progress line on stderr.
pub fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {elapsed:>3}  {wide_msg}");
    bar.set_style(style.expect("the template is right"));
    bar
}

/// Shows the progress of a load, and keeps its seconds.
pub struct Live {
    bar: ProgressBar,
    /// The seconds of the window so far.
    pub seconds: Seconds,
    /// Seconds of which a line was printed.
    printed: usize,
    /// Replies, and the time, at the last report.
    last: (u64, Duration),
}

impl Live {
    /// Starts with nothing shown.
    pub fn new(seconds: Seconds) -> Self {
        Live { bar: bar(), seconds, printed: 0, last: (0, Duration::ZERO) }
    }

    /// Shows the progress, on the calling thread.
    pub fn show(&mut self, progress: &Progress) {
        progress.seconds.iter().for_each(|second| self.seconds.add(second));
        // Whether there will be a second one is known when it has begun.
        if progress.phase == Phase::Measuring {
            self.print(f64::INFINITY);
        }
        let (replies, at) = self.last;
        self.last = (progress.replies, progress.elapsed);
        let since = progress.replies.saturating_sub(replies) as f64;
        let rate = since / progress.elapsed.saturating_sub(at).as_secs_f64().max(1e-3);
        self.bar.set_message(self.message(progress, rate));
    }

    /// The load is over: clears the line, and prints the last second. `window_s` is the length of the
    /// window.
    pub fn end(&mut self, window_s: f64) {
        self.bar.finish_and_clear();
        // The figures of a single second are those of the result.
        if self.printed > 0 || self.seconds.len() > 1 {
            self.print(window_s);
        }
    }

    /// Clears the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Without a terminal, prints a line for each new second.
    fn print(&mut self, window_s: f64) {
        if !self.bar.is_hidden() {
            return;
        }
        for nth in self.printed..self.seconds.len() {
            output::message(&self.seconds.line(nth, window_s));
        }
        self.printed = self.seconds.len();
    }

    fn message(&self, progress: &Progress, rate: f64) -> String {
        let phase = match progress.phase {
            Phase::Starting | Phase::Connecting => "connecting",
            Phase::WarmingUp => "warming up",
            Phase::Measuring => "measuring",
            Phase::Draining | Phase::Resting | Phase::Ended => "stopping",
        };
        let open = HumanCount(progress.open as u64);
        match self.seconds.last_in_words() {
            // Without the connections, so that it fits into 80 columns.
            Some(figures) => format!("{phase} · {figures}"),
            None => {
                let rate = HumanCount(rate.round() as u64);
                format!("{phase} · {open} connections · {rate}/s · {} errors", progress.errors)
            }
        }
    }
}
