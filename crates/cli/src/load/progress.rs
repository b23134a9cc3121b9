//! The progress line while a load runs.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_load::{Phase, Progress};

/// The progress line on stderr.
pub fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {elapsed:>3}  {wide_msg}");
    bar.set_style(style.expect("the template is right"));
    bar
}

/// The text of the progress line; `rate` is the number of replies per second since the last message.
pub fn message(progress: &Progress, rate: f64) -> String {
    let phase = match progress.phase {
        Phase::Starting | Phase::Connecting => "connecting",
        Phase::WarmingUp => "warming up",
        Phase::Measuring => "measuring",
        Phase::Draining | Phase::Ended => "stopping",
    };
    let (open, rate) = (HumanCount(progress.open as u64), HumanCount(rate.round() as u64));
    format!("{phase} · {open} connections · {rate}/s · {} errors", progress.errors)
}
