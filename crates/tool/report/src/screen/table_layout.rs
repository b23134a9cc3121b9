//! A table of a terminal, fitted to the width: intervals are dropped first, then whole columns, and
//! names are cut.

use crate::{
    numbers,
    screen::{
        bar::{self, Axis},
        ink::{DIM, Ink, style},
        text::{cut, pad},
    },
    table::{Column, Row, Table, Text, Tone},
};
use unicode_width::UnicodeWidthStr;

/// Spaces between two columns.
pub const GAP: usize = 2;
/// Maximum width of a name; longer names are cut.
pub const NAME: usize = 20;
/// Width down to which names are cut to keep the columns that give the figures their meaning.
const SHORT_NAME: usize = 12;
/// Maximum drop rank of these columns.
const WORTH_A_NAME: u8 = 5;
/// Columns with this drop rank or a higher one make room for intervals.
const EXTRA: u8 = 9;
/// Columns with a higher drop rank make room for the bars.
const WORTH_MORE_THAN_BARS: u8 = 7;
/// Width from which there may be bars.
const BARS_FROM: usize = 90;
/// The column before the bars, and the name of their column.
const BEFORE_BARS: &str = "ratio";
/// The name by which `--columns` chooses the bars.
pub const BAR: &str = "bar";

/// What a table showed.
#[derive(Default)]
pub struct Seen {
    /// Indices of the shown columns.
    pub columns: Vec<usize>,
    /// Whether there were bars.
    pub bars: bool,
    /// Indices of the columns for which there was no room.
    pub omitted: Vec<usize>,
}

/// Draws a table. `chosen`: the names of its columns, in order; otherwise all for which there is room.
pub fn draw(ink: &mut Ink, table: &Table, width: usize, chosen: Option<&[String]>) -> Seen {
    let fit = match chosen {
        Some(chosen) => Fit::chosen(table, width, chosen),
        None => Fit::by_rank(table, width),
    };
    fit.titles(ink, table);
    let mut ruled = false;
    for row in &table.rows {
        if row.reference && !ruled {
            ruled = true;
            let rule = ink.styled(&"─".repeat(fit.across()), DIM);
            ink.line(&rule);
        }
        fit.row(ink, table, row);
    }
    let columns: Vec<usize> = fit.shown.iter().filter_map(|shown| shown.column).collect();
    let may_be_shown = |column: &Column| match chosen {
        Some(chosen) => chosen.iter().any(|name| name == column.name),
        None => true,
    };
    let is_shown = |name: &str| columns.iter().any(|i| table.columns[*i].name == name);
    let omitted = (0..table.columns.len())
        .filter(|i| !is_shown(table.columns[*i].name) && may_be_shown(&table.columns[*i]));
    Seen { omitted: omitted.collect(), bars: fit.axis.is_some(), columns }
}

/// A column that is shown.
struct Shown {
    /// Its index in the table; `None`: the bars.
    column: Option<usize>,
    width: usize,
    /// Whether its intervals are dropped.
    brief: bool,
}

impl Shown {
    fn of(table: &Table, column: usize, brief: bool) -> Shown {
        let mut shown = Shown { column: Some(column), width: 0, brief };
        let widest = table.rows.iter().map(|row| shown.text(row, column).text.width()).max();
        let Column { unit, .. } = &table.columns[column];
        let title = table.columns[column].bare_title().width().max(unit.width());
        shown.width = widest.unwrap_or(0).max(title);
        if column == 0 {
            let is_name = table.columns[0].name == "contender";
            shown.width = shown.width.min(if is_name { NAME } else { 2 * NAME });
        }
        shown
    }

    fn text(&self, row: &Row, column: usize) -> Text {
        let Text { text, tone } = &row.cells[column];
        let text = if self.brief { numbers::brief(text) } else { text.clone() };
        Text { text, tone: *tone }
    }
}

/// The columns that fit.
struct Fit {
    shown: Vec<Shown>,
    axis: Option<Axis>,
}

