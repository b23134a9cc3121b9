//! When a silent client has timed out: one that takes what it is still owed has not.

use crate::Limits;
use regatta_engine::Progress;
use std::time::{Duration, Instant};

/// Judges reads that have timed out.
#[derive(Debug, Default)]
pub(super) struct Silence {
    progress: Option<Progress>,
}

impl Silence {
    /// A read has timed out at `now`, and so many bytes of what was sent are unacknowledged. Returns
    /// for how long the read is tried again; `None`: the client has timed out.
    pub(super) fn goes_on(
        &mut self,
        now: Instant,
        unacknowledged: usize,
        limits: Limits,
    ) -> Option<Duration> {
        if unacknowledged == 0 {
            return None;
        }
        let Some(progress) = &mut self.progress else {
            // There is nothing to compare with yet, and a quarter of the limit is soon over.
            let mut progress = Progress::new(now);
            progress.look(now, 0, unacknowledged);
            self.progress = Some(progress);
            return Some(limits.idle / 4);
        };
        let before = progress.took();
        progress.look(now, 0, unacknowledged);
        (progress.took() != before).then_some(limits.idle)
    }

    /// The client was heard of. Returns whether it had been silent.
    pub(super) fn ends(&mut self) -> bool {
        self.progress.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_client_goes_on_while_it_takes_what_it_is_owed() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let limits = Limits { idle: Duration::from_secs(8), ..Limits::default() };
        let mut silence = Silence::default();
        assert_eq!(silence.goes_on(at(8), 0, limits), None, "nothing is owed");
        assert!(!silence.ends());
        assert_eq!(silence.goes_on(at(8), 500, limits), Some(Duration::from_secs(2)));
        assert_eq!(silence.goes_on(at(10), 499, limits), Some(Duration::from_secs(8)));
        assert_eq!(silence.goes_on(at(18), 1, limits), Some(Duration::from_secs(8)));
        assert_eq!(silence.goes_on(at(26), 1, limits), None, "it took nothing");
        assert!(silence.ends());
        assert_eq!(silence.goes_on(at(30), 1, limits), Some(Duration::from_secs(2)));
    }
}
