//! The observation of a contender's warm-up in a life, as it is and relative to the baseline.

use crate::driving::warm::{COMPILES, LEAST_REQUESTS};
use regatta_judge::{Settler, less_changed};
use regatta_record::{LoadShape, Settling, WarmUpSlice};
use std::time::Duration;

/// The middle one of so many slices is not that of a disturbance.
const FEW: usize = 5;

/// The observation of a warm-up.
pub(super) struct WarmUpSeen {
    as_is: Settler,
    /// With costs relative to those of the baseline.
    relative: Settler,
    /// The costs of the baseline beside them, in units of its first one.
    baseline: Vec<f64>,
    /// The baseline is compiled while it runs, so costs relative to it show nothing: those of a contender that
    /// is compiled at the same pace are steady.
    baseline_compiles: bool,
}

impl WarmUpSeen {
    /// Creates an observation without slices under a load; it ends after `longest`.
    pub fn new(longest: Duration, load: &LoadShape) -> WarmUpSeen {
        let is_open = load.drive.rate().is_some();
        let settler = Settler::in_life(longest, if is_open { LEAST_REQUESTS } else { 0 });
        let baseline = Vec::new();
        WarmUpSeen { as_is: settler.clone(), relative: settler, baseline, baseline_compiles: false }
    }

    /// Adds a slice, in which the baseline cost `slower` times as much as in its first one. Returns whether the
    /// contender is warm.
    pub fn add(&mut self, slice: WarmUpSlice, slower: f64) -> bool {
        let relative = slice.cpu_ns.map(|ns| (ns as f64 / slower) as u64);
        self.baseline.push(slower);
        self.baseline_compiles |= self.has_baseline_fallen();
        // Both take it.
        let as_is = self.as_is.add(slice);
        let relative = self.relative.add(WarmUpSlice { cpu_ns: relative, ..slice });
        as_is || relative && !self.baseline_compiles
    }

    /// Whether the baseline's cost is now less than its first one by [`COMPILES`]. Single slices that were disturbed
    /// do not count.
    fn has_baseline_fallen(&self) -> bool {
        let middle = |mut few: [f64; FEW]| {
            few.sort_by(f64::total_cmp);
            few[FEW / 2]
        };
        let (first, last) = (self.baseline.first_chunk(), self.baseline.last_chunk());
        first.zip(last).is_some_and(|(first, last)| middle(*last) * COMPILES < middle(*first))
    }

    /// The slices, as they are.
    pub fn slices(&self) -> &[WarmUpSlice] {
        self.as_is.slices()
    }

    /// The result so far; `None` if no cost could be read.
    pub fn settling(&self) -> Option<Settling> {
        let as_is = self.as_is.settling()?;
        let relative = self.relative.settling().filter(|_| !self.baseline_compiles);
        Some(relative.map_or(as_is, |relative| less_changed(as_is, relative)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::WarmUpClass;

    const SLICE: u64 = 50_000_000;
    const SHORT: Duration = Duration::from_secs(2);

    fn slice(cost: f64) -> WarmUpSlice {
        WarmUpSlice { ns: SLICE, requests: 1_000, cpu_ns: Some((cost * 1_000.0) as u64) }
    }

    /// Observes a baseline and a contender with these costs by slice, in turns.
    fn observe(baseline: impl Fn(usize) -> f64, contender: impl Fn(usize) -> f64) -> [Settling; 2] {
        let new = || WarmUpSeen::new(SHORT, &LoadShape::closed(1, 1));
        let (mut first, mut second) = (new(), new());
        for nth in 0..40 {
            first.add(slice(baseline(nth)), 1.0);
            second.add(slice(contender(nth)), baseline(nth) / baseline(0));
        }
        [first.settling(), second.settling()].map(Option::unwrap)
    }

    #[test]
    fn a_change_of_the_baseline_alone_is_no_warm_up_of_the_others() {
        let slows = |nth: usize| if nth < 15 { 5_000.0 } else { 6_500.0 };
        let [baseline, unlike] = observe(slows, |_| 8_000.0);
        assert_eq!((baseline.class, unlike.class), (WarmUpClass::SlowsDown, WarmUpClass::Flat));
        let [baseline, own] = observe(|_| 8_000.0, slows);
        assert_eq!((baseline.class, own.class), (WarmUpClass::Flat, WarmUpClass::SlowsDown));
        let [baseline, like] = observe(slows, slows);
        assert_eq!((baseline.class, like.class), (WarmUpClass::SlowsDown, WarmUpClass::Flat));
    }

    #[test]
    fn two_compilers_both_warm_up() {
        let compiles = |nth: usize| if nth < 12 { 40_000.0 } else { 9_000.0 };
        let [baseline, contender] = observe(compiles, compiles);
        assert_eq!((baseline.class, contender.class), (WarmUpClass::WarmsUp, WarmUpClass::WarmsUp));
        assert!(contender.after_ns >= 11 * SLICE, "{contender:?}");
    }

    #[test]
    fn one_that_is_compiled_at_the_pace_of_the_baseline_is_not_warm_between_two_compilers() {
        let compiles = |nth: usize| match nth {
            ..10 => 300_000.0,
            10..60 => 40_000.0,
            _ => 9_000.0,
        };
        let mut seen = WarmUpSeen::new(Duration::from_secs(20), &LoadShape::closed(1, 1));
        let is_warm = |nth| seen.add(slice(compiles(nth)), compiles(nth) / compiles(0));
        assert!((0..400).any(is_warm));
        let settling = seen.settling().unwrap();
        assert_eq!(settling.class, WarmUpClass::WarmsUp);
        assert!(settling.warm_ns_per_request < 10_000.0, "{settling:?}");
    }

    #[test]
    fn a_baseline_that_is_disturbed_does_not_compile() {
        let disturbed = |nth: usize| match nth {
            0 => 9_000.0,
            20 | 21 => 3_000.0,
            1..15 => 5_000.0,
            _ => 6_500.0,
        };
        let [_, like] = observe(disturbed, disturbed);
        assert_eq!(like.class, WarmUpClass::Flat, "{like:?}");
    }

    #[test]
    fn without_a_baseline_the_cost_as_it_is_decides() {
        let compiles = |nth: usize| if nth < 12 { 40_000.0 } else { 9_000.0 };
        let [_, seen] = observe(|_| 1.0, compiles);
        assert_eq!(seen.class, WarmUpClass::WarmsUp);
        let unseen = WarmUpSeen::new(SHORT, &LoadShape::closed(1, 1));
        assert_eq!((unseen.settling(), unseen.slices().len()), (None, 0));
    }
}
