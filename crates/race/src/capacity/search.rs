//! The search for a capacity: which level to try next, and what the tries say. Pure: it starts
//! nothing and reads no clock.
//!
//! Steps up until a level does not pass, bisects, and then tries both sides of the boundary several
//! times more, moving outwards wherever a try contradicts. A single try near the boundary is luck;
//! only levels at which every verification agreed are the ends of the interval. Where level after
//! level above the boundary passes, what failed there was bad luck, and the steps up go on.

/// Tries that each end of the interval must pass, or fail, without an exception.
pub const VERIFICATIONS: u32 = 3;
/// So many levels above the boundary that pass one after the other put it in doubt.
const DOUBTS: u32 = 2;
/// So often a boundary in doubt is looked for again, from the highest level that passed.
const MOST_RESUMED: u32 = 2;
/// Most tries of a search.
pub const MOST_TRIES: usize = 60;
/// Bisection ends when the boundary is known to one part in so many.
const FINENESS: u32 = 50;
/// After so many steps of equal length, steps double: a far limit is reached all the same.
const EQUAL_STEPS: usize = 20;

/// How the levels rise until one does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rise {
    /// By as much again.
    Equal,
    /// To twice as much.
    Doubling,
}

/// What a try showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The server holds the level.
    Passed,
    /// The server does not.
    Failed,
    /// The level was not held, and it was not the server's doing, or nothing can be said.
    Unclear,
    /// The machine cannot give more than this.
    Impossible {
        /// Highest level that it can give.
        possible: u32,
    },
}

/// Why a level is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The first levels, upwards.
    StepUp,
    /// Between one that passed and one that did not.
    Bisect,
    /// To make sure.
    Verify,
}

/// What bounds the capacity from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// Every verification at this level failed.
    Failed(u32),
    /// Nothing above this level could be tried.
    End(u32),
    /// This level could not be judged.
    Unclear(u32),
    /// This level failed, but not every time, or it was not verified.
    Unverified(u32),
    /// The search ended before it came to any bound.
    Open,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The level that divides all tries best.
    pub best: u32,
    /// Highest level at which every verification passed; if `!verified`, highest that passed.
    pub low: u32,
    /// What bounds it from above.
    pub above: Above,
    /// Whether both ends were verified as often as they should be.
    pub verified: bool,
}

/// A search for the highest level that passes.
#[derive(Clone, Debug)]
pub struct Search {
    step: u32,
    rise: Rise,
    max: u32,
    tried: Vec<(u32, Shown)>,
    /// Highest level that passed on the way; 0: none.
    passed: u32,
    /// The level above it that did not, and whether it failed (or was unclear).
    not_passed: Option<(u32, bool)>,
    sides: Option<Sides>,
    /// How often a boundary was put in doubt, and the steps up went on beyond it.
    resumed: u32,
}

/// The verification of the two sides in turn, so that a drift of the machine meets both.
#[derive(Clone, Copy, Debug)]
struct Sides {
    below: Side,
    /// `None`: nothing to verify, since no level above failed.
    above: Option<Side>,
    /// Whether it is the turn of the side above.
    turn_above: bool,
    /// Levels above that passed one after the other.
    doubts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Side {
    level: u32,
    /// Verifications at this level that agreed.
    agreed: u32,
    /// How far to move outwards at the next contradiction.
    width: u32,
    /// It came to an end before it was settled.
    ended: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Of what can be tried: the highest level of all passed.
    Highest,
    /// A try could not be judged.
    Unclear,
}

impl Side {
    fn at(level: u32, width: u32) -> Side {
        Side { level, agreed: 0, width, ended: None }
    }

    fn is_settled(&self) -> bool {
        self.ended.is_some() || self.agreed >= VERIFICATIONS
    }
}

impl Search {
    /// Begins at `step` (or `max`, if that is less); levels are 1 to `max`.
    pub fn new(step: u32, rise: Rise, max: u32) -> Search {
        let (step, max) = (step.max(1), max.max(1));
        let tried = Vec::new();
        Search { step, rise, max, tried, passed: 0, not_passed: None, sides: None, resumed: 0 }
    }

    /// The level to try next, and why; `None`: the search is over.
    pub fn next(&self) -> Option<(u32, Why)> {
        if self.tried.len() >= MOST_TRIES || self.max == 0 {
            return None;
        }
        if let Some(sides) = self.sides {
            return sides.next().map(|level| (level, Why::Verify));
        }
        match self.not_passed {
            None => Some((self.higher(), Why::StepUp)),
            Some((1, _)) => None,
            Some((above, _)) => Some((self.passed.midpoint(above), Why::Bisect)),
        }
    }

