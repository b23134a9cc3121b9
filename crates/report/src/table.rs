//! Tables of texts: what all formats lay out.
//!
//! All texts in here are free of control characters; nothing is escaped for a format yet.

use regatta_record::{Cell, Kind};
use serde::Serialize;

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
