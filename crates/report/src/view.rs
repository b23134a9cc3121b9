//! What terminal, Markdown and HTML show alike: a race as headings, tables of texts and sentences.
//!
//! All texts in here are free of control characters; nothing is escaped for a format yet.

use crate::{
    numbers::{self, NONE, Unit},
    sentences::{notes, result},
};
use regatta_record::{Cell, Estimate, Figure, Kind, LoadShape, NULL, Relation, Summary};
use serde::Serialize;

/// A race, ready to be laid out.
#[derive(Debug, Serialize)]
pub struct View {
    /// Race, machine, noise floor: a line each.
    pub heading: Vec<String>,
    /// A table for each load.
    pub tables: Vec<Table>,
    /// Contenders that did not take part: name, and why with how to get it.
    pub skipped: Vec<(String, String)>,
    /// What might mislead.
    pub doubts: Vec<String>,
}

/// One load.
#[derive(Debug, Serialize)]
pub struct Table {
    /// Workload and load.
    pub title: String,
    /// The result in one sentence.
    pub result: String,
    /// Columns, in order.
    pub columns: Vec<Column>,
    /// Contenders by cost, then those without; the references (null server, twin) last.
    pub rows: Vec<Row>,
    /// Names and the reason of verdicts that need one.
    pub notes: Vec<Note>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Heading.
    pub title: String,
    /// Whether it holds figures.
    pub right: bool,
    /// Columns go in falling order of this when there is no room; 0 stays.
    pub goes: u8,
}

/// A contender under a load.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Whether it is the null server or the twin: shown, not ranked.
    pub reference: bool,
    /// A text for each column.
    pub cells: Vec<Text>,
}

/// A text in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Text {
    /// What is printed; a voided figure has its parentheses.
    pub text: String,
    /// How it should look.
    pub tone: Tone,
}

/// How a text should look, where that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// As it is.
    Plain,
    /// Void, or not there.
    Void,
    /// Surely cheaper.
    Good,
    /// Surely dearer, or a figure with a limit to it.
    Warn,
    /// Disqualified or failed.
    Bad,
}

/// Why a verdict.
#[derive(Debug, Serialize)]
pub struct Note {
    /// The contenders that it is about.
    pub names: String,
    /// The verdict.
    pub kind: &'static str,
    /// The sentence.
    pub because: String,
    /// Whether it disqualified or failed.
    pub bad: bool,
}

/// Lays out a summary.
pub fn view(summary: &Summary) -> View {
    let asked = &summary.asked;
    let tables = asked.loads.iter().map(|load| table(summary, load)).collect();
    let skipped = asked
        .entries
        .iter()
        .filter_map(|e| Some((visible(&e.name), visible(e.skipped.as_deref()?))))
        .collect();
    let doubts = summary.doubts.iter().map(|d| visible(d)).collect();
    View { heading: heading(summary), tables, skipped, doubts }
}

/// A text with its control characters, and those that turn the direction of writing, made visible.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

fn heading(summary: &Summary) -> Vec<String> {
    let asked = &summary.asked;
    let setup = &asked.setup;
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let rounds = if asked.rounds == 1 { "round" } else { "rounds" };
    let unfinished = if summary.complete { "" } else { " · INCOMPLETE" };
    let kernel = setup.kernel.split(" #").next().unwrap_or_default();
    vec![
        visible(&format!(
            "{} · {} · {} {rounds} of {} s · seed {}{unfinished}",
            asked.name, asked.workload, asked.rounds, asked.window_s, asked.seed
        )),
        visible(&format!(
            "{}, {} CPUs, {}, {kernel} · server on CPU {}, load on CPU {}",
            if setup.cpu.is_empty() { "unknown CPU" } else { &setup.cpu },
            setup.cpus,
            numbers::memory(setup.memory_bytes),
            list(&asked.cpus.server),
            list(&asked.cpus.load)
        )),
        match summary.noise_floor {
            Some(floor) => format!(
                "noise floor ±{}: smaller differences mean nothing here",
                numbers::percent(floor)
            ),
            None => "noise floor unknown: small differences may mean nothing".to_owned(),
        },
    ]
}

fn table(summary: &Summary, load: &LoadShape) -> Table {
    let cells: Vec<&Cell> = summary
        .cells
        .iter()
        .filter(|c| c.load == *load && c.verdict.kind != Kind::Skipped)
        .collect();
    let is_reference = |c: &Cell| summary.asked.is_reference(&c.contender);
    let (references, contenders): (Vec<&Cell>, Vec<&Cell>) =
        cells.iter().copied().partition(|c| is_reference(c));
    let units = Units {
        cost: numbers::cost_unit(cells.iter().filter_map(|c| mean(&c.cost_ns_per_request))),
        rate: numbers::rate_unit(cells.iter().filter_map(|c| mean(&c.rate_per_s))),
    };
    let row = |c: &&Cell| Row { reference: is_reference(c), cells: row(summary, c, units) };
    Table {
        title: visible(&format!("{} · {load}", summary.asked.workload)),
        result: result(summary, &contenders),
        columns: columns(summary, units),
        rows: contenders.iter().chain(&references).map(row).collect(),
        notes: notes(&cells),
    }
}

