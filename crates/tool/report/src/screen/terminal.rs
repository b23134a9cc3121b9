//! Layout for a terminal: the answer first, then tables, then remarks on the machine and doubts.

use crate::{
    screen::{
        ink::{BOLD, DIM, Ink, RED, YELLOW},
        table_layout,
        text::wrap,
    },
    table::{Note, Row, Table, Tone, tone_of},
    tables::{
        overview,
        why::{AS_UNDER, once},
    },
    texts::{
        answer::{Answer, NOT_RACED},
        legend::Legend,
        sentences::{BESIDE_OTHERS, STATES},
    },
    view::{View, in_full},
};
use regatta_record::{Kind, Summary, are_similar};
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthStr;

/// Minimum width; on narrower terminals, text is still wrapped at this width.
const NARROWEST: usize = 40;
/// With more loads there is one overview instead of a table for each.
const LOADS: usize = 4;
/// Below this width, remarks are cut, so that they are not longer than their table.
const ALL_REMARKS: usize = 100;
/// Lines of a remark that is cut.
const REMARK: usize = 2;
/// Kinds of remarks that are never cut: they are results.
const IN_FULL: [&str; 4] = ["then", "now", STATES, BESIDE_OTHERS];
/// Width from which the table of contenders is shown even if it has only versions and commands.
const COMMANDS: usize = 120;

/// Lays out a race for a terminal `width` columns wide, with colours if `colour`.
///
/// No line is wider than `width`, or than 40 columns if `width` is less. The exception is a table whose
/// columns that are never dropped are wider together.
pub fn terminal(summary: &Summary, width: usize, colour: bool) -> String {
    terminal_with(summary, width, colour, &[])
}

/// Lays out a race in the same way as [`terminal`], with the named columns in the tables of the loads, in
/// that order. Without names, the tables have the columns that fit.
pub fn terminal_with(summary: &Summary, width: usize, colour: bool, columns: &[String]) -> String {
    let mut view = in_full(summary);
    if columns.is_empty() {
        view.tables.iter_mut().for_each(Table::without_requested);
    }
    if summary.asked.regimes().is_some() {
        // The page has them.
        view.latency_ratios.clear();
    }
    let all = !is_long(&view) || !columns.is_empty();
    once(
        view.tables.iter_mut().filter(|table| !table.rows.is_empty() && (all || is_special(table))),
    );
    lay_out(&view, width, colour, columns)
}

/// Whether there is one overview instead of a table for each load.
fn is_long(view: &View) -> bool {
    view.raced().count() > LOADS && view.overview.is_some()
}

/// Lays out a view in the same way as [`terminal`].
pub fn lay_out(view: &View, width: usize, colour: bool, columns: &[String]) -> String {
    let width = width.max(NARROWEST);
    let mut ink = Ink::new(colour);
    ink.paragraph(&view.heading[0], width, 0, DIM);
    let is_long = is_long(view);
    answers(&mut ink, view, width, is_long);
    for hint in &view.hints {
        ink.paragraph(hint, width, 2, DIM);
    }
    let mut page = Page { ink, width, legend: Legend::default(), columns };
    if let Some(gate) = &view.gate {
        page.table(gate, false);
    }
    if is_long && let Some(overview) = &view.overview {
        page.matrix(overview);
    }
    let all = !is_long || !columns.is_empty();
    if !all {
        page.which_tables(view);
    }
    view.raced().filter(|table| all || is_special(table)).for_each(|table| page.table(table, true));
    page.legend();
    if is_long {
        if columns.is_empty() {
            page.remarks_on_all(view);
        }
    } else {
        view.details().for_each(|table| page.table(table, false));
    }
    view.scaling.iter().for_each(|table| page.table(table, false));
    page.sweeps(view);
    if let Some(contenders) = view.contenders.as_ref().filter(|table| is_wanted(table, width)) {
        page.table(contenders, false);
    }
    let Page { mut ink, .. } = page;
    ink.line("");
    for line in view.heading[1..].iter().filter(|line| !view.hints.contains(line)) {
        ink.paragraph(line, width, 2, DIM);
    }
    for (names, why) in &view.skipped {
        ink.paragraph(&format!("skipped · {names}: {why}"), width, 2, DIM);
    }
    for doubt in &view.doubts {
        ink.paragraph(&format!("doubt: {doubt}"), width, 2, YELLOW);
    }
    ink.text
}

