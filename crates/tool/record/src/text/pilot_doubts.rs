//! Rates of a pilot pass that may be wrong.

use crate::{Asked, PilotRate};

impl Asked {
    /// One sentence for each contender whose rate was not steady when the longest warm-up of a pilot was over.
    pub fn doubts_of_pilot(&self) -> Vec<String> {
        let unsteady = self.pilot.iter().filter_map(|one| Some((one, one.unsteady_after_s?)));
        let sentence = |(one, seconds): (&PilotRate, f64)| {
            format!(
                "the rate of {} at {} was not steady after {seconds:.1} s of its pilot, so loads at a share of it may \
                 have a rate that is too low or too high; give the rate as a number, or allow a longer warm-up \
                 (--settle, at most 20 s for a pilot)",
                one.contender, one.load
            )
        };
        unsteady.map(sentence).collect()
    }
}
