//! The terminal output of a race or a capacity search, derived from its events
//! (`regatta_report::Live`).
//!
//! Only the thread that emits events draws, and only when an event occurs; there is no redraw timer.

use crate::{
    output,
    program_name::{as_called, summary_as_called},
};
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use regatta_record::{Event, Form, Happened};
use regatta_report::{Live, Looks, Room, Shown};
use std::{
    borrow::Cow,
    io::{Write, stderr},
};

/// Stdout and stderr of a race.
pub struct Screen {
    live: Live,
    /// The progress on stderr, in one or more lines; hidden if stderr is not a terminal.
    bar: ProgressBar,
    printed: anyhow::Result<()>,
}

impl Screen {
    /// Detects whether stdout and stderr are terminals, and their sizes. `columns`: those of the tables;
    /// empty: those that fit.
    pub fn new(columns: Vec<String>) -> Screen {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is right"));
        let size = Term::stderr().size_checked().filter(|_| !bar.is_hidden());
        let progress =
            size.map(|(height, width)| Room { width: width.into(), height: height.into() });
        let (width, colour) = (output::width(), output::colour());
        let live = Live::new(Looks { width, colour, progress, columns });
        Screen { live, bar, printed: Ok(()) }
    }

    /// Shows the next event.
    pub fn show(&mut self, event: &Event) {
        let mut event = Cow::Borrowed(event);
        if let Happened::Judged(judged) = &event.happened
            && judged.stdout == Form::Text
            && let Some(summary) = summary_as_called(&judged.summary)
            && let Happened::Judged(judged) = &mut event.to_mut().happened
        {
            judged.summary = summary;
        }
        for shown in self.live.show(&event) {
            match shown {
                Shown::Stdout(text) => {
                    let printed = self.bar.suspend(|| output::print(&text));
                    self.printed = std::mem::replace(&mut self.printed, Ok(())).and(printed);
                }
                // If stderr is closed, there is nowhere to report it.
                Shown::Stderr(text) => {
                    let text = as_called(&text);
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

    /// Returns the first error of printing. A closed pipe on stdout is not an error.
    pub fn printed(self) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        self.printed
    }
}
