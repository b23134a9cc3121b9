//! Layout for a terminal: tables, fitted to the width by dropping intervals and whole columns, and by
//! cutting names.

use crate::{
    numbers,
    table::{Column, Row, Table, Text, Tone},
    view::{View, view},
};
use regatta_record::Summary;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Spaces between two columns.
const GAP: usize = 2;
/// Maximum width of a name; longer names are cut.
const NAME: usize = 20;
/// Width down to which names are cut to keep the columns that give the figures their meaning.
const SHORT_NAME: usize = 12;
/// Maximum drop rank of these columns: ratio, meaning, verdict, band.
const WORTH_A_NAME: u8 = 4;
/// Minimum width; on narrower terminals, text is still wrapped at this width.
const NARROWEST: usize = 40;

/// Lays out a race for a terminal `width` columns wide, with colours if `colour`.
///
/// No line is wider than `width`, or than 40 columns if `width` is less. The exception is a table whose
/// columns that are never dropped are wider together, such as that of warm-ups.
pub fn terminal(summary: &Summary, width: usize, colour: bool) -> String {
    lay_out(&view(summary), width, colour)
}

/// Lays out a view in the same way as [`terminal`].
pub fn lay_out(view: &View, width: usize, colour: bool) -> String {
    let width = width.max(NARROWEST);
    let mut out = Out { text: String::new(), colour };
    for (i, line) in view.heading.iter().enumerate() {
        out.paragraph(line, width, 0, if i == 0 { BOLD } else { "" });
    }
    for table in view.all_tables() {
        out.line("");
        out.paragraph(&table.title, width, 0, BOLD);
        out.table(table, width);
        if !table.result.is_empty() {
            out.paragraph(&table.result, width, 2, BOLD);
        }
        for note in &table.notes {
            let style = if note.bad { RED } else { DIM };
            out.paragraph(
                &format!("{} · {}: {}", note.kind, note.names, note.because),
                width,
                2,
                style,
            );
        }
    }
    for sweep in &view.sweeps {
        out.line("");
        out.paragraph(&sweep.title, width, 0, BOLD);
        for found in &sweep.found {
            out.paragraph(&format!("{}: {}", found.names, found.text), width, 2, "");
        }
        for doubt in &sweep.doubts {
            out.paragraph(&format!("but {}: {}", doubt.names, doubt.text), width, 2, DIM);
        }
        out.paragraph(&sweep.key, width, 2, DIM);
    }
    if !view.skipped.is_empty() {
        out.line("");
    }
    for (name, why) in &view.skipped {
        out.paragraph(&format!("skipped · {name}: {why}"), width, 2, DIM);
    }
    if !view.doubts.is_empty() {
        out.line("");
    }
    for doubt in &view.doubts {
        out.paragraph(&format!("doubt: {doubt}"), width, 2, YELLOW);
    }
    out.text
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

struct Out {
    text: String,
    colour: bool,
}

impl Out {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn styled(&self, text: &str, style: &str) -> String {
        if self.colour && !style.is_empty() && !text.is_empty() {
            format!("\x1b[{style}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Appends a wrapped paragraph; all lines except the first are indented.
    fn paragraph(&mut self, text: &str, width: usize, indent: usize, style: &str) {
        for line in wrap(text, width, indent) {
            let margin = line.len() - line.trim_start().len();
            let styled = self.styled(&line[margin..], style);
            self.line(&format!("{}{styled}", &line[..margin]));
        }
    }

    fn table(&mut self, table: &Table, width: usize) {
        let shown = fitting(table, width);
        let title = |i: usize| Text { text: table.columns[i].title.clone(), tone: Tone::Void };
        let titles: Vec<(usize, usize, Text)> =
            shown.iter().map(|s| (s.column, s.width, title(s.column))).collect();
        self.row(&table.columns, &titles, false);
        let mut ruled = false;
        for row in &table.rows {
            if row.reference && !ruled {
                ruled = true;
                let rule = self.styled(&"─".repeat(across(&shown)), DIM);
                self.line(&rule);
            }
            let cells: Vec<(usize, usize, Text)> =
                shown.iter().map(|s| (s.column, s.width, s.text(row))).collect();
            self.row(&table.columns, &cells, row.reference);
        }
        let is_left_out = |i: &usize| shown.iter().all(|shown| shown.column != *i);
        let left_out: Vec<&str> = (0..table.columns.len())
            .filter(|i| is_left_out(i) && !table.columns[*i].title.is_empty())
            .map(|i| table.columns[i].title.as_str())
            .collect();
        if !left_out.is_empty() {
            let text =
                format!("omitted because the terminal is too narrow: {}", left_out.join(", "));
            self.paragraph(&text, width, 2, DIM);
        }
    }

    fn row(&mut self, columns: &[Column], cells: &[(usize, usize, Text)], dim: bool) {
        let mut line = String::new();
        for (nth, (i, width, cell)) in cells.iter().enumerate() {
            let text = cut(&cell.text, *width);
            let blank = " ".repeat(width - text.width());
            let style = match cell.tone {
                _ if dim => DIM,
                Tone::Plain => "",
                Tone::Void => DIM,
                Tone::Good => GREEN,
                Tone::Warn => YELLOW,
                Tone::Bad => RED,
            };
            let styled = self.styled(&text, style);
            if nth > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let right = columns[*i].right;
            line.push_str(&if right {
                format!("{blank}{styled}")
            } else {
                format!("{styled}{blank}")
            });
        }
        self.line(&line);
    }
}

/// A column that is shown.
struct Shown {
    /// Its index in the table.
    column: usize,
    width: usize,
    /// Whether its intervals are dropped.
    brief: bool,
}

impl Shown {
    fn of(table: &Table, column: usize, brief: bool) -> Shown {
        let mut shown = Shown { column, width: 0, brief };
        let widest = table.rows.iter().map(|row| shown.text(row).text.width()).max();
        shown.width = widest.unwrap_or(0).max(table.columns[column].title.width());
        if column == 0 {
            shown.width = shown.width.min(NAME);
        }
        shown
    }

    fn text(&self, row: &Row) -> Text {
        let Text { text, tone } = &row.cells[self.column];
        let text = if self.brief { numbers::brief(text) } else { text.clone() };
        Text { text, tone: *tone }
    }
}

fn across(shown: &[Shown]) -> usize {
    shown.iter().map(|shown| shown.width + GAP).sum::<usize>() - GAP
}

/// The columns that fit. To make room, intervals are dropped first, then the least important columns;
/// then names are cut.
fn fitting(table: &Table, width: usize) -> Vec<Shown> {
    let columns = 0..table.columns.len();
    let mut shown: Vec<Shown> =
        columns.map(|i| Shown::of(table, i, false)).filter(|shown| shown.width > 0).collect();
    while across(&shown) > width {
        let column = |shown: &Shown| &table.columns[shown.column];
        let may_be_brief = shown.iter_mut().filter(|s| column(s).brief && !s.brief);
        if let Some(next) = may_be_brief.max_by_key(|s| column(s).drop_rank) {
            *next = Shown::of(table, next.column, true);
            continue;
        }
        let (nth, drop_rank) = (0..shown.len())
            .map(|nth| (nth, column(&shown[nth]).drop_rank))
            .max_by_key(|(_, drop_rank)| *drop_rank)
            .expect("the first column stays");
        let over = across(&shown) - width;
        let name = shown[0].width;
        if drop_rank == 0 {
            shown[0].width = name.saturating_sub(over).max(1);
            break;
        } else if drop_rank <= WORTH_A_NAME && name >= SHORT_NAME + over {
            shown[0].width = name - over;
        } else {
            shown.remove(nth);
        }
    }
    shown
}

/// Cuts a text to `width` columns, with an ellipsis at the end if it was cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Wraps text at spaces into lines of `width`; all lines except the first are indented. A word that is
/// longer than a line is broken at the end of the line.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let margin = " ".repeat(indent);
    let mut lines = vec![String::new()];
    let mut used = 0;
    let mut fresh = true;
    for word in text.split(' ') {
        let needs = word.width() + usize::from(!fresh);
        if used + needs > width && !fresh {
            lines.push(margin.clone());
            (used, fresh) = (indent, true);
        }
        let line = lines.last_mut().expect("there is always a line");
        if !fresh {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width {
                lines.push(margin.clone());
                used = indent;
            }
            lines.last_mut().expect("there is always a line").push(c);
            used += wide;
        }
        fresh = false;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_breaks_long_words() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(wrap("abcdefghijkl m", 8, 2), ["abcdefgh", "  ijkl m"]);
        assert_eq!(wrap("", 8, 2), [""]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("日本語のサーバ", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
    }
}
