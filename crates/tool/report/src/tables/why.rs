//! The reasons of verdicts: one note for each remark, with the names of all contenders it applies to.

use crate::table::{Note, Table, Tone, verdict_tone, visible};
use regatta_record::{Cause, Cell, CellFinding, Kind, alike, are_similar};

/// The kind of notes on undecided costs.
pub const UNCLEAR: &str = "unclear";

/// The start of a reference to the same note under an earlier table.
pub const AS_UNDER: &str = "as under ";

/// The findings of the verdicts of `cells`. Remarks that differ only in figures become one note with
/// the ranges of the figures. Disqualifications and failures share a note only if their texts are
/// identical, because their figures are data that was sent and received.
pub fn why(cells: &[&Cell]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut remarks_by_kind: Vec<(Kind, Vec<(String, String)>)> = Vec::new();
    for cell in cells {
        let name = visible(&cell.contender);
        if verdict_tone(cell) == Tone::Bad {
            push_bad(
                &mut notes,
                cell.verdict.kind().name(),
                name,
                visible(&cell.verdict.because()),
            );
            continue;
        }
        // In results of earlier versions the text of the first finding is that of all.
        let said = cell.verdict.findings.iter().filter(|one| !one.is_silent());
        for finding in said.filter(|one| is_remark(cell, one)) {
            let remark = (name.clone(), visible(&finding.to_string()));
            match remarks_by_kind.iter_mut().find(|(kind, _)| *kind == finding.kind) {
                Some((_, remarks)) => remarks.push(remark),
                None => remarks_by_kind.push((finding.kind, vec![remark])),
            }
        }
    }
    for (kind, remarks) in remarks_by_kind {
        notes.extend(together(kind.name(), remarks, false));
    }
    notes
}

/// Whether a finding needs a remark. That both sides were busy is a mark in the table.
fn is_remark(cell: &Cell, finding: &CellFinding) -> bool {
    match finding.kind {
        Kind::ServerBound | Kind::CoBound => false,
        // Held, unless the load was late.
        Kind::AtAskedRate if matches!(finding.cause, Cause::Held { .. }) => false,
        Kind::AtAskedRate => {
            let verdict = &cell.verdict;
            let explains =
                |figure| verdict.findings.iter().any(|one| one.kind.voids().contains(figure));
            verdict.void.iter().any(|figure| !explains(figure))
        }
        _ => true,
    }
}

fn push_bad(notes: &mut Vec<Note>, kind: &'static str, name: String, because: String) {
    match notes.iter_mut().find(|note| note.kind == kind && note.because == because) {
        Some(note) => note.names = format!("{}, {name}", note.names),
        None => notes.push(Note { names: name, kind, because, bad: true }),
    }
}

/// Makes a note for each remark of `(name, text)`. Remarks that differ only in figures are merged.
pub fn together(
    kind: &'static str,
    remarks: impl IntoIterator<Item = (String, String)>,
    bad: bool,
) -> impl Iterator<Item = Note> {
    alike(remarks).into_iter().map(move |(names, because)| Note {
        names: names.join(", "),
        kind,
        because,
        bad,
    })
}

/// Replaces the text of a note that an earlier one of `tables`, those that are shown, also has by a
/// reference to that table, if the reference is shorter. Amounts may differ. Notes on undecided costs have their reasons, because a table may have two of them.
pub fn once<'t>(tables: impl Iterator<Item = &'t mut Table>) {
    let mut earlier: Vec<(String, &'static str, String)> = Vec::new();
    for table in tables {
        for note in table.notes.iter_mut().filter(|note| note.kind != UNCLEAR) {
            let is_same = |(_, kind, because): &&(String, &'static str, String)| {
                let has_amounts = Kind::named(kind).is_some_and(Kind::has_amounts);
                let alike = has_amounts && are_similar(because, &note.because);
                *kind == note.kind && (*because == note.because || alike)
            };
            match earlier.iter().find(is_same) {
                Some((title, ..)) => {
                    let reference = format!("{AS_UNDER}{title}");
                    if reference.len() < note.because.len() {
                        note.because = reference;
                    }
                }
                None => earlier.push((table.title.clone(), note.kind, note.because.clone())),
            }
        }
    }
}
