//! Rates of a pilot pass that the race does not confirm.

use regatta_record::{Asked, Cell, Figure, PilotRate};

/// A rate of the race and one of its pilot are alike within this factor. The pilot is short, and loads at a share of its
/// rate have two significant digits.
const ALIKE: f64 = 1.25;

/// One sentence for each contender of whose rate loads are a share, and whose rate in the race, under the load of its
/// pilot, is another one: a program may be compiled later than any pilot lasts.
pub fn not_confirmed(asked: &Asked, cells: &[Cell]) -> Vec<String> {
    let of = |one: &PilotRate| {
        let is_same = |cell: &&Cell| cell.contender == one.contender && cell.load == one.load;
        let cell = cells.iter().find(is_same).filter(|cell| !cell.verdict.voids(Figure::Rate))?;
        let (pilot, race) = (one.rate_per_s, cell.rate_per_s.as_ref()?.mean);
        let changed = match race / pilot {
            ratio if ratio > ALIKE => "low",
            ratio if ratio < 1.0 / ALIKE => "high",
            _ => return None,
        };
        Some(format!(
            "the rate of {} at {} was {pilot:.0}/s in its pilot, and {race:.0}/s in the race, so loads at a share of \
             it have a rate that is too {changed}; give the rate as a number",
            one.contender, one.load
        ))
    };
    asked.pilot.iter().filter(|one| one.decides).filter_map(of).collect()
}
