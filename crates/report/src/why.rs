//! Why verdicts are as they are: one note for each remark, with the names of all whom it concerns.

use crate::table::{Note, Table, Tone, verdict_tone, visible};
use regatta_record::{Cell, Kind, alike, are_alike};

/// The findings of the verdicts of `cells`. Remarks that differ in figures alone are one note with the
/// range of these. A disqualification or failure shares its note only with the very same words, since
/// its figures are what was sent and received.
pub fn why(cells: &[&Cell]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    let mut told: Vec<(Kind, Vec<(String, String)>)> = Vec::new();
    for cell in cells {
        let name = visible(&cell.contender);
        if verdict_tone(cell) == Tone::Bad {
            push_bad(&mut notes, cell.verdict.kind.name(), name, visible(&cell.verdict.because));
            continue;
        }
        for (kind, because) in cell.verdict.findings() {
            let remark = (name.clone(), visible(because));
            match told.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, remarks)) => remarks.push(remark),
                None => told.push((kind, vec![remark])),
            }
        }
    }
    for (kind, remarks) in told {
        notes.extend(together(kind.name(), remarks, false));
    }
    notes
}

fn push_bad(notes: &mut Vec<Note>, kind: &'static str, name: String, because: String) {
    match notes.iter_mut().find(|note| note.kind == kind && note.because == because) {
        Some(note) => note.names = format!("{}, {name}", note.names),
        None => notes.push(Note { names: name, kind, because, bad: true }),
    }
}

/// A note for each remark of `(name, text)`, those that are alike being one.
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

/// Replaces the text of a note that an earlier table has too, but for its figures, by a reference to
/// that table.
pub fn once(tables: &mut [Table]) {
    let mut said: Vec<(String, &'static str, String)> = Vec::new();
    for table in tables {
        for note in &mut table.notes {
            let is_same = |(_, kind, because): &&(String, &'static str, String)| {
                let alike = is_verdict(kind) && are_alike(because, &note.because);
                *kind == note.kind && (*because == note.because || alike)
            };
            match said.iter().find(is_same) {
                Some((title, ..)) => {
                    let reference = format!("as under {title}");
                    if reference.len() < note.because.len() {
                        note.because = reference;
                    }
                }
                None => said.push((table.title.clone(), note.kind, note.because.clone())),
            }
        }
    }
}

/// Whether a note is on a verdict whose figures say how much and not what.
fn is_verdict(kind: &str) -> bool {
    [Kind::Noisy, Kind::Unstable, Kind::GeneratorBound, Kind::CoBound, Kind::Idle]
        .iter()
        .any(|verdict| verdict.name() == kind)
}
