//! The legend of a table: only the marks that occur in it.

use crate::{
    numbers::NONE,
    table::{Row, Table},
    tables::columns::NOT_KNOWN,
};
use regatta_record::{NULL, twin_name};
use std::collections::BTreeSet;

/// A mark in a table of contenders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Bar,
    Interval,
    Tied,
    Unclear,
    Rank,
    Bound,
    Void,
    NotKnown,
    None,
    Null,
    Twin(String),
}

/// Marks that were seen.
#[derive(Debug, Default)]
pub struct Legend {
    marks: BTreeSet<Mark>,
}

impl Legend {
    /// The legend of all columns of a table.
    pub fn of(table: &Table) -> Legend {
        let mut legend = Legend::default();
        legend.see(table, &(0..table.columns.len()).collect::<Vec<_>>());
        legend
    }

    /// Adds the marks in the given columns of a table.
    pub fn see(&mut self, table: &Table, columns: &[usize]) {
        for row in &table.rows {
            columns.iter().for_each(|i| self.see_text(table.columns[*i].name, &row.cells[*i].text));
            if row.reference {
                self.see_reference(row);
            }
        }
    }

    /// Adds the bars.
    pub fn see_bars(&mut self) {
        self.marks.insert(Mark::Bar);
    }

    fn see_text(&mut self, column: &str, text: &str) {
        let mut mark = |is: bool, mark: Mark| {
            if is {
                self.marks.insert(mark);
            }
        };
        match column {
            "contender" => {}
            "result" => {
                mark(text == "tied", Mark::Tied);
                mark(text == "unclear", Mark::Unclear);
            }
            "rank" if text.len() > NONE.len() => mark(text.contains('–'), Mark::Rank),
            "verdict" | "then" => {}
            _ => {
                mark(text.contains(" ["), Mark::Interval);
                mark(text.starts_with('('), Mark::Void);
                mark(text.contains(['≥', '≤']), Mark::Bound);
                mark(text == NOT_KNOWN, Mark::NotKnown);
                mark(text == NONE, Mark::None);
            }
        }
    }

    fn see_reference(&mut self, row: &Row) {
        let Some(name) = row.cells.first().map(|cell| cell.text.as_str()) else { return };
        if name == NULL {
            self.marks.insert(Mark::Null);
        } else if let Some(original) = name.strip_suffix(&twin_name("")) {
            self.marks.insert(Mark::Twin(original.to_owned()));
        }
    }

    /// The meaning of each mark, in a few words.
    pub fn meanings(&self) -> Vec<String> {
        let meaning = |mark: &Mark| match mark {
            Mark::Bar => "├●┤ ratio with interval".to_owned(),
            Mark::Interval => "[ ] 95% interval".to_owned(),
            Mark::Tied => "tied: within ±2%".to_owned(),
            Mark::Unclear => "unclear: not decided".to_owned(),
            Mark::Rank => "rank 2–4: one of these".to_owned(),
            Mark::Bound => "≤ ≥ bounds: the load was as busy as the server".to_owned(),
            Mark::Void => "( ) not valid".to_owned(),
            Mark::NotKnown => format!("{NOT_KNOWN}: interval beyond ×10"),
            Mark::None => format!("{NONE} no figure"),
            Mark::Null => format!("{NULL}: minimal server"),
            Mark::Twin(original) => {
                format!("{}: {original} again", twin_name(original))
            }
        };
        self.marks.iter().map(meaning).collect()
    }
}
