//! The parts of cells, as rows of a table.

use regatta_record::{Cell, LoadShape, Summary};

/// Returns all parts of the cells under `load`, each with its cell: those of the contenders first, then
/// those of the references.
pub fn parts<'a, T>(
    summary: &'a Summary,
    load: &LoadShape,
    of: fn(&'a Cell) -> &'a [T],
) -> Vec<(&'a Cell, &'a T)> {
    let cells = summary.cells.iter().filter(|cell| cell.load == *load);
    let is_reference = |cell: &&Cell| summary.asked.is_reference(&cell.contender);
    let (references, contenders): (Vec<&Cell>, Vec<&Cell>) = cells.partition(is_reference);
    let cells = contenders.into_iter().chain(references);
    cells.flat_map(|cell| of(cell).iter().map(move |part| (cell, part))).collect()
}
