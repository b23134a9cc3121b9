//! Lines of a log that events of one kind could flood: the first at once, then at most one per second and kind, with the
//! number of all events since the last one.

use std::{
    fmt, mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two lines of a kind.
const EVERY: Duration = Duration::from_secs(1);

/// Events of each kind that no line has reported yet. It prints nothing itself, and holds little for each kind, of which
/// there should be few.
#[derive(Debug)]
pub struct LimitedLog<K>(Mutex<Vec<Events<K>>>);

#[derive(Debug)]
struct Events<K> {
    kind: K,
    /// Events that are not reported.
    pending: u64,
    /// When the first of them happened.
    since: Instant,
    reported: Option<Instant>,
    /// About the last one.
    detail: String,
}

/// Events of one kind that one line reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst<K> {
    /// Their kind.
    pub kind: K,
    /// Their number.
    pub count: u64,
    /// The time from the first of them until the report.
    pub over: Duration,
    /// About the last of them.
    pub detail: String,
}

impl<K> Default for LimitedLog<K> {
    fn default() -> Self {
        LimitedLog(Mutex::default())
    }
}

impl<K: Copy + Eq> LimitedLog<K> {
    /// Counts an event. If a line about it may be printed now, returns what it reports.
    pub fn admits(&self, kind: K, now: Instant) -> Option<Burst<K>> {
        count(&mut self.lock(), kind, now).take(now)
    }

    /// Counts an event that [`LimitedLog::take`] returns. `detail`: reported if none of its kind follows before.
    pub fn add(&self, kind: K, detail: String, now: Instant) {
        count(&mut self.lock(), kind, now).detail = detail;
    }

    /// Takes the events of a kind of which a line may be printed now.
    pub fn take(&self, now: Instant) -> Option<Burst<K>> {
        self.lock().iter_mut().find_map(|events| events.take(now))
    }

    /// When [`LimitedLog::take`] returns something next. `None`: nothing is pending.
    pub fn due(&self) -> Option<Instant> {
        self.lock().iter().filter_map(Events::due).min()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Events<K>>> {
        // Nothing panics while holding the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count<K: Copy + Eq>(all: &mut Vec<Events<K>>, kind: K, now: Instant) -> &mut Events<K> {
    let known = all.iter().position(|events| events.kind == kind);
    let place = known.unwrap_or_else(|| {
        let detail = String::new();
        all.push(Events { kind, pending: 0, since: now, reported: None, detail });
        all.len() - 1
    });
    let events = &mut all[place];
    if events.pending == 0 {
        events.since = now;
    }
    events.pending += 1;
    events
}

impl<K: Copy> Events<K> {
    fn due(&self) -> Option<Instant> {
        let due = self.reported.map_or(self.since, |last| self.since.max(last + EVERY));
        (self.pending > 0).then_some(due)
    }

    fn take(&mut self, now: Instant) -> Option<Burst<K>> {
        self.due().filter(|due| *due <= now)?;
        self.reported = Some(now);
        let over = now.saturating_duration_since(self.since);
        let (count, detail) = (mem::take(&mut self.pending), mem::take(&mut self.detail));
        Some(Burst { kind: self.kind, count, over, detail })
    }
}

impl<K> fmt::Display for Burst<K> {
    /// Writes e.g. `count=17 over=1.0s detail="limit 9"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Burst { count, over, detail, .. } = self;
        write!(f, "count={count} over={:.1}s detail={detail:?}", over.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_line_per_second_which_counts_all_since_the_last_one() {
        let (log, start) = (LimitedLog::default(), Instant::now());
        let at =
            |kind, ms| log.admits(kind, start + Duration::from_millis(ms)).map(|burst| burst.count);
        assert_eq!(at("a", 0), Some(1));
        assert_eq!((at("a", 1), at("a", 999)), (None, None));
        assert_eq!(at("b", 999), Some(1), "another kind");
        assert_eq!(at("a", 1000), Some(3));
        assert_eq!(
            (at("a", 0), at("a", 1999)),
            (None, None),
            "a clock of another thread may be behind"
        );
        assert_eq!(at("a", 5000), Some(3));
        assert_eq!(at("a", 9000), Some(1));
    }

    #[test]
    fn events_are_pending_until_a_line_may_report_them() {
        let (log, start) = (LimitedLog::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((log.due(), log.take(at(0))), (None, None));
        log.add('a', "first".into(), at(0));
        assert_eq!(log.due(), Some(at(0)));
        let first = log.take(at(0)).unwrap();
        assert_eq!((first.kind, &*first.to_string()), ('a', "count=1 over=0.0s detail=\"first\""));
        for ms in [10, 20, 900] {
            log.add('a', format!("after {ms} ms"), at(ms));
            assert_eq!((log.due(), log.take(at(ms))), (Some(at(1000)), None));
        }
        log.add('b', String::new(), at(950));
        assert_eq!((log.due(), log.take(at(950)).unwrap().kind), (Some(at(950)), 'b'));
        let burst = log.take(at(1000)).unwrap();
        assert_eq!(burst.to_string(), "count=3 over=1.0s detail=\"after 900 ms\"");
        assert_eq!(log.due(), None);
        log.add('a', String::new(), at(5000));
        assert_eq!(log.due(), Some(at(5000)), "a second has passed");
    }
}