    /// What the try at `level`, the one that [`Search::next`] gave, showed.
    pub fn tell(&mut self, level: u32, shown: Shown) {
        let again = self.tried.last() == Some(&(level, Shown::Unclear));
        self.tried.push((level, shown));
        if let Shown::Impossible { possible } = shown {
            self.max = self.max.min(possible);
        }
        match self.sides {
            Some(mut sides) => {
                sides.tell(shown, self.max);
                self.sides = Some(sides);
                if sides.doubts >= DOUBTS && self.resumed < MOST_RESUMED {
                    // What failed on the way up was a hiccup.
                    self.resumed += 1;
                    (self.sides, self.not_passed) = (None, None);
                    self.narrow(level, Shown::Passed);
                }
            }
            // Once may be a hiccup of the machine.
            None if shown == Shown::Unclear && !again => {}
            None => self.narrow(level, shown),
        }
    }

    /// What is known by now; `None` where no level has passed.
    pub fn found(&self) -> Option<Found> {
        let Some(Sides { below, above, .. }) = self.sides else {
            let above = match self.not_passed {
                Some((level, true)) => Above::Unverified(level),
                Some((level, false)) => Above::Unclear(level),
                None if self.passed > 0 && self.passed == self.max => Above::End(self.max),
                None => Above::Open,
            };
            let low = self.passed;
            return (low > 0).then_some(Found { best: low, low, above, verified: false });
        };
        if below.level == 0 {
            return None;
        }
        let bound = match (above, self.not_passed) {
            (Some(Side { ended: Some(End::Highest), .. }), _) | (None, None) => {
                Above::End(self.max)
            }
            (Some(Side { ended: Some(End::Unclear), level, .. }), _) => Above::Unclear(level),
            (Some(side), _) if side.is_settled() => Above::Failed(side.level),
            (Some(side), _) => Above::Unverified(side.level),
            (None, Some((level, _))) => Above::Unclear(level),
        };
        let verified = below.is_settled() && above.is_none_or(|side| side.is_settled());
        let low = below.level;
        Some(Found { best: self.divide(low, above), low, above: bound, verified })
    }

    fn higher(&self) -> u32 {
        let higher = match self.rise {
            _ if self.passed == 0 => self.step,
            Rise::Doubling => self.passed.saturating_mul(2),
            Rise::Equal if self.tried.len() < EQUAL_STEPS => self.passed.saturating_add(self.step),
            Rise::Equal => self.passed.saturating_mul(2),
        };
        higher.min(self.max)
    }

    fn narrow(&mut self, level: u32, shown: Shown) {
        match shown {
            Shown::Passed => self.passed = level,
            Shown::Failed => self.not_passed = Some((level, true)),
            Shown::Unclear => self.not_passed = Some((level, false)),
            // What did not pass above the new end was the end's doing.
            Shown::Impossible { .. } => self.not_passed = None,
        }
        let fine = (self.passed / FINENESS).max(1);
        let narrow = match self.not_passed {
            Some((above, _)) => above - self.passed <= fine,
            None => self.passed >= self.max,
        };
        if narrow && self.passed > 0 {
            let width = |above: u32| (above - self.passed).max(fine);
            let above = self.not_passed.filter(|(_, failed)| *failed);
            self.sides = Some(Sides {
                below: Side::at(self.passed, above.map_or(fine, |(level, _)| width(level))),
                above: above.map(|(level, _)| Side::at(level, width(level))),
                turn_above: false,
                doubts: 0,
            });
        }
    }

    /// The level from `low` on, below the side above, that divides all tries with the fewest
    /// contradictions: passes above it and failures at or below it. The lowest of equals.
    fn divide(&self, low: u32, above: Option<Side>) -> u32 {
        let end = match above {
            Some(side) if side.ended.is_none() => side.level - 1,
            _ => u32::MAX,
        };
        let passed = self.tried.iter().filter(|(_, shown)| *shown == Shown::Passed);
        let inside = passed.map(|(level, _)| *level).filter(|level| (low..=end).contains(level));
        let contradictions = |at: u32| {
            let against = |&&(level, shown): &&(u32, Shown)| match shown {
                Shown::Passed => level > at,
                Shown::Failed => level <= at,
                Shown::Unclear | Shown::Impossible { .. } => false,
            };
            self.tried.iter().filter(against).count()
        };
        inside.min_by_key(|&at| (contradictions(at), at)).unwrap_or(low)
    }
}

impl Sides {
    fn next(&self) -> Option<u32> {
        let above = self.above.filter(|side| !side.is_settled());
        let below = Some(self.below).filter(|side| !side.is_settled() && side.level > 0);
        // Without a level that passes, nothing above it matters.
        if self.below.level == 0 {
            return None;
        }
        let first = if self.turn_above { above.or(below) } else { below.or(above) };
        first.map(|side| side.level)
    }

