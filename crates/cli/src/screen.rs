//! The terminal of a race or a search: prints what its events make visible (`regatta_report::Live`).
//!
//! Only the thread that emits events draws, when there is an event; nothing is drawn by a clock.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_record::Event;
use regatta_report::{Live, Looks, Shown};
use std::io::{Write, stderr};

/// Stdout and stderr, as a race uses them.
pub struct Screen {
    live: Live,
    /// The line of progress on stderr; hidden where that is no terminal.
    bar: ProgressBar,
    printed: anyhow::Result<()>,
}

impl Screen {
    /// Looks at what stdout and stderr are.
    pub fn new() -> Screen {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{wide_msg}").expect("the template is right"));
        let (width, colour) = (output::width(), output::colour());
        let live = Live::new(Looks { width, colour, progress: !bar.is_hidden() });
        Screen { live, bar, printed: Ok(()) }
    }

    /// Shows the next event.
    pub fn show(&mut self, event: &Event) {
        for shown in self.live.show(event) {
            match shown {
                Shown::Stdout(text) => {
                    let printed = self.bar.suspend(|| output::print(&text));
                    self.printed = std::mem::replace(&mut self.printed, Ok(())).and(printed);
                }
                // Nobody is left who could be told that stderr has gone.
                Shown::Stderr(text) => {
                    self.bar.suspend(|| stderr().write_all(text.as_bytes())).unwrap_or_default();
                }
                Shown::Progress(text) => {
                    if self.bar.is_finished() {
                        self.bar.reset();
                    }
                    self.bar.set_message(text);
                }
                Shown::NoProgress => self.bar.finish_and_clear(),
            }
        }
    }

    /// Whether all could be printed. A reader of stdout that went away is no error.
    pub fn printed(self) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        self.printed
    }
}
