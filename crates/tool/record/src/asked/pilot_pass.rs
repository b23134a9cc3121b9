//! The pilot pass of a race: its time, and whose rates loads are a share of.

use crate::{Asked, LoadShape, PilotRate, PilotShare};

/// The longest warm-up of a pilot round is that of the race's observations ([`Asked::settle_s`]) within these
/// bounds, in seconds.
const LONGEST_S: [f64; 2] = [6.0, 20.0];
/// All pilot rounds together take at most this long, in seconds.
const TOTAL_S: f64 = 300.0;
/// In a race with a time limit also at most this part of it. The pilot pass is within the limit
/// ([`Asked::time_for_passes_s`]).
const PART: f64 = 0.25;

impl Asked {
    /// Returns the longest warm-up of a pilot round, in seconds, if there is time for it.
    pub fn longest_pilot_s(&self) -> f64 {
        let [least, most] = LONGEST_S;
        self.settle_s.clamp(least, most)
    }

    /// Returns the time of all pilot rounds together, in seconds.
    pub fn time_for_pilots_s(&self) -> f64 {
        self.time_s.map_or(TOTAL_S, |time_s| (time_s * PART).min(TOTAL_S))
    }

    /// Returns the time for all passes, in seconds: that of the race without its pilot pass. `None`: no limit.
    pub fn time_for_passes_s(&self) -> Option<f64> {
        let pilot_s: f64 = self.pilot.iter().map(|one| one.took_s).sum();
        self.time_s.map(|time_s| (time_s - pilot_s).max(0.0))
    }

    /// Returns the pilots under a load of all contenders that are ranked.
    pub fn ranked_pilots(&self, load: LoadShape) -> impl Iterator<Item = &PilotRate> {
        self.pilot.iter().filter(move |one| one.load == load && !self.is_reference(&one.contender))
    }

    /// Returns the pilot whose rate a share is of; `None` if no contender finished.
    pub fn decider(&self, share: &PilotShare) -> Option<&PilotRate> {
        let beyond = |one, other: &PilotRate| share.of.passes(other.rate_per_s, one) > 1.0;
        let finished = self.ranked_pilots(share.load).filter(|one| one.rate_per_s > 0.0);
        finished.reduce(|one, other| if beyond(one.rate_per_s, other) { other } else { one })
    }

    /// What would give the pilots more time, if one of them warmed up for so many seconds: the end of a sentence.
    pub(crate) fn more_time_for_pilots(&self, warm_up_s: f64) -> &'static str {
        /// A warm-up that ends before the longest one by less is the longest: it has slices of 0.1 s.
        const SLICES_S: f64 = 0.5;
        let is_longest = warm_up_s > self.longest_pilot_s() - SLICES_S;
        match () {
            () if is_longest && self.longest_pilot_s() < LONGEST_S[1] => {
                ", or allow longer warm-ups (--settle, up to 20 s)"
            }
            () if is_longest => "",
            () if self.time_for_pilots_s() < TOTAL_S => {
                ", or allow more time (--time: all pilots have a quarter of it)"
            }
            () => ", or race fewer contenders or loads (all pilots have 5 minutes)",
        }
    }
}
