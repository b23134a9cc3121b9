//! Where more rounds could change an answer, and how many would.

use crate::{
    field::{Field, TIE_MARGIN},
    statistics::Floor,
};
use regatta_record::{Asked, Cell, Kind, Relation};

/// Gives each cell that is not told apart from the baseline the rounds that would tell.
pub fn plan(asked: &Asked, fields: &[Field], cells: &mut [Cell], floor: Floor) {
    for cell in cells.iter_mut().filter(|c| c.relation == Some(Relation::NotToldApart)) {
        let Some(field) = fields.iter().find(|field| field.load == cell.load) else { continue };
        let log_ratios = field.log_ratios(&cell.contender, &asked.baseline);
        cell.rounds_to_tell = would_tell(asked, cell, &log_ratios, floor);
    }
}

/// The rounds that would tell `log_ratios` of a cell to the baseline. None where the load's own limit was
/// what was measured, since more rounds would measure the same again.
pub fn would_tell(asked: &Asked, cell: &Cell, log_ratios: &[f64], floor: Floor) -> Option<u32> {
    if cell.verdict.is(Kind::GeneratorBound) || asked.is_reference(&cell.contender) {
        return None;
    }
    floor.rounds_to_tell(log_ratios, TIE_MARGIN)
}
