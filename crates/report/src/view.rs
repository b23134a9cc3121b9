//! What terminal, Markdown and HTML show alike: a race as headings, tables of texts and sentences.
//!
//! All texts in here are free of control characters; nothing is escaped for a format yet.

use crate::{
    columns::fields,
    curves::{Sweep, sweeps},
    gate, numbers,
    scaling::scaling,
    sentences::{notes, result},
};
use regatta_record::{Cell, Kind, LoadShape, Summary};
use serde::Serialize;

/// A race, ready to be laid out.
#[derive(Debug, Serialize)]
pub struct View {
    /// Race, machine, noise floor: a line each.
    pub heading: Vec<String>,
    /// What became of `--fail-over`.
    pub gate: Option<Table>,
    /// A table for each load.
    pub tables: Vec<Table>,
    /// What more cores changed: a table for each load that was run on several counts of them.
    pub scaling: Vec<Table>,
    /// What loads that differ in one number say together.
    pub sweeps: Vec<Sweep>,
    /// Contenders that did not take part: name, and why with how to get it.
    pub skipped: Vec<(String, String)>,
    /// What might mislead.
    pub doubts: Vec<String>,
}

/// One load, or one load over cores.
#[derive(Debug, Serialize)]
pub struct Table {
    /// Workload and load.
    pub title: String,
    /// The result in one sentence; empty where there is none.
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
    /// Whether its figures are shown without their intervals before any column goes.
    pub brief: bool,
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
    let missing = summary.precision.iter().flat_map(|precision| &precision.missing);
    let of_gate = summary.gate.iter().flat_map(|gate| &gate.doubts);
    let doubts = missing.chain(of_gate).chain(&summary.doubts).map(|d| visible(d)).collect();
    let gate = summary.gate.as_ref().map(gate::table);
    let (scaling, sweeps) = (scaling(summary), sweeps(summary));
    View { heading: heading(summary), gate, tables, scaling, sweeps, skipped, doubts }
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
    let run = match &summary.precision {
        Some(precision) if precision.rounds < asked.rounds => {
            format!("{} of at most {}", precision.rounds, asked.rounds)
        }
        _ => asked.rounds.to_string(),
    };
    let kernel = setup.kernel.split(" #").next().unwrap_or_default();
    let mut lines = vec![
        visible(&format!(
            "{} · {} · {} {rounds} of {} s · seed {}{unfinished}",
            asked.name, asked.workload, run, asked.window_s, asked.seed
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
    ];
    lines.extend(summary.machine_noise.map(|share| {
        let share = numbers::percent(share);
        format!(
            "a probe saw {share} of the scatter within rounds: the machine's, taken off the ratios"
        )
    }));
    lines.extend(summary.precision.as_ref().map(|precision| {
        let (asked, rounds) = (numbers::percent(precision.asked), precision.rounds);
        match precision.reached {
            true => format!("precision ±{asked}: reached after {rounds} rounds"),
            false => {
                format!("precision ±{asked}: NOT REACHED after {rounds} rounds; see the doubts")
            }
        }
    }));
    lines
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
    let fields = fields(summary, load, &cells);
    let row = |c: &&Cell| Row {
        reference: is_reference(c),
        cells: fields.iter().map(|field| (field.text)(c)).collect(),
    };
    let shared = match &shared_cpus(summary, load)[..] {
        [] => String::new(),
        [cpu] => format!(" · server and load share CPU {cpu}"),
        cpus => format!(" · server and load share CPUs {}", cpus.join(", ")),
    };
    Table {
        title: visible(&format!("{} · {load}{shared}", summary.asked.workload)),
        result: result(summary, load, &contenders),
        rows: contenders.iter().chain(&references).map(row).collect(),
        columns: fields.into_iter().map(|field| field.column).collect(),
        notes: notes(summary, load, &cells),
    }
}

fn shared_cpus(summary: &Summary, load: &LoadShape) -> Vec<String> {
    let cpus = &summary.asked.cpus;
    if !cpus.are_shared(load) {
        return Vec::new();
    }
    cpus.of_load(load).iter().map(u32::to_string).collect()
}

/// How a verdict should look.
pub fn verdict_tone(cell: &Cell) -> Tone {
    match cell.verdict.kind {
        Kind::Disqualified | Kind::Failed => Tone::Bad,
        Kind::ServerBound | Kind::CoBound | Kind::AtAskedRate | Kind::CostOnly => Tone::Plain,
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
