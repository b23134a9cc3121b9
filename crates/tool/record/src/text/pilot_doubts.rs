//! Rates of a pilot pass that may be wrong.

use crate::{Asked, PilotRate};

impl Asked {
    /// One or two sentences for each contender of whose rate loads are a share, if it was not steady when the longest
    /// warm-up of its pilot was over, or another one afterwards.
    pub fn doubts_of_pilot(&self) -> Vec<String> {
        let deciding = self.pilot.iter().filter(|one| one.decides);
        deciding.flat_map(|one| unsteady(one).into_iter().chain(changed(one))).collect()
    }
}

fn unsteady(one: &PilotRate) -> Option<String> {
    let seconds = one.unsteady_after_s?;
    Some(format!(
        "the rate of {} at {} is not known to have been steady after {seconds:.1} s of its pilot, so loads at a share \
         of it may have a rate that is too low or too high; give the rate as a number, or allow longer warm-ups \
         (--settle, up to 20 s for a pilot; all pilots have 5 minutes, or a quarter of --time)",
        one.contender, one.load
    ))
}

fn changed(one: &PilotRate) -> Option<String> {
    let window = one.window_rate_per_s?;
    Some(format!(
        "the rate of {} at {} was {:.0}/s while it was steady in its pilot, and {window:.0}/s right after that, so \
         loads at a share of it may have a rate that is too low or too high; run the race again, or give the rate as a \
         number",
        one.contender, one.load, one.rate_per_s
    ))
}
