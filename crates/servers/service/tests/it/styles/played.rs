//! The actions of a program in a play.

use std::{io, time::Duration};

/// An action of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It wrote these bytes, marked as the last ones or not.
    Wrote(Vec<u8>, bool),
    /// It closed its side.
    Finished,
    /// It ran a long job.
    Worked,
}

/// The result of a play.
#[derive(Debug)]
pub struct Played {
    /// The actions of the program, with their times.
    pub actions: Vec<(Duration, Action)>,
    /// When it closed the connection.
    pub closed: Duration,
    /// Number of bytes that it read.
    pub read: usize,
    /// The error that closed the connection. The callback style reports none.
    pub error: Option<io::ErrorKind>,
}

impl Played {
    pub fn writes(&self) -> Vec<&[u8]> {
        let writes = self.actions.iter().filter_map(|(_, action)| match action {
            Action::Wrote(bytes, _) => Some(&bytes[..]),
            _ => None,
        });
        writes.collect()
    }

    pub fn output(&self) -> Vec<u8> {
        self.writes().concat()
    }

    /// When it closed its side.
    pub fn finished(&self) -> Option<Duration> {
        self.actions.iter().find(|(_, action)| *action == Action::Finished).map(|(at, _)| *at)
    }
}