/// The answer to the question of the race.
fn answers(ink: &mut Ink, view: &View, width: usize, is_long: bool) {
    let is_due = |answer: &&Answer| answer.sentence == NOT_RACED;
    ink.line("");
    if let Some(gate) = &view.gate {
        ink.paragraph(&gate.result, width, 2, BOLD);
    }
    match (&view.answers[..], &view.overall) {
        ([only], _) => {
            ink.paragraph(&only.sentence, width, 0, BOLD);
        }
        (_, Some(overall)) if is_long => {
            ink.paragraph(overall, width, 0, BOLD);
            let each = view.answers.iter().zip(&view.tables);
            for (Answer { load, sentence }, _) in each.filter(|(_, table)| !has_cost(table)) {
                ink.paragraph(&format!("{load}: {sentence}"), width, 2, BOLD);
            }
        }
        (answers, _) if !is_long => {
            for Answer { load, sentence } in answers.iter().filter(|answer| !is_due(answer)) {
                ink.paragraph(&format!("{load}: {sentence}"), width, 2, BOLD);
            }
        }
        _ => {}
    }
    let due: Vec<&str> = view.answers.iter().filter(is_due).map(|a| a.load.as_str()).collect();
    if view.answers.len() > 1 && !due.is_empty() {
        ink.paragraph(&format!("not raced yet: {}", due.join("; ")), width, 2, BOLD);
    }
}

/// Whether a table compares costs, so that an overview has its load.
fn has_cost(table: &Table) -> bool {
    table.rows.is_empty() || table.columns.iter().any(|column| column.name == "cost")
}

/// Whether a table shows something that an overview does not: no costs, or historic results.
fn is_special(table: &Table) -> bool {
    !has_cost(table) || table.notes.iter().any(|note| note.kind == "then")
}

/// Whether the table of contenders tells more than versions and commands, or there is room for them.
fn is_wanted(contenders: &Table, width: usize) -> bool {
    width >= COMMANDS || contenders.columns.iter().any(|c| ["reply", "age"].contains(&c.name))
}

/// The lines of a race, and the marks that occurred in its tables.
struct Page<'a> {
    ink: Ink,
    width: usize,
    legend: Legend,
    /// The chosen columns of the loads' tables; empty: those that fit.
    columns: &'a [String],
}

