//! Tables of texts, which all formats lay out.
//!
//! The texts contain no control characters. They are not yet escaped for a format.

pub use regatta_record::visible;

use regatta_record::{Cell, Estimate, Kind};
use serde::Serialize;

/// A table, usually for one load.
#[derive(Debug, Serialize)]
pub struct Table {
    /// The title, usually with workload and load.
    pub title: String,
    /// The result in one sentence; empty for loads, whose results are the answers of the view.
    pub result: String,
    /// Columns, in order.
    pub columns: Vec<Column>,
    /// The rows. For a load: the contenders by cost (beside another load, by p99), then those without
    /// one, then the references (null server, twin).
    pub rows: Vec<Row>,
    /// The notes under the table.
    pub notes: Vec<Note>,
}

impl Table {
    /// A table without a result and notes.
    pub fn plain(title: String, columns: Vec<Column>, rows: Vec<Row>) -> Table {
        Table { title, result: String::new(), columns, rows, notes: Vec::new() }
    }

    /// Removes the columns that are shown only if they are chosen.
    pub fn without_requested(&mut self) {
        let keep: Vec<bool> = self.columns.iter().map(|column| !column.on_request).collect();
        fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            items.retain(|_| *keep.next().expect("a cell for each column"));
        }
        self.rows.iter_mut().for_each(|row| retain(&mut row.cells, &keep));
        retain(&mut self.columns, &keep);
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The name by which `--columns` chooses it: one word.
    pub name: &'static str,
    /// The heading with the unit: `cost µs/req`.
    pub title: String,
    /// The unit at the end of the title; empty: none.
    pub unit: String,
    /// Whether the column contains figures, which are right-aligned.
    pub right: bool,
    /// Order in which columns are dropped when there is no room, highest first; 0 is never dropped.
    pub drop_rank: u8,
    /// Whether its intervals may be dropped, before any column is.
    pub brief: bool,
    /// The group of neighbouring columns that it belongs to, e.g. `at saturation`; empty: none.
    pub group: String,
    /// Whether it is shown only if it is chosen by its name.
    pub on_request: bool,
}

impl Column {
    /// A column with the `name` also as its title, left-aligned, that is never dropped.
    pub fn left(name: &'static str) -> Column {
        let (title, unit, group) = (name.to_owned(), String::new(), String::new());
        let (right, brief, on_request) = (false, false, false);
        Column { name, title, unit, right, drop_rank: 0, brief, group, on_request }
    }

    /// A column of figures with the `name` also as its title.
    pub fn right(name: &'static str, drop_rank: u8) -> Column {
        Column { right: true, drop_rank, ..Column::left(name) }
    }

    /// The column with another title, which does not contain the unit yet.
    pub fn titled(self, title: &str) -> Column {
        Column { title: title.to_owned(), ..self }
    }

    /// The column with a unit, which is added to its title.
    pub fn unit(self, unit: &str) -> Column {
        Column { title: format!("{} {unit}", self.title), unit: unit.to_owned(), ..self }
    }

    /// The column, dropped in the given order.
    pub fn rank(self, drop_rank: u8) -> Column {
        Column { drop_rank, ..self }
    }

    /// The column, whose intervals may be dropped.
    pub fn brief(self) -> Column {
        Column { brief: true, ..self }
    }

    /// The column, shown only if it is chosen.
    pub fn on_request(self) -> Column {
        Column { on_request: true, ..self }
    }

    /// The title without its unit.
    pub fn bare_title(&self) -> &str {
        self.title.strip_suffix(&self.unit).unwrap_or(&self.title).trim_end()
    }
}

/// A row of a table, usually a contender under a load.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Whether it is the null server or the twin, which are shown but not ranked.
    pub reference: bool,
    /// A text for each column.
    pub cells: Vec<Text>,
    /// The ratio to the baseline, to be drawn as a bar.
    pub ratio: Option<Estimate>,
}

impl Row {
    /// A row without a bar.
    pub fn plain(reference: bool, cells: Vec<Text>) -> Row {
        Row { reference, cells, ratio: None }
    }
}

/// A text in a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Text {
    /// The printed text; a voided figure is already in parentheses.
    pub text: String,
    /// How it should look.
    pub tone: Tone,
}

/// The emphasis of a text, for formats with colours or styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// No emphasis.
    Plain,
    /// Void, missing, not known or inconclusive.
    Void,
    /// Significantly cheaper.
    Good,
    /// Significantly more expensive, a restricted verdict, or not decided by a gate.
    Warn,
    /// Disqualified or failed; in a gate, worse or unknown.
    Bad,
}

/// A note under a table, e.g. the reason of a verdict.
#[derive(Debug, Serialize)]
pub struct Note {
    /// The contenders or columns to which it applies.
    pub names: String,
    /// The verdict, or another kind of note.
    pub kind: &'static str,
    /// The sentence.
    pub because: String,
    /// Whether it is on a disqualification, a failure, or a cost that is worse than a gate permits.
    pub bad: bool,
}

/// The tone of a cell's verdict.
pub fn verdict_tone(cell: &Cell) -> Tone {
    tone_of(cell.verdict.kind())
}

/// The tone of a kind of verdict.
pub fn tone_of(kind: Kind) -> Tone {
    match kind {
        Kind::Disqualified | Kind::Failed => Tone::Bad,
        Kind::ServerBound | Kind::CoBound | Kind::AtAskedRate | Kind::CostOnly => Tone::Plain,
        _ => Tone::Warn,
    }
}
