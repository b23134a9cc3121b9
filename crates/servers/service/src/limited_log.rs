//! Lines of a log that events of one kind could flood: at most one line per second and kind.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two lines of a kind.
const EVERY: Duration = Duration::from_secs(1);

/// When the last line of each kind was printed. It prints nothing itself.
#[derive(Debug, Default)]
pub struct LimitedLog(Mutex<Vec<Kind>>);

#[derive(Debug)]
struct Kind {
    name: &'static str,
    printed: Instant,
    /// Events since then.
    suppressed: u64,
}

impl LimitedLog {
    /// Counts an event of this kind. If a line about it may be printed, returns how many events of the kind had
    /// none since its last line. There should be few kinds.
    pub fn admits(&self, kind: &'static str, now: Instant) -> Option<u64> {
        // Nothing panics while holding the lock.
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kinds.iter_mut().find(|known| known.name == kind) else {
            kinds.push(Kind { name: kind, printed: now, suppressed: 0 });
            return Some(0);
        };
        if now.saturating_duration_since(known.printed) < EVERY {
            known.suppressed += 1;
            return None;
        }
        known.printed = now;
        Some(std::mem::take(&mut known.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_line_per_second_which_counts_the_suppressed_ones() {
        let (log, start) = (LimitedLog::default(), Instant::now());
        let at = |kind, ms| log.admits(kind, start + Duration::from_millis(ms));
        assert_eq!(at("a", 0), Some(0));
        assert_eq!((at("a", 1), at("a", 999)), (None, None));
        assert_eq!(at("b", 999), Some(0), "another kind");
        assert_eq!(at("a", 1000), Some(2));
        assert_eq!(
            (at("a", 0), at("a", 1999)),
            (None, None),
            "a clock of another thread may be behind"
        );
        assert_eq!(at("a", 5000), Some(2));
        assert_eq!(at("a", 9000), Some(0));
    }
}
