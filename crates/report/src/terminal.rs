//! The terminal's form: one table per load, cut to the width by leaving out whole columns.

use crate::view::{Column, Row, Table, Text, Tone, View, view};
use regatta_record::Summary;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;
/// A longer name is cut.
const NAME: usize = 20;
/// So far a name is cut before one of the columns goes that say what the figures mean.
const SHORT_NAME: usize = 12;
/// The columns that are worth it: ratio, meaning, verdict, band.
const WORTH_A_NAME: u8 = 4;
/// Narrower than this no text is broken any more.
const NARROWEST: usize = 40;

/// Lays out a race for a terminal `width` columns wide, with colours if `colour`.
///
/// No line is wider than `width`, but for a terminal under 40 columns.
pub fn terminal(summary: &Summary, width: usize, colour: bool) -> String {
    lay_out(&view(summary), width, colour)
}

/// Lays out a view likewise.
pub fn lay_out(view: &View, width: usize, colour: bool) -> String {
    let width = width.max(NARROWEST);
    let mut out = Out { text: String::new(), colour };
    for (i, line) in view.heading.iter().enumerate() {
        out.paragraph(line, width, 0, if i == 0 { BOLD } else { "" });
    }
    for table in view.gate.iter().chain(&view.tables).chain(&view.scaling) {
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

    /// A sentence over as many lines as it needs, all but the first indented.
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
            shown.iter().map(|&(i, w)| (i, w, title(i))).collect();
        self.row(&table.columns, &titles, false);
        let mut ruled = false;
        for row in &table.rows {
            if row.reference && !ruled {
                ruled = true;
                let across = shown.iter().map(|(_, w)| w + GAP).sum::<usize>() - GAP;
                let rule = self.styled(&"─".repeat(across), DIM);
                self.line(&rule);
            }
            let cells: Vec<(usize, usize, Text)> =
                shown.iter().map(|&(i, w)| (i, w, row.cells[i].clone())).collect();
            self.row(&table.columns, &cells, row.reference);
        }
        let is_left_out = |i: &usize| shown.iter().all(|(shown, _)| shown != i);
        let left_out: Vec<&str> = (0..table.columns.len())
            .filter(|i| is_left_out(i) && !table.columns[*i].title.is_empty())
            .map(|i| table.columns[i].title.as_str())
            .collect();
        if !left_out.is_empty() {
            let text = format!("no room at this width for: {}", left_out.join(", "));
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

/// The columns that fit, with their widths: the least needed go first, then the names are cut.
fn fitting(table: &Table, width: usize) -> Vec<(usize, usize)> {
    let needed = |i: usize| {
        let texts = table.rows.iter().map(|r: &Row| r.cells[i].text.width());
        let widest = texts.max().unwrap_or(0).max(table.columns[i].title.width());
        if i == 0 { widest.min(NAME) } else { widest }
    };
    let mut shown: Vec<(usize, usize)> =
        (0..table.columns.len()).map(|i| (i, needed(i))).filter(|(_, w)| *w > 0).collect();
    let across = |shown: &[(usize, usize)]| shown.iter().map(|(_, w)| w + GAP).sum::<usize>() - GAP;
    while across(&shown) > width {
        let (nth, goes) = (0..shown.len())
            .map(|nth| (nth, table.columns[shown[nth].0].goes))
            .max_by_key(|(_, goes)| *goes)
            .expect("the first column stays");
        let over = across(&shown) - width;
        let name = shown[0].1;
        if goes == 0 {
            shown[0].1 = name.saturating_sub(over).max(1);
            break;
        } else if goes <= WORTH_A_NAME && name >= SHORT_NAME + over {
            shown[0].1 = name - over;
        } else {
            shown.remove(nth);
        }
    }
    shown
}

/// Cut to `width` columns, with an ellipsis where something is missing.
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

/// Breaks at spaces into lines of `width`, all but the first indented; a word that is longer than
/// a line is broken where the line ends.
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
    fn lines_break_at_spaces_and_long_words_at_the_edge() {
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
