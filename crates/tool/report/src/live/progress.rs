//! The progress bar of a race and the remaining time, derived from the times of its events.

/// Columns of the bar.
const COLUMNS: u32 = 24;
const SECOND: u64 = 1_000_000_000;

/// Expected times, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// The time of one start; `None`: not known, because it ends after a number of requests.
    pub each: Option<u64>,
    /// The time of all starts after those that the bar counts.
    pub later: u64,
}

/// The progress of a race or a search.
#[derive(Debug, Default)]
pub struct Bar {
    /// Time of the first start that counts, and the number of starts done by then.
    first: Option<(u64, u32)>,
    /// Time of the last start, and the number of starts done by then.
    last: (u64, u32),
    /// Total number of starts; 0 if unknown.
    all: u32,
    /// The expected times, for an estimate before the first starts are done.
    expected: Expected,
    /// The latest time at which a start begins, if the race has a time.
    ends_by: Option<u64>,
    /// The unit of the levels of a search.
    unit: &'static str,
}

impl Bar {
    /// A bar for a search of unknown length that starts at `ns`.
    pub fn unbounded(ns: u64, unit: &'static str) -> Bar {
        Bar { first: Some((ns, 0)), unit, ..Bar::default() }
    }

    /// The unit of the levels of a search.
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// Sets the time at which the race ends at the latest.
    pub fn ends_by(&mut self, ns: Option<u64>) {
        self.ends_by = ns;
    }

    /// Records a start, after `done` of `all` are done.
    pub fn starts(&mut self, ns: u64, done: u32, all: u32, expected: Expected) {
        // The pilot pass and the observations of warm-ups have their own counts.
        if done < self.last.1 {
            self.first = None;
        }
        self.first.get_or_insert((ns, done));
        (self.last, self.all, self.expected) = ((ns, done), all, expected);
    }

    /// `3/40 ━━╸───… 2m left`, or the elapsed time if the length is unknown.
    pub fn text(&self, ns: u64) -> String {
        let (_, done) = self.last;
        if self.all == 0 {
            let began = self.first.map_or(ns, |(began, _)| began);
            return seconds(ns.saturating_sub(began) / SECOND);
        }
        let full = (u64::from(COLUMNS) * u64::from(done) / u64::from(self.all)) as u32;
        let full = full.min(COLUMNS);
        let head = u32::from(done > 0 && full < COLUMNS);
        let bar = ["━", "╸", "─"].map(str::to_owned);
        let bar = [
            bar[0].repeat(full as usize),
            bar[1].repeat(head as usize),
            bar[2].repeat((COLUMNS - full - head) as usize),
        ]
        .concat();
        let left = self.left(ns).map_or("time left not known".into(), |left| left + " left");
        format!("{done}/{} {bar} {left}", self.all)
    }

    /// The remaining time in words, if it can be estimated.
    pub fn left(&self, ns: u64) -> Option<String> {
        self.left_s(ns).map(seconds)
    }

    /// The remaining seconds, at least 1: by the mean duration so far, minus the time since the last
    /// start. The expected duration counts as one start more.
    fn left_s(&self, ns: u64) -> Option<u64> {
        let (began, before) = self.first?;
        let (at, done) = self.last;
        let (spent, starts) = (at - began, u64::from(done - before));
        let each = match self.expected.each {
            Some(expected) => (spent + expected) / (starts + 1),
            None => spent.checked_div(starts)?,
        };
        let due = each.saturating_mul(u64::from(self.all.saturating_sub(done)));
        let left = due.saturating_sub(ns.saturating_sub(at)).saturating_add(self.expected.later);
        let left = self.ends_by.map_or(left, |end| left.min(end.saturating_sub(ns)));
        Some(left.div_ceil(SECOND).max(1))
    }
}

/// `42s`, `3m`, `1h40m`.
pub fn seconds(s: u64) -> String {
    match s {
        0..100 => format!("{s}s"),
        100..6_000 => format!("{}m", (s + 30) / 60),
        _ => format!("{}h{:02}m", s / 3_600, s % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Expected = Expected { each: None, later: 0 };

    fn expected(seconds: u64) -> Expected {
        Expected { each: Some(seconds * SECOND), later: 0 }
    }

    #[test]
    fn estimates_the_remaining_time() {
        let mut bar = Bar::default();
        bar.starts(SECOND, 0, 4, UNKNOWN);
        assert_eq!(bar.text(2 * SECOND), "0/4 ──────────────────────── time left not known");
        bar.starts(11 * SECOND, 1, 4, UNKNOWN);
        assert_eq!(bar.text(11 * SECOND), "1/4 ━━━━━━╸───────────────── 30s left");
        assert_eq!(bar.text(14 * SECOND), "1/4 ━━━━━━╸───────────────── 27s left");
        bar.starts(31 * SECOND, 3, 4, UNKNOWN);
        assert_eq!(bar.text(99 * SECOND), "3/4 ━━━━━━━━━━━━━━━━━━╸───── 1s left");
    }

    #[test]
    fn the_first_start_has_an_estimate_and_a_quick_one_does_not_spoil_it() {
        let mut bar = Bar::default();
        bar.starts(0, 0, 10, expected(4));
        assert_eq!(bar.left(0).unwrap(), "40s");
        // A contender that cannot hold the load ends at once.
        bar.starts(1, 1, 10, expected(4));
        assert_eq!(bar.left(1).unwrap(), "18s");
        let later = Expected { later: 60 * SECOND, ..expected(4) };
        bar.starts(1, 1, 10, later);
        assert_eq!(bar.left(1).unwrap(), "78s", "what follows is part of it");
    }

    #[test]
    fn a_resumed_race_counts_only_its_own_rounds() {
        let mut bar = Bar::default();
        bar.starts(0, 10, 20, UNKNOWN);
        assert_eq!(bar.left(0), None);
        bar.starts(5 * SECOND, 11, 20, UNKNOWN);
        assert_eq!(bar.left(5 * SECOND).unwrap(), "45s");
    }

    #[test]
    fn the_estimate_restarts_after_the_pilot_pass() {
        let mut bar = Bar::default();
        bar.starts(0, 0, 2, UNKNOWN);
        bar.starts(SECOND, 1, 2, UNKNOWN);
        bar.starts(2 * SECOND, 0, 50, UNKNOWN);
        assert!(bar.text(2 * SECOND).starts_with("0/50") && bar.left(0).is_none());
        bar.starts(5 * SECOND, 1, 50, UNKNOWN);
        assert_eq!(bar.left(5 * SECOND).unwrap(), "2m");
    }

    #[test]
    fn formats_short_times() {
        assert_eq!(
            [0, 99, 100, 3_600, 6_000, 90_061].map(seconds),
            ["0s", "99s", "2m", "60m", "1h40m", "25h01m"]
        );
    }
}
