//! The progress bar of a race and the remaining time, derived from the times of its events.

/// Columns of the bar.
const COLUMNS: u32 = 24;
const SECOND: u64 = 1_000_000_000;

/// The progress of a race or a search.
#[derive(Debug, Default)]
pub struct Bar {
    /// Time of the first start that counts, and the number of starts done by then.
    first: Option<(u64, u32)>,
    /// Time of the last start, and the number of starts done by then.
    last: (u64, u32),
    /// Total number of starts; 0 if unknown.
    all: u32,
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

    /// Records a start, after `done` of `all` are done.
    pub fn starts(&mut self, ns: u64, done: u32, all: u32) {
        // The pilot pass and the observations of warm-ups have their own counts.
        if done < self.last.1 {
            self.first = None;
        }
        self.first.get_or_insert((ns, done));
        (self.last, self.all) = ((ns, done), all);
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
        let left = self.left_s(ns).map_or("?".into(), seconds);
        format!("{done}/{} {bar} {left:>4} left", self.all)
    }

    /// The remaining seconds: by the mean duration so far, minus the time since the last start.
    fn left_s(&self, ns: u64) -> Option<u64> {
        let (began, before) = self.first?;
        let (at, done) = self.last;
        let each = (at - began).checked_div(u64::from(done - before))?;
        let left = each.saturating_mul(u64::from(self.all.saturating_sub(done)));
        Some(left.saturating_sub(ns.saturating_sub(at)).div_ceil(SECOND))
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

    #[test]
    fn estimates_the_remaining_time() {
        let mut bar = Bar::default();
        bar.starts(SECOND, 0, 4);
        assert_eq!(bar.text(2 * SECOND), "0/4 ────────────────────────    ? left");
        bar.starts(11 * SECOND, 1, 4);
        assert_eq!(bar.text(11 * SECOND), "1/4 ━━━━━━╸─────────────────  30s left");
        assert_eq!(bar.text(14 * SECOND), "1/4 ━━━━━━╸─────────────────  27s left");
        bar.starts(31 * SECOND, 3, 4);
        assert_eq!(bar.text(99 * SECOND), "3/4 ━━━━━━━━━━━━━━━━━━╸─────   0s left");
    }

    #[test]
    fn a_resumed_race_counts_only_its_own_rounds() {
        let mut bar = Bar::default();
        bar.starts(0, 10, 20);
        assert!(bar.text(0).contains("? left"));
        bar.starts(5 * SECOND, 11, 20);
        assert!(bar.text(5 * SECOND).ends_with(" 45s left"));
    }

    #[test]
    fn the_estimate_restarts_after_the_pilot_pass() {
        let mut bar = Bar::default();
        bar.starts(0, 0, 2);
        bar.starts(SECOND, 1, 2);
        bar.starts(2 * SECOND, 0, 50);
        assert!(bar.text(2 * SECOND).starts_with("0/50") && bar.text(0).contains("? left"));
        bar.starts(5 * SECOND, 1, 50);
        assert!(bar.text(5 * SECOND).ends_with(" 2m left"), "{}", bar.text(5 * SECOND));
    }

    #[test]
    fn formats_short_times() {
        assert_eq!(
            [0, 99, 100, 3_600, 6_000, 90_061].map(seconds),
            ["0s", "99s", "2m", "60m", "1h40m", "25h01m"]
        );
    }
}
