//! The search for a capacity: which level to try next, and what the tries show. Pure: it starts
//! nothing and reads no clock.
//!
//! It steps up until a level does not pass, bisects, and then tries both sides of the boundary
//! several more times. It moves outwards wherever a try contradicts. A single try near the boundary
//! depends on chance; the interval ends only at levels where every verification agreed. If several
//! levels in a row above the boundary pass, the earlier failure was bad luck, and the steps up
//! resume.

/// Number of verifications that each end of the interval needs, without exception.
pub const VERIFICATIONS: u32 = 3;
/// Number of consecutive passes above the boundary that put it in doubt.
const DOUBTS: u32 = 2;
/// How many times a search resumes from the highest level that passed, after a boundary was in
/// doubt.
const MOST_RESUMED: u32 = 2;
/// Maximum number of tries of a search.
pub const MOST_TRIES: usize = 60;
/// Bisection stops when the boundary is known to one part in this many.
const FINENESS: u32 = 50;
/// After this many tries, levels double instead of rising by equal steps, so that a far limit is still
/// reached.
const EQUAL_STEPS: usize = 20;

/// How the levels rise until one does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rise {
    /// By the same amount each time; after many tries, to twice the last level.
    Equal,
    /// To twice the last level.
    Doubling,
}

/// The result of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The server holds the level.
    Passed,
    /// The server does not hold the level.
    Failed,
    /// The level was not held, but not because of the server, or no conclusion is possible.
    Unclear,
    /// The machine cannot produce this level.
    Impossible {
        /// Highest level that the machine can produce.
        possible: u32,
    },
}

/// The reason for a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The first levels, upwards.
    StepUp,
    /// Between one that passed and one that did not.
    Bisect,
    /// To verify.
    Verify,
}

/// The upper bound of the capacity.
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
    /// The search ended before it found a bound.
    Open,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The level that separates passes from failures best, over all tries.
    pub best: u32,
    /// Highest level at which every verification passed; if `!verified`, the highest that passed.
    pub low: u32,
    /// Its upper bound.
    pub above: Above,
    /// Whether both ends have all their verifications. An upper end that cannot be verified needs none.
    pub verified: bool,
}

/// A search for the highest level that passes.
#[derive(Clone, Debug)]
pub struct Search {
    step: u32,
    rise: Rise,
    max: u32,
    tried: Vec<(u32, Shown)>,
    /// Highest level that passed before the verification; 0: none.
    passed: u32,
    /// The level above it that did not pass, and whether it failed (`true`) or was unclear.
    not_passed: Option<(u32, bool)>,
    sides: Option<Sides>,
    /// How many times a boundary was in doubt and the steps up resumed beyond it.
    resumed: u32,
}

/// The verification of both sides. They alternate, so that a drift of the machine affects both.
#[derive(Clone, Copy, Debug)]
struct Sides {
    below: Side,
    /// `None`: nothing to verify, because no level above failed.
    above: Option<Side>,
    /// Whether the side above is next.
    turn_above: bool,
    /// Consecutive levels above that passed.
    doubts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Side {
    level: u32,
    /// Number of verifications at this level that agreed.
    agreed: u32,
    /// How far to move outwards at the next contradiction.
    width: u32,
    /// Set if the side cannot be verified.
    ended: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The highest possible level passed.
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
    /// Creates a search that starts at `step` (or `max`, if that is less); levels are 1 to `max`.
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

    /// Records the result of the try at `level`, the level that [`Search::next`] returned.
    pub fn tell(&mut self, level: u32, shown: Shown) {
        let again = self.tried.last() == Some(&(level, Shown::Unclear));
        self.tried.push((level, shown));
        if let Shown::Impossible { possible } = shown {
            self.max = self.max.min(possible);
        }
        match self.sides {
            Some(mut sides) => {
                sides.record(shown, self.max);
                self.sides = Some(sides);
                if sides.doubts >= DOUBTS && self.resumed < MOST_RESUMED {
                    // The failure on the way up was a hiccup.
                    self.resumed += 1;
                    (self.sides, self.not_passed) = (None, None);
                    self.narrow(level, Shown::Passed);
                }
            }
            // A single unclear try may be a hiccup of the machine.
            None if shown == Shown::Unclear && !again => {}
            None => self.narrow(level, shown),
        }
    }

    /// The result so far; `None` if no level has passed.
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
            // A failure above the new maximum was caused by the maximum.
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

    /// The level from `low` on, below the side above, that separates passes from failures with the
    /// fewest contradictions (passes above it, failures at or below it). Of equals, the lowest.
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
        // If no level passes, the side above does not matter.
        if self.below.level == 0 {
            return None;
        }
        let first = if self.turn_above { above.or(below) } else { below.or(above) };
        first.map(|side| side.level)
    }

    fn record(&mut self, shown: Shown, max: u32) {
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
                // Never by more than half: a level between 1 and half of this one may pass.
                let side = self.below;
                let lower = side.level - side.width.min(side.level.div_ceil(2));
                self.below = Side::at(lower, side.width.saturating_mul(2));
            }
        }
    }
}

#[cfg(test)]
mod tests;
