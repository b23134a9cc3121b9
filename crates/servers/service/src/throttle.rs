//! Lines about events that may come in floods: the first at once, then at most one per second, with the number of all
//! that have happened since.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// Events of one kind that are not reported yet.
#[derive(Debug, Default)]
pub struct Throttle {
    pending: u64,
    /// When the first of them happened.
    since: Option<Instant>,
    last_reported: Option<Instant>,
}

/// Events that are reported together: how many, and within which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Their number.
    pub count: u64,
    /// The time from the first of them until the report.
    pub over: Duration,
}

impl Throttle {
    /// The shortest time between two reports.
    pub const INTERVAL: Duration = Duration::from_secs(1);

    /// Counts an event.
    pub fn add(&mut self, now: Instant) {
        self.pending += 1;
        self.since.get_or_insert(now);
    }

    /// When the events that are pending are to be reported. `None`: there are none.
    pub fn due(&self) -> Option<Instant> {
        let since = self.since?;
        Some(self.last_reported.map_or(since, |last| since.max(last + Self::INTERVAL)))
    }

    /// Takes the events that are pending, if it is time to report them.
    pub fn take(&mut self, now: Instant) -> Option<Burst> {
        let since = self.since.filter(|_| self.due().is_some_and(|due| due <= now))?;
        let burst = Burst { count: self.pending, over: now.saturating_duration_since(since) };
        *self = Throttle { pending: 0, since: None, last_reported: Some(now) };
        Some(burst)
    }
}

impl fmt::Display for Burst {
    /// Writes e.g. `count=17 over=1.0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "count={} over={:.1}s", self.count, self.over.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_event_is_reported_at_once_and_later_ones_together() {
        let (mut throttle, start) = (Throttle::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!((throttle.due(), throttle.take(at(0))), (None, None));
        throttle.add(at(0));
        assert_eq!(throttle.due(), Some(at(0)));
        assert_eq!(throttle.take(at(0)).unwrap().to_string(), "count=1 over=0.0s");
        for ms in [10, 20, 900] {
            throttle.add(at(ms));
            assert_eq!((throttle.due(), throttle.take(at(ms))), (Some(at(1000)), None));
        }
        let burst = throttle.take(at(1000)).unwrap();
        assert_eq!(burst.to_string(), "count=3 over=1.0s");
        assert_eq!(throttle.due(), None);
        throttle.add(at(5000));
        assert_eq!(throttle.due(), Some(at(5000)), "a second has passed");
        assert_eq!(throttle.take(at(5000)).unwrap().count, 1);
    }
}
