//! What the leader of a load needs of its load processes, wherever they run.

use crate::{Error, clock::Nanos, processes::ask::Order};
use regatta_record::ProcessMessage;
use std::{io, time::Duration};

/// What the leader received from a load process.
#[derive(Debug)]
pub enum Heard {
    /// A report.
    Report(ProcessMessage),
    /// Something other than a report, or a read error.
    Nonsense(io::Error),
    /// Its output has ended.
    Gone,
    /// The process, or the way to it, failed: what happened, as the rest of a sentence.
    Failed(String),
}

impl Heard {
    /// Whether nothing more comes from this process.
    pub fn is_last(&self) -> bool {
        !matches!(self, Heard::Report(ProcessMessage::Progress(_) | ProcessMessage::Second(_)))
    }
}

/// The load processes of a load that was started, numbered from 0.
pub trait Crew {
    /// Waits for the next input from any process. Returns it with the number of the process; `None` if
    /// nothing came in time.
    fn next(&mut self, within: Duration) -> Option<(usize, Heard)>;

    /// Sends an order to all processes. The time of an order is one of the leader's clock; the crew
    /// converts it. A process that is gone is noticed later, by [`Crew::next`].
    fn order(&mut self, order: Order);

    /// Describes how a process ended after its output has ended, as the rest of a sentence.
    fn ending(&mut self, number: usize) -> String;

    /// The time between the decision to open the window and its opening, in nanoseconds, so that all
    /// processes know the time in advance. 0: they are ordered when it opens.
    fn lead_ns(&self) -> Nanos {
        0
    }

    /// What to call a process in messages, e.g. `load process 2 of 3`.
    fn name(&self, number: usize) -> String;

    /// The error for a process that failed; `because` is the rest of a sentence.
    fn error(&self, number: usize, because: String) -> Error;
}