impl Page<'_> {
    /// A table with its remarks. `of_load`: of the contenders under a load.
    fn table(&mut self, table: &Table, of_load: bool) {
        let chosen = Some(self.columns).filter(|columns| of_load && !columns.is_empty());
        self.ink.line("");
        self.ink.paragraph(&table.title, self.width, 0, BOLD);
        let seen = table_layout::draw(&mut self.ink, table, self.width, chosen);
        if of_load {
            self.legend.see(table, &seen.columns);
            if seen.bars {
                self.legend.see_bars();
            }
        }
        if !seen.omitted.is_empty() {
            // `--columns` chooses only the columns of loads, by their names.
            let name = |i: &usize| match of_load {
                true => table.columns[*i].name,
                false => table.columns[*i].bare_title(),
            };
            let names: Vec<&str> = seen.omitted.iter().map(name).collect();
            let text = format!("not shown: {}", names.join(", "));
            self.ink.paragraph(&text, self.width, 2, DIM);
        }
        // A remark on columns that are not shown would only raise questions.
        let hidden = (0..table.columns.len()).filter(|i| !seen.columns.contains(i));
        let hidden: Vec<&str> = hidden.map(|i| table.columns[i].name).collect();
        let is_hidden = |name: &str| hidden.contains(&name);
        let is_shown = |note: &&Note| !note.names.split(", ").all(is_hidden);
        self.remarks(table.notes.iter().filter(is_shown), table.rows.len());
    }

    /// The remarks. On a narrow terminal they are cut to the number of rows, except those on
    /// disqualifications and failures.
    fn remarks<'n>(&mut self, notes: impl Iterator<Item = &'n Note>, rows: usize) {
        let text = |note: &Note| format!("{} · {}: {}", note.kind, note.names, note.because);
        let mut room = rows;
        let mut omitted: Vec<&str> = Vec::new();
        for note in notes {
            let style = if note.bad { RED } else { DIM };
            let text = text(note);
            if note.bad || self.width >= ALL_REMARKS || IN_FULL.contains(&note.kind) {
                self.ink.paragraph(&text, self.width, 2, style);
                continue;
            }
            let text = cut_to(&text, self.width, REMARK);
            let lines = wrap(&text, self.width, 2).len();
            if lines > room {
                omitted.push(note.kind);
                continue;
            }
            room -= lines;
            self.ink.paragraph(&text, self.width, 2, style);
        }
        omitted.dedup();
        if !omitted.is_empty() {
            let text = format!("more remarks with --md -: {}", omitted.join(", "));
            self.ink.paragraph(&text, self.width, 2, DIM);
        }
    }

    /// The meanings of the marks in the tables of the loads.
    fn legend(&mut self) {
        let meanings = self.legend.meanings();
        if !meanings.is_empty() {
            self.ink.line("");
            self.ink.paragraph(&meanings.join(" · "), self.width, 2, DIM);
        }
    }

    /// The matrix of loads and contenders, in parts if it is wider than the terminal.
    fn matrix(&mut self, overview: &Table) {
        let width_of = |i: usize| {
            let texts = overview.rows.iter().map(|row| row.cells[i].text.width());
            texts.max().unwrap_or(0).max(overview.columns[i].title.width().min(table_layout::NAME))
                + table_layout::GAP
        };
        let first = width_of(0);
        let mut parts: Vec<Vec<usize>> = vec![vec![0]];
        let mut used = first;
        for i in 1..overview.columns.len() {
            if used + width_of(i) > self.width + table_layout::GAP
                && parts.last().is_some_and(|p| p.len() > 1)
            {
                parts.push(vec![0]);
                used = first;
            }
            used += width_of(i);
            parts.last_mut().expect("there is a part").push(i);
        }
        for part in parts {
            let of = |row: &Row| {
                Row::plain(row.reference, part.iter().map(|i| row.cells[*i].clone()).collect())
            };
            let columns = part.iter().map(|i| overview.columns[*i].clone()).collect();
            let rows = overview.rows.iter().map(of).collect();
            self.table(&Table::plain(overview.title.clone(), columns, rows), false);
        }
        let occurs = |mark: &str| {
            let cells = overview.rows.iter().flat_map(|row| &row.cells[1..]);
            cells.map(|cell| cell.text.as_str()).any(|text| text.ends_with(mark))
        };
        let legend = overview::LEGEND.iter().filter(|(mark, _)| occurs(mark));
        let legend: Vec<String> = legend.map(|(mark, text)| format!("{mark} {text}")).collect();
        if !legend.is_empty() {
            self.ink.paragraph(&legend.join(" · "), self.width, 2, DIM);
        }
    }

    /// The remarks of all loads: one for each kind, with the number of loads.
    fn remarks_on_all(&mut self, view: &View) {
        let all = view.raced().count();
        let mut kinds: Vec<(&'static str, BTreeSet<usize>, Vec<&Note>)> = Vec::new();
        let voids = |note: &&Note| note.bad || is_warning(note.kind);
        for (load, table) in view.raced().enumerate() {
            for note in table.notes.iter().filter(voids) {
                match kinds
                    .iter_mut()
                    .find(|(kind, _, notes)| *kind == note.kind && notes[0].bad == note.bad)
                {
                    Some((_, loads, notes)) => {
                        loads.insert(load);
                        notes.push(note);
                    }
                    None => kinds.push((note.kind, [load].into(), vec![note])),
                }
            }
        }
        for (kind, loads, notes) in &kinds {
            let mut names: Vec<&str> = Vec::new();
            let each = notes.iter().flat_map(|note| note.names.split(", "));
            each.for_each(|name| {
                if !names.contains(&name) {
                    names.push(name);
                }
            });
            let names = if names.contains(&"all") { "all".to_owned() } else { names.join(", ") };
            let first = notes[0];
            let loads = loads.len();
            let is_same = |note: &&Note| {
                note.because.starts_with(AS_UNDER) || are_similar(&note.because, &first.because)
            };
            let example = if notes.iter().all(is_same) { "" } else { "e.g. " };
            let because = &first.because;
            let text = format!("{kind} · {names} (at {loads} of {all} loads): {example}{because}");
            let style = if first.bad { RED } else { DIM };
            let text = if first.bad { text } else { cut_to(&text, self.width, REMARK + 1) };
            self.ink.paragraph(&text, self.width, 2, style);
        }
    }

    /// Which loads have a table below the overview, and how to see the others.
    fn which_tables(&mut self, view: &View) {
        let (all, shown) =
            (view.raced().count(), view.raced().filter(|table| is_special(table)).count());
        let below = match shown {
            0 => String::new(),
            _ => {
                format!("below: {shown} of {all} loads (with historic results, or without costs); ")
            }
        };
        let text = format!(
            "{below}the table of each load: --md -, the page, or here with --columns cost,ratio,rate,p99"
        );
        self.ink.paragraph(&text, self.width, 2, DIM);
    }

    fn sweeps(&mut self, view: &View) {
        let (width, ink) = (self.width, &mut self.ink);
        for sweep in &view.sweeps {
            ink.line("");
            ink.paragraph(&sweep.title, width, 0, BOLD);
            for found in &sweep.found {
                ink.paragraph(&format!("{}: {}", found.names, found.text), width, 2, "");
            }
            for doubt in &sweep.doubts {
                ink.paragraph(&format!("but {}: {}", doubt.names, doubt.text), width, 2, DIM);
            }
            ink.paragraph(&sweep.key, width, 2, DIM);
        }
    }
}

/// Whether a note is on a verdict that warns.
fn is_warning(kind: &str) -> bool {
    Kind::named(kind).is_some_and(|kind| tone_of(kind) == Tone::Warn)
}

/// Cuts a text to a number of wrapped lines, with an ellipsis if it was cut.
fn cut_to(text: &str, width: usize, lines: usize) -> String {
    let wrapped = wrap(text, width, 2);
    if wrapped.len() <= lines {
        return text.to_owned();
    }
    let kept: Vec<&str> = wrapped[..lines].iter().map(|line| line.trim()).collect();
    let kept = kept.join(" ");
    let end = kept.rfind(' ').unwrap_or(kept.len());
    format!("{}…", kept[..end].trim_end_matches([',', ';', ':', '.']))
}
