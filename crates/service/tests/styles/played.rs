//! What a program did in a play.

use std::{io, time::Duration};

/// What a program did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It wrote these bytes; the last ones, if so.
    Wrote(Vec<u8>, bool),
    /// It closed its side.
    Finished,
    /// It did a job that is not short.
    Worked,
}

/// A play that is over.
#[derive(Debug)]
pub struct Played {
    /// What the program did, and when.
    pub deeds: Vec<(Duration, Deed)>,
    /// When it closed the connection.
    pub closed: Duration,
    /// Bytes that it read.
    pub read: usize,
    /// Why it closed the connection, if that was an error. The callback style reports none.
    pub error: Option<io::ErrorKind>,
}

impl Played {
    pub fn writes(&self) -> Vec<&[u8]> {
        let writes = self.deeds.iter().filter_map(|(_, deed)| match deed {
            Deed::Wrote(bytes, _) => Some(&bytes[..]),
            _ => None,
        });
        writes.collect()
    }

    pub fn output(&self) -> Vec<u8> {
        self.writes().concat()
    }

    /// When it closed its side, if it did.
    pub fn finished(&self) -> Option<Duration> {
        self.deeds.iter().find(|(_, deed)| *deed == Deed::Finished).map(|(at, _)| *at)
    }
}
