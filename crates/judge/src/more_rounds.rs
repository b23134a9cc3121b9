//! Where more rounds could decide a comparison, and how many.

use crate::{
    field::{Field, TIE_MARGIN},
    statistics::Floor,
};
use regatta_record::{Asked, Cell, Kind, Relation};

/// Sets the number of rounds that would decide, for each cell that is not distinguishable from the
/// baseline.
pub fn plan(asked: &Asked, fields: &[Field], cells: &mut [Cell], floor: Floor) {
    for cell in cells.iter_mut().filter(|c| c.relation == Some(Relation::Inconclusive)) {
        let Some(field) = fields.iter().find(|field| field.load == cell.load) else { continue };
        let log_ratios = field.log_ratios(&cell.contender, &asked.baseline);
        cell.rounds_to_decide = would_decide(asked, cell, &log_ratios, floor);
    }
}

/// Returns the total number of rounds that would decide the `log_ratios` of a cell to the baseline.
/// `None` for the null server and the twin, if no number of rounds decides, and if the load was the
/// limit, because more rounds would measure the load's limit again.
pub fn would_decide(asked: &Asked, cell: &Cell, log_ratios: &[f64], floor: Floor) -> Option<u32> {
    if cell.verdict.is(Kind::GeneratorBound) || asked.is_reference(&cell.contender) {
        return None;
    }
    floor.rounds_to_decide(log_ratios, TIE_MARGIN)
}