impl Fit {
    fn by_rank(table: &Table, width: usize) -> Fit {
        let all = |table: &Table| -> Vec<usize> { (0..table.columns.len()).collect() };
        let rank = |i: usize| table.columns[i].drop_rank;
        let without = fitted(table, &all(table), width, rank);
        let has_ratio = table.columns.iter().any(|column| column.name == BEFORE_BARS)
            && table.rows.iter().any(|row| row.ratio.is_some());
        let has_groups = table.columns.iter().any(|column| !column.group.is_empty());
        if width < BARS_FROM || !has_ratio || has_groups {
            return Fit { shown: without, axis: None };
        }
        let room = width - GAP - bar::NARROWEST;
        let shown = fitted(table, &all(table), room, rank);
        let is_kept = |i: &usize| shown.iter().any(|shown| shown.column == Some(*i));
        let keeps = (0..table.columns.len())
            .filter(|i| without.iter().any(|shown| shown.column == Some(*i)))
            .all(|i| is_kept(&i) || rank(i) > WORTH_MORE_THAN_BARS);
        if !keeps || across(&shown) > room {
            return Fit { shown: without, axis: None };
        }
        Fit::with_bars(table, shown, width, None)
    }

    fn chosen(table: &Table, width: usize, chosen: &[String]) -> Fit {
        // Each regime may have a column of the name.
        let all = |name: &String| {
            let is_it = |i: &usize| table.columns[*i].name == *name;
            (0..table.columns.len()).filter(is_it).collect::<Vec<_>>()
        };
        let mut columns = vec![0];
        columns.extend(chosen.iter().flat_map(all).filter(|i| *i > 0));
        // The columns of a group stay together.
        let place = |i: &usize| {
            let group = &table.columns[*i].group;
            columns.iter().position(|other| table.columns[*other].group == *group)
        };
        let mut columns = columns.clone();
        columns.sort_by_key(place);
        let bars = chosen.iter().any(|name| name == BAR);
        let room = if bars { width.saturating_sub(GAP + bar::NARROWEST) } else { width };
        let rank = |i: usize| {
            columns.iter().position(|c| *c == i).unwrap_or(0).min(usize::from(EXTRA) - 1) as u8
        };
        let shown = fitted(table, &columns, room, rank);
        if !bars {
            return Fit { shown, axis: None };
        }
        let place = chosen.iter().take_while(|name| *name != BAR).flat_map(all).last();
        Fit::with_bars(table, shown, width, Some(place))
    }

    /// Inserts the bars after a column: by default the ratio.
    fn with_bars(
        table: &Table,
        mut shown: Vec<Shown>,
        width: usize,
        after: Option<Option<usize>>,
    ) -> Fit {
        let room = width.saturating_sub(across(&shown) + GAP).min(bar::WIDEST);
        let axis = Axis::of(table, room);
        if axis.is_some() {
            let is_before = |shown: &Shown| match (after, shown.column) {
                (Some(after), column) => column == after,
                (None, Some(i)) => table.columns[i].name == BEFORE_BARS,
                (None, None) => false,
            };
            let at = shown.iter().position(is_before).map_or(1, |at| at + 1);
            shown.insert(at.min(shown.len()), Shown { column: None, width: room, brief: false });
        }
        Fit { shown, axis }
    }

    fn across(&self) -> usize {
        across(&self.shown)
    }

