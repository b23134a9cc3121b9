//! Rates of a pilot pass that may be wrong, and that the race does not confirm.

use regatta_record::{Asked, Cell, Figure, PilotRate, PilotShare};

/// A rate of the race and one of its pilot are alike within this factor. The pilot is short, and loads at a share of its
/// rate have two significant digits.
const ALIKE: f64 = 1.25;

/// One sentence for each rate that loads are a share of and that the race does not confirm under the load of the pilot:
/// a program may be compiled later than any pilot lasts. What a pilot itself makes doubtful counts only of contenders
/// of which the race has no rate under that load.
pub fn doubts(asked: &Asked, cells: &[Cell]) -> Vec<String> {
    // One that failed in all of the race, too, had no load at a wrong rate.
    let has_raced = |one: &PilotRate| {
        cells.iter().any(|cell| cell.contender == one.contender && cell.rounds > 0)
    };
    let is_open = |one: &PilotRate| {
        rate_in_race(cells, one).is_none() && (one.failed.is_none() || has_raced(one))
    };
    let not_confirmed =
        asked.pilot_shares.iter().filter_map(|share| not_confirmed(asked, cells, share));
    not_confirmed.chain(asked.doubts_of_pilots(is_open)).collect()
}

/// The rate of a contender in the race, under the load of its pilot, if it is known.
fn rate_in_race(cells: &[Cell], one: &PilotRate) -> Option<f64> {
    let is_same = |cell: &&Cell| cell.contender == one.contender && cell.load == one.load;
    let cell = cells.iter().find(is_same).filter(|cell| !cell.verdict.voids(Figure::Rate))?;
    Some(cell.rate_per_s.as_ref()?.mean)
}

/// Compares the slowest, or the fastest, contender of the pilot with that of the race, whichever contender it is. Of
/// one without a rate in the race, that of its pilot counts.
fn not_confirmed(asked: &Asked, cells: &[Cell], share: &PilotShare) -> Option<String> {
    let decider = asked.decider(share)?;
    let known = |one: &PilotRate| {
        rate_in_race(cells, one).or((one.rate_per_s > 0.0).then_some(one.rate_per_s))
    };
    let rates: Vec<(f64, &str, f64)> = asked
        .ranked_pilots(share.load)
        .filter_map(|one| Some((known(one)?, one.contender.as_str())))
        .map(|(rate, name)| (share.of.passes(rate, decider.rate_per_s), name, rate))
        .collect();
    let most = rates.iter().map(|(by, ..)| *by).fold(0.0, f64::max);
    let is_passed = most > ALIKE;
    if !is_passed && most * ALIKE >= 1.0 {
        return None;
    }
    let is_named = |by: f64, name: &str| match is_passed {
        true => by > ALIKE,
        false => name == decider.contender,
    };
    let named = rates.iter().filter(|(by, name, _)| is_named(*by, name));
    let in_race: Vec<String> =
        named.map(|(_, name, rate)| format!("{name} had {rate:.0}/s")).collect();
    Some(format!(
        "at {} the {of} contender of the pilot was {} with {:.0}/s, but in the race {}, so loads at a share of the \
         {of} have a rate that is too {}; give the rate as a number",
        share.load,
        decider.contender,
        decider.rate_per_s,
        in_race.join(" and "),
        share.of.too(is_passed),
        of = share.of.name()
    ))
}
