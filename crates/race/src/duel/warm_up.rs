//! The observation of a contender's warm-up in a life, as it is and relative to the baseline.

use crate::driving::warm::COMPILES;
use regatta_judge::{Settler, less_changed};
use regatta_record::{LoadShape, Settling, WarmUpSlice};
use std::time::Duration;

/// Requests of a short observation at a rate: a virtual machine compiles what was called some thousand times
/// (HotSpot: 5,000 to 15,000), which may take longer than two seconds then.
const LEAST_REQUESTS: u64 = 20_000;

/// The observation of a warm-up.
pub(super) struct WarmUpSeen {
    as_is: Settler,
    /// With costs relative to those of the baseline.
    relative: Settler,
}

impl WarmUpSeen {
    /// Creates an observation without slices under a load; it ends after `longest`.
    pub fn new(longest: Duration, load: &LoadShape) -> WarmUpSeen {
        let is_open = load.drive.rate().is_some();
        let settler = Settler::in_life(longest, if is_open { LEAST_REQUESTS } else { 0 });
        WarmUpSeen { as_is: settler.clone(), relative: settler }
    }

    /// Adds a slice, in which the baseline cost `slower` times as much as in its first one. Returns whether the
    /// contender is warm.
    pub fn add(&mut self, slice: WarmUpSlice, slower: f64) -> bool {
        let relative = slice.cpu_ns.map(|ns| (ns as f64 / slower) as u64);
        // Both take it.
        let is_warm =
            [self.as_is.add(slice), self.relative.add(WarmUpSlice { cpu_ns: relative, ..slice })];
        is_warm.contains(&true)
    }

    /// The slices, as they are.
    pub fn slices(&self) -> &[WarmUpSlice] {
        self.as_is.slices()
    }

    /// The result, beside that of the baseline. A contender whose course is that of a baseline that compiles
    /// warms up, too.
    pub fn settling(&self, baseline: Option<&WarmUpSeen>) -> Option<Settling> {
        let as_is = self.as_is.settling()?;
        let of_baseline = baseline.and_then(|one| one.as_is.settling());
        let fell = of_baseline.map_or(1.0, |one| one.cold_ns_per_request / one.warm_ns_per_request);
        let relative = self.relative.settling().filter(|_| fell < COMPILES);
        Some(relative.map_or(as_is, |relative| less_changed(as_is, relative)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::WarmUpClass;

    const SLICE: u64 = 50_000_000;

    /// Observes a baseline and a contender with these costs by slice, in turns.
    fn observe(baseline: impl Fn(usize) -> f64, contender: impl Fn(usize) -> f64) -> [Settling; 2] {
        let new = || WarmUpSeen::new(Duration::from_secs(2), &LoadShape::closed(1, 1));
        let (mut first, mut second) = (new(), new());
        let slice = |cost: f64| WarmUpSlice {
            ns: SLICE,
            requests: 1_000,
            cpu_ns: Some((cost * 1_000.0) as u64),
        };
        for nth in 0..40 {
            first.add(slice(baseline(nth)), 1.0);
            second.add(slice(contender(nth)), baseline(nth) / baseline(0));
        }
        [first.settling(Some(&first)), second.settling(Some(&first))].map(Option::unwrap)
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
    fn without_a_baseline_the_cost_as_it_is_decides() {
        let compiles = |nth: usize| if nth < 12 { 40_000.0 } else { 9_000.0 };
        let [_, seen] = observe(|_| 1.0, compiles);
        assert_eq!(seen.class, WarmUpClass::WarmsUp);
        assert_eq!(
            WarmUpSeen::new(Duration::from_secs(2), &LoadShape::closed(1, 1)).settling(None),
            None
        );
        assert!(
            WarmUpSeen::new(Duration::from_secs(2), &LoadShape::closed(1, 1)).slices().is_empty()
        );
    }
}