    fn tell(&mut self, shown: Shown, max: u32) {
        let is_above = self.above.is_some_and(|side| Some(side.level) == self.next());
        self.turn_above = !is_above;
        match &mut self.above {
            Some(side) if is_above => match shown {
                Shown::Failed => {
                    side.agreed += 1;
                    self.doubts = 0;
                }
                Shown::Unclear => side.ended = Some(End::Unclear),
                Shown::Impossible { .. } => side.ended = Some(End::Highest),
                Shown::Passed if side.level >= max => side.ended = Some(End::Highest),
                Shown::Passed => {
                    let higher = side.level.saturating_add(side.width).min(max);
                    *side = Side::at(higher, side.width.saturating_mul(2));
                    self.doubts += 1;
                }
            },
            _ if shown == Shown::Passed => self.below.agreed += 1,
            _ => {
                // Never by more than half: between 1 and half of it there may be one that passes.
                let side = self.below;
                let lower = side.level - side.width.min(side.level.div_ceil(2));
                self.below = Side::at(lower, side.width.saturating_mul(2));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Searches on a made-up server; gives what was found and all tries.
    fn search(
        mut search: Search,
        mut server: impl FnMut(u32) -> Shown,
    ) -> (Option<Found>, Vec<(u32, Why)>) {
        let mut tries = Vec::new();
        while let Some((level, why)) = search.next() {
            tries.push((level, why));
            search.tell(level, server(level));
        }
        (search.found(), tries)
    }

    fn passes(passed: bool) -> Shown {
        if passed { Shown::Passed } else { Shown::Failed }
    }

    /// Passes with a probability that falls from 1 to 0 around `boundary`, over about `4 * width`.
    fn noisy(boundary: f64, width: f64, seed: u64) -> impl FnMut(u32) -> Shown {
        let mut random = StdRng::seed_from_u64(seed);
        move |level| {
            let odds = ((boundary - f64::from(level)) / width).exp();
            passes(random.random::<f64>() < odds / (1.0 + odds))
        }
    }

    #[test]
    fn a_sharp_boundary_is_found_to_one_part_in_fifty_wherever_it_lies() {
        for boundary in [1, 2, 3, 7, 50, 99, 999, 1_000, 1_001, 4_850, 12_345, 19_999] {
            for (step, rise) in [(1_000, Rise::Equal), (100, Rise::Doubling), (1, Rise::Equal)] {
                let server = |level| passes(level <= boundary);
                let (found, tries) = search(Search::new(step, rise, 20_000), server);
                let found = found.unwrap();
                let Above::Failed(high) = found.above else { panic!("{boundary}: {found:?}") };
                assert!(found.verified && found.best == found.low, "{found:?}");
                assert!(found.low <= boundary && boundary < high, "{boundary}: {found:?}");
                assert!(high - found.low <= (boundary / FINENESS).max(1), "{boundary}: {found:?}");
                assert!(tries.len() <= 50, "{boundary} by {step}: {} tries", tries.len());
            }
        }
    }

    #[test]
    fn levels_rise_by_the_step_then_halve_then_are_verified_from_both_sides() {
        let (found, tries) =
            search(Search::new(1_000, Rise::Equal, 20_000), |level| passes(level <= 2_300));
        let levels: Vec<u32> = tries.iter().map(|(level, _)| *level).collect();
        let bisection = [2_500, 2_250, 2_375, 2_312, 2_281];
        assert_eq!(levels[..3], [1_000, 2_000, 3_000]);
        assert_eq!(levels[3..8], bisection);
        assert_eq!(levels[8..], [2_281, 2_312, 2_281, 2_312, 2_281, 2_312]);
        let why: Vec<Why> = tries.iter().map(|(_, why)| *why).collect();
        assert_eq!([why[2], why[3], why[8]], [Why::StepUp, Why::Bisect, Why::Verify]);
        assert_eq!(found.unwrap().above, Above::Failed(2_312));
    }

    #[test]
    fn a_noisy_boundary_lies_in_the_interval_and_the_interval_is_no_wider_than_the_noise() {
        for (width, widest) in [(0.002, 0.04), (0.01, 0.12), (0.03, 0.35)] {
            let (mut covered, mut unfinished, mut widths) = (0, 0, Vec::new());
            for seed in 0..300 {
                let boundary = 4_000.0 + seed as f64 * 7.0;
                let server = noisy(boundary, width * boundary, seed);
                let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
                let found = found.unwrap();
                assert!(tries.len() <= MOST_TRIES);
                let Above::Failed(high) = found.above else {
                    unfinished += 1;
                    continue;
                };
                let (low, high) = (f64::from(found.low), f64::from(high));
                assert!(low <= f64::from(found.best) && f64::from(found.best) < high);
                covered += u32::from(low <= boundary && boundary <= high);
                widths.push((high - low) / boundary);
            }
            widths.sort_by(f64::total_cmp);
            let median = widths[widths.len() / 2];
            println!("noise {width}: covered {covered} of 300, {unfinished} open, width {median}");
            assert!(covered >= 270, "noise {width}: {covered} of 300");
            assert!(unfinished <= 6, "noise {width}: {unfinished}");
            assert!(median <= widest, "noise {width}: median width {median}");
        }
    }

    #[test]
    fn bad_luck_on_the_way_up_does_not_hide_what_lies_above() {
        let mut unlucky = [3_000, 2_500, 14_000].to_vec();
        let server = |level| {
            let hit = unlucky.iter().position(|unlucky| *unlucky == level);
            let luck = hit.map(|at| unlucky.remove(at)).is_none();
            passes(luck && level <= 14_500)
        };
        let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
        let found = found.unwrap();
        assert!(found.verified && found.low > 14_000, "{found:?} after {tries:?}");
        assert!(matches!(found.above, Above::Failed(14_501..=15_100)), "{found:?}");
    }

    #[test]
    fn without_a_boundary_the_end_is_told_and_verified() {
        let (found, tries) = search(Search::new(1_000, Rise::Equal, 4_500), |_| Shown::Passed);
        assert_eq!(found.unwrap().above, Above::End(4_500));
        assert_eq!((found.unwrap().low, found.unwrap().verified), (4_500, true));
        assert_eq!(tries.len(), 5 + 3, "{tries:?}");
        let far = Search::new(1, Rise::Equal, 1_000_000);
        assert_eq!(search(far, |_| Shown::Passed).0.unwrap().above, Above::End(1_000_000));
    }

    #[test]
    fn what_the_machine_cannot_give_ends_the_search_at_what_it_can() {
        let server = |level| match level {
            ..=2_700 => Shown::Passed,
            _ => Shown::Impossible { possible: 2_700 },
        };
        let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
        let expected = Found { best: 2_700, low: 2_700, above: Above::End(2_700), verified: true };
        assert_eq!(found, Some(expected));
        assert_eq!(tries.len(), 3 + 1 + 3, "{tries:?}");
        let nothing = |_| Shown::Impossible { possible: 0 };
        assert_eq!(search(Search::new(1_000, Rise::Equal, 20_000), nothing).0, None);
    }

    #[test]
    fn a_load_that_is_the_limit_is_no_upper_end() {
        let server = |level| if level <= 3_200 { Shown::Passed } else { Shown::Unclear };
        let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), server);
        let found = found.unwrap();
        assert!(found.verified && (3_100..=3_200).contains(&found.low), "{found:?}");
        assert!(matches!(found.above, Above::Unclear(3_201..=3_264)), "{found:?}");
        assert_eq!(tries[3..5], [(4_000, Why::StepUp); 2], "once may be a hiccup");
        // One hiccup on the way changes nothing.
        let mut hiccups = 1;
        let server = |level| match level {
            3_000 if hiccups == 1 => {
                hiccups = 0;
                Shown::Unclear
            }
            _ => passes(level <= 5_100),
        };
        let (found, _) = search(Search::new(1_000, Rise::Equal, 20_000), server);
        assert!(matches!(found.unwrap().above, Above::Failed(5_101..=5_202)), "{found:?}");
    }

    #[test]
    fn where_everything_fails_nothing_is_found() {
        let (found, tries) = search(Search::new(1_000, Rise::Equal, 20_000), |_| Shown::Failed);
        assert_eq!(found, None);
        assert_eq!(tries.last(), Some(&(1, Why::Bisect)));
        let (found, _) = search(Search::new(1_000, Rise::Equal, 20_000), |_| Shown::Unclear);
        assert_eq!(found, None);
    }

    #[test]
    fn a_search_that_is_cut_short_tells_what_it_has() {
        let mut search = Search::new(1_000, Rise::Equal, 20_000);
        assert_eq!(search.found(), None);
        search.tell(1_000, Shown::Passed);
        let open = Found { best: 1_000, low: 1_000, above: Above::Open, verified: false };
        assert_eq!(search.found(), Some(open));
        search.tell(2_000, Shown::Failed);
        assert_eq!(search.found().unwrap().above, Above::Unverified(2_000));
    }

    #[test]
    fn a_server_that_passes_by_luck_alone_comes_to_an_end() {
        for seed in 0..100 {
            let mut random = StdRng::seed_from_u64(seed);
            let server = |_| passes(random.random::<bool>());
            let (_, tries) = search(Search::new(1_000, Rise::Doubling, u32::MAX), server);
            assert!(tries.len() <= MOST_TRIES);
        }
    }
}
