//! One table for a race in two regimes: at an equal rate, and at saturation.

use crate::{
    numbers,
    table::{Note, Row, Table, Text, visible},
    tables::columns::{Field, NAMES, fields, none},
    texts::sentences::notes,
};
use regatta_record::{Asked, Cell, Figure, Kind, LoadShape, Regimes, Summary};

/// The columns: the regime (0: the equal rate, 1: saturation), the name, and the order in which they are
/// dropped. All others are those of the equal rate, and the first to be dropped.
const COLUMNS: [(usize, &str, u8); 21] = [
    (0, "contender", 0),
    (0, "cost", 1),
    (0, "ratio", 1),
    (0, "result", 2),
    (0, "p50", 8),
    (0, "p99", 4),
    (0, "p99.99", 10),
    (0, "max", 10),
    (0, "lag", 9),
    (0, "unsent", 9),
    (0, "rank", 9),
    (0, "verdict", 5),
    (1, "cost", 3),
    (1, "ratio", 2),
    (1, "result", 8),
    (1, "rate", 2),
    (1, "both", 7),
    (1, "verdict", 5),
    (0, "memory", 6),
    (0, "user", 9),
    (0, "kernel", 9),
];
/// Those with intervals; the others have none here, so that the table stays narrow.
const WITH_INTERVALS: [(usize, &str); 3] = [(0, "cost"), (0, "ratio"), (1, "ratio")];
/// Those that apply to a contender in both regimes.
const OF_BOTH: [&str; 5] = ["contender", "memory", "user", "kernel", "lines"];

/// The names of the two regimes, as rest of a sentence.
pub(crate) fn names(regimes: &Regimes) -> [(LoadShape, String); 2] {
    let rate = numbers::rate(regimes.rate.get().into());
    [
        (regimes.equal_rate, format!("at an equal rate of {rate}")),
        (regimes.saturation, "at saturation".to_owned()),
    ]
}

/// The names of the loads of a race: those of the regimes, or the loads themselves.
pub fn loads(asked: &Asked) -> Vec<String> {
    let regimes = asked.regimes();
    let names = regimes.as_ref().map(names);
    let name = |load: &LoadShape| {
        let name = names.iter().flatten().find(|(other, _)| other == load);
        name.map_or_else(|| visible(&load.to_string()), |(_, name)| name.clone())
    };
    asked.loads.iter().map(name).collect()
}

/// The table, in the order of the ratios at the equal rate.
pub(crate) fn table(summary: &Summary, regimes: &Regimes) -> Table {
    let of = |load: &LoadShape| -> Vec<&Cell> {
        let raced = |c: &&Cell| c.load == *load && c.verdict.kind() != Kind::Skipped;
        summary.cells.iter().filter(raced).collect()
    };
    let names = names(regimes);
    let cells = names.each_ref().map(|(load, _)| of(load));
    let columns = columns(summary, regimes, &cells);
    let mut contenders: Vec<&str> = Vec::new();
    for cell in cells.iter().flatten() {
        if !contenders.contains(&cell.contender.as_str()) {
            contenders.push(&cell.contender);
        }
    }
    contenders.sort_by_key(|name| summary.asked.is_reference(name));
    let at = |regime: usize, name: &str| {
        cells[regime].iter().copied().find(|cell| cell.contender == name)
    };
    let row = |name: &&str| {
        let ratio = at(0, name).filter(|cell| !cell.verdict.voids(Figure::Cost));
        let text = |(regime, field): &(usize, Field<'_>)| {
            // Both have the name and the memory.
            let cell = match field.column.group.is_empty() {
                true => at(0, name).or_else(|| at(1, name)),
                false => at(*regime, name),
            };
            let text = cell.map_or_else(none, |cell| (field.text)(cell));
            match WITH_INTERVALS.contains(&(*regime, field.column.name)) {
                true => text,
                false => Text { text: numbers::brief(&text.text), ..text },
            }
        };
        Row {
            reference: summary.asked.is_reference(name),
            cells: columns.iter().map(text).collect(),
            ratio: ratio.and_then(|cell| cell.ratio_to_baseline),
        }
    };
    let title = format!("{} · {}", summary.asked.workload, regimes.saturation);
    let rows = contenders.iter().map(row).collect();
    let columns = columns.iter().map(|(_, field)| field.column.clone()).collect();
    let each = [0, 1].map(|i| (names[i].1.as_str(), notes(summary, &names[i].0, &cells[i])));
    Table { notes: of_both(each), ..Table::plain(visible(&title), columns, rows) }
}

/// Each column with the regime whose cells it shows.
fn columns<'a>(
    summary: &'a Summary,
    regimes: &Regimes,
    cells: &[Vec<&Cell>; 2],
) -> Vec<(usize, Field<'a>)> {
    let rate = numbers::rate(regimes.rate.get().into());
    let groups = [format!("at {rate}"), "at saturation".to_owned()];
    let mut all = [
        fields(summary, &regimes.equal_rate, &cells[0]),
        fields(summary, &regimes.saturation, &cells[1]),
    ];
    let field = |(regime, name, rank): (usize, &'static str, u8)| {
        let at = all[regime].iter().position(|field| field.column.name == name)?;
        let mut field = all[regime].swap_remove(at).rank(rank);
        let is_known = |c: &&Cell| !["", numbers::NONE].contains(&(field.text)(c).text.as_str());
        if !cells[regime].iter().any(is_known) {
            return None;
        }
        let column = &mut field.column;
        if !OF_BOTH.contains(&name) {
            column.group.clone_from(&groups[regime]);
        }
        match (regime, name) {
            (1, "ratio") => *column = column.clone().titled("ratio").brief(),
            (_, "both") => column.on_request = false,
            _ => {}
        }
        Some((regime, field))
    };
    let is_listed = |name: &&str| COLUMNS.iter().any(|(_, listed, _)| listed == name);
    let others = NAMES.iter().filter(|name| !is_listed(name)).map(|name| (0, *name, 9));
    COLUMNS.iter().copied().chain(others).filter_map(field).collect()
}

/// The notes of both regimes. Those of one of them name it.
fn of_both([(first, at_first), (second, at_second)]: [(&str, Vec<Note>); 2]) -> Vec<Note> {
    let is_same =
        |a: &Note, b: &Note| (a.kind, &a.names, &a.because) == (b.kind, &b.names, &b.because);
    let named =
        |regime: &str, note: Note| Note { because: format!("{regime}, {}", note.because), ..note };
    let mut notes = Vec::new();
    let mut rest = at_second;
    for note in at_first {
        match rest.iter().position(|other| is_same(&note, other)) {
            Some(at) => notes.push(rest.swap_remove(at)),
            None => notes.push(named(first, note)),
        }
    }
    notes.extend(rest.into_iter().map(|note| named(second, note)));
    notes
}