    /// The titles, and below them the units if a column has one.
    fn titles(&self, ink: &mut Ink, table: &Table) {
        let title = |shown: &Shown| match shown.column {
            Some(i) => pad(table.columns[i].bare_title(), shown.width, table.columns[i].right),
            None => pad("ratio, log scale", shown.width, false),
        };
        let unit = |shown: &Shown| match (shown.column, &self.axis) {
            (Some(i), _) => pad(&table.columns[i].unit, shown.width, table.columns[i].right),
            (None, Some(axis)) => axis.heading(),
            (None, None) => " ".repeat(shown.width),
        };
        let gap = " ".repeat(GAP);
        let lines = [
            self.groups(table),
            self.shown.iter().map(title).collect::<Vec<_>>().join(&gap),
            self.shown.iter().map(unit).collect::<Vec<_>>().join(&gap),
        ];
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            let styled = ink.styled(line.trim_end(), DIM);
            ink.line(&styled);
        }
    }

    /// The names of the groups above their columns, each with a rule to its end. Blank without groups.
    fn groups(&self, table: &Table) -> String {
        let mut groups: Vec<(&str, usize)> = Vec::new();
        for shown in &self.shown {
            let last = groups.last_mut();
            // The bars belong to the column before them.
            let before = last.as_ref().map_or("", |(group, _)| *group);
            let group = shown.column.map_or(before, |i| table.columns[i].group.as_str());
            match last.filter(|(last, _)| *last == group) {
                Some((_, width)) => *width += GAP + shown.width,
                None => groups.push((group, shown.width)),
            }
        }
        let one = |(group, width): &(&str, usize)| match *group {
            "" => " ".repeat(*width),
            group => {
                let rule = width.saturating_sub(group.width() + 1);
                pad(&cut(&format!("{group} {}", "─".repeat(rule)), *width), *width, false)
            }
        };
        groups.iter().map(one).collect::<Vec<_>>().join(&" ".repeat(GAP))
    }

    fn row(&self, ink: &mut Ink, table: &Table, row: &Row) {
        let tone = |shown: &Shown, tone: Tone| match (row.reference, shown.column) {
            (true, _) => DIM,
            (false, None) => "",
            (false, Some(_)) => style(tone),
        };
        let cell = |shown: &Shown| match (shown.column, &self.axis) {
            (Some(i), _) => {
                let Text { text, tone: is } = shown.text(row, i);
                let text = cut(&text, shown.width);
                let blank = " ".repeat(shown.width - text.width());
                let styled = ink.styled(&text, tone(shown, is));
                match table.columns[i].right {
                    true => format!("{blank}{styled}"),
                    false => format!("{styled}{blank}"),
                }
            }
            (None, Some(axis)) => ink.styled(&axis.bar(row.ratio), tone(shown, Tone::Plain)),
            (None, None) => String::new(),
        };
        let cells: Vec<String> = self.shown.iter().map(cell).collect();
        ink.line(&cells.join(&" ".repeat(GAP)));
    }
}

fn across(shown: &[Shown]) -> usize {
    (shown.iter().map(|shown| shown.width + GAP).sum::<usize>()).saturating_sub(GAP)
}

/// Those of `columns` that fit into `width`. To make room, extra columns are dropped first, then
/// intervals, then the columns with the highest `rank` (never those with 0); then names are cut.
fn fitted(
    table: &Table,
    columns: &[usize],
    width: usize,
    rank: impl Fn(usize) -> u8,
) -> Vec<Shown> {
    let mut shown: Vec<Shown> = columns
        .iter()
        .map(|i| Shown::of(table, *i, false))
        .filter(|shown| shown.width > 0)
        .collect();
    let of = |shown: &Shown| shown.column.unwrap_or(0);
    while across(&shown) > width {
        let extra = (0..shown.len()).filter(|nth| rank(of(&shown[*nth])) >= EXTRA);
        if let Some(nth) = extra.max_by_key(|nth| rank(of(&shown[*nth]))) {
            shown.remove(nth);
            continue;
        }
        let may_be_brief = shown.iter_mut().filter(|s| table.columns[of(s)].brief && !s.brief);
        if let Some(next) = may_be_brief.max_by_key(|s| rank(of(s))) {
            *next = Shown::of(table, of(next), true);
            continue;
        }
        let (nth, drop_rank) = (0..shown.len())
            .map(|nth| (nth, rank(of(&shown[nth]))))
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