fn mean(estimate: &Option<Estimate>) -> Option<f64> {
    estimate.map(|e| e.mean)
}

#[derive(Clone, Copy)]
struct Units {
    cost: Unit,
    rate: Unit,
}

fn columns(summary: &Summary, units: Units) -> Vec<Column> {
    let column = |title: &str, right, goes| Column { title: title.to_owned(), right, goes };
    vec![
        column("contender", false, 0),
        column(&format!("{}/req", units.cost.name), true, 0),
        column(&visible(&format!("vs {}", summary.asked.baseline)), true, 1),
        column("", false, 2),
        column("band", true, 4),
        column(units.rate.name, true, 6),
        column("p50", true, 7),
        column("p99", true, 5),
        column("memory", true, 8),
        column("switches/req", true, 9),
        column("lines", true, 10),
        column("verdict", false, 3),
    ]
}

fn row(summary: &Summary, cell: &Cell, units: Units) -> Vec<Text> {
    let figure = |text: Option<String>, figure: Figure| match text {
        None => void(NONE.to_owned()),
        Some(text) if cell.verdict.voids(figure) => void(format!("({text})")),
        Some(text) => plain(text),
    };
    let latency = |ns: Option<u64>| figure(ns.map(|v| numbers::time(v as f64)), Figure::Latency);
    let entry = summary.asked.entries.iter().find(|e| e.name == cell.contender);
    let lower_bound = if cell.verdict.kind == Kind::CoBound { "≥ " } else { "" };
    vec![
        plain(visible(&cell.contender)),
        figure(
            cell.cost_ns_per_request.map(|e| numbers::estimate(&e, units.cost.size)),
            Figure::Cost,
        ),
        if cell.relation == Some(Relation::Baseline) {
            plain("1".to_owned())
        } else {
            figure(cell.ratio_to_baseline.map(|e| numbers::ratio(&e)), Figure::Cost)
        },
        meaning(cell),
        cell.band.map_or_else(
            || void(NONE.to_owned()),
            |b| {
                plain(if b.best == b.worst {
                    b.best.to_string()
                } else {
                    format!("{}–{}", b.best, b.worst)
                })
            },
        ),
        figure(
            cell.rate_per_s
                .map(|e| format!("{lower_bound}{}", numbers::estimate(&e, units.rate.size))),
            Figure::Rate,
        ),
        latency(cell.latency_ns.p50),
        latency(cell.latency_ns.p99),
        figure(cell.memory_bytes.map(numbers::memory), Figure::Memory),
        figure(cell.switches_per_request.map(numbers::three_digits), Figure::Cost),
        entry
            .and_then(|e| e.lines_of_code)
            .map_or_else(|| void(NONE.to_owned()), |n| plain(numbers::grouped(n.into()))),
        Text { text: cell.verdict.kind.name().to_owned(), tone: verdict_tone(cell) },
    ]
}

fn plain(text: String) -> Text {
    Text { text, tone: Tone::Plain }
}

fn void(text: String) -> Text {
    Text { text, tone: Tone::Void }
}

/// What a ratio means, in a word. A difference that cannot be told shows how wide the doubt is.
fn meaning(cell: &Cell) -> Text {
    let toned = |text: &str, tone| Text { text: text.to_owned(), tone };
    match (cell.relation, cell.ratio_to_baseline) {
        (Some(Relation::Baseline), _) => toned("baseline", Tone::Plain),
        (Some(Relation::Tied), _) => toned("tied", Tone::Plain),
        (Some(Relation::Cheaper), _) => toned("cheaper", Tone::Good),
        (Some(Relation::Dearer), _) => toned("dearer", Tone::Warn),
        (Some(Relation::NotToldApart), Some(e)) => {
            toned(&format!("±{}?", numbers::percent((e.high / e.low).sqrt() - 1.0)), Tone::Void)
        }
        _ if cell.contender == NULL => toned("floor", Tone::Void),
        _ => toned("", Tone::Plain),
    }
}

/// How a verdict should look.
pub fn verdict_tone(cell: &Cell) -> Tone {
    match cell.verdict.kind {
        Kind::Disqualified | Kind::Failed => Tone::Bad,
        Kind::ServerBound | Kind::CoBound => Tone::Plain,
        _ => Tone::Warn,
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn hidden_characters_are_made_visible() {
        assert_eq!(visible("a\u{1b}[31mb\n\u{202e}c µ–"), "a\\u{1b}[31mb\\n\\u{202e}c µ–");
    }
}
