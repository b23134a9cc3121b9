//! How long a request or message has been incomplete.

use std::time::Instant;

/// When the current incomplete request or message started, if there is one. The time in which input may
/// have waited because the connection was not read does not count.
#[derive(Debug, Default)]
pub(super) struct Begun {
    at: Option<Instant>,
    /// Since when the connection has not been read.
    unread: Option<Instant>,
}

impl Begun {
    /// When it started.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// A part of it is there, and the rest is missing.
    pub(super) fn begins(&mut self, now: Instant) {
        self.at.get_or_insert(now);
    }

    /// It is complete.
    pub(super) fn ends(&mut self) {
        self.at = None;
    }

    /// The connection is not read for now.
    pub(super) fn pauses(&mut self, now: Instant) {
        self.unread.get_or_insert(now);
    }

    /// The connection is read again.
    pub(super) fn resumes(&mut self, now: Instant) {
        let unread = self.unread.take();
        if let Some((at, since)) = self.at.zip(unread) {
            self.at = Some(at + now.saturating_duration_since(since.max(at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_the_time_in_which_it_was_read_counts() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut begun = Begun::default();
        begun.begins(at(0));
        begun.begins(at(1));
        assert_eq!(begun.at(), Some(at(0)));
        begun.pauses(at(2));
        begun.pauses(at(3));
        begun.resumes(at(7));
        assert_eq!(begun.at(), Some(at(5)), "two seconds before 7");
        begun.resumes(at(9));
        assert_eq!(begun.at(), Some(at(5)), "it was read all the time");
        begun.ends();
        begun.pauses(at(10));
        begun.begins(at(11));
        begun.resumes(at(14));
        assert_eq!(begun.at(), Some(at(14)), "it has not been read since it started");
        begun.ends();
        begun.pauses(at(15));
        begun.resumes(at(16));
        begun.begins(at(17));
        begun.resumes(at(20));
        assert_eq!(begun.at(), Some(at(17)), "it was read since before it started");
    }
}
