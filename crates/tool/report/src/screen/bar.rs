//! Ratios with their intervals as bars of characters, on a common logarithmic axis.

use crate::{numbers, table::Table};
use regatta_record::Estimate;

/// Columns from which a bar shows enough.
pub const NARROWEST: usize = 16;
/// Columns beyond which a bar shows no more.
pub const WIDEST: usize = 40;
/// Farthest ends of an axis; ratios beyond are at its edge.
const FARTHEST: [f64; 2] = [0.01, 100.0];

/// The axis of the bars of a table.
pub struct Axis {
    /// Logarithms of the ends.
    low: f64,
    high: f64,
    width: usize,
}

impl Axis {
    /// The axis for the ratios of a table, `width` columns wide. `None` if it has fewer than two ratios.
    pub fn of(table: &Table, width: usize) -> Option<Axis> {
        let ranked = table.rows.iter().filter(|row| !row.reference);
        let ratios: Vec<Estimate> = ranked.filter_map(|row| row.ratio).collect();
        let is_usable = |e: &&Estimate| e.low > 0.0 && e.high.is_finite();
        let ratios: Vec<&Estimate> = ratios.iter().filter(is_usable).collect();
        if ratios.len() < 2 || width < NARROWEST {
            return None;
        }
        let ends = ratios.iter().flat_map(|e| [e.low, e.high]).chain([1.0]);
        let within = |end: f64| end.clamp(FARTHEST[0], FARTHEST[1]).ln();
        let (low, high) = ends
            .map(within)
            .fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
        let span = (high - low).max(0.02);
        let (low, high) = (low - 0.03 * span, high + 0.03 * span);
        Some(Axis { low, high, width })
    }

    fn at(&self, log: f64) -> usize {
        let share = (log - self.low) / (self.high - self.low);
        (share * (self.width - 1) as f64).round().clamp(0.0, (self.width - 1) as f64) as usize
    }

    /// The axis with its ends and 1: `0.9     1        2.4`.
    pub fn heading(&self) -> String {
        let mut line: Vec<char> = vec![' '; self.width];
        let mut put = |at: usize, text: &str| {
            let from = at.min(self.width.saturating_sub(text.chars().count()));
            let is_free = |at: usize| line.get(at).is_none_or(|c| *c == ' ');
            let end = from + text.chars().count();
            if (from.saturating_sub(1)..=end).all(is_free) {
                text.chars().enumerate().for_each(|(nth, c)| line[from + nth] = c);
            }
        };
        put(self.at(0.0), "1");
        put(0, &end(self.low.exp()));
        put(self.width, &end(self.high.exp()));
        line.into_iter().collect()
    }

    /// A bar: `│├──●──┤`, with 1 (│).
    pub fn bar(&self, ratio: Option<Estimate>) -> String {
        let mut line: Vec<char> = vec![' '; self.width];
        line[self.at(0.0)] = '│';
        if let Some(e) = ratio.filter(|e| e.low > 0.0 && e.high.is_finite()) {
            let [low, mean, high] = [e.low, e.mean, e.high].map(f64::ln);
            let [from, at, to] = [low, mean, high].map(|log| self.at(log));
            line[from..=to].fill('─');
            line[from] = if low < self.low { '◂' } else { '├' };
            line[to] = if high > self.high { '▸' } else { '┤' };
            match () {
                () if high < self.low => line[to] = '◂',
                () if low > self.high => line[from] = '▸',
                () if (self.low..=self.high).contains(&mean) => line[at] = '●',
                () => {}
            }
        }
        line.into_iter().collect()
    }
}

/// A label of two digits at the end of the axis.
fn end(ratio: f64) -> String {
    let digits =
        if ratio >= 10.0 { 0 } else { usize::from(ratio >= 1.0) + 2 * usize::from(ratio < 1.0) };
    let text = format!("{ratio:.digits$}");
    if text == "1.0" || text == "1.00" {
        numbers::short((ratio * 1_000.0).round() / 1_000.0)
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    fn table(ratios: &[[f64; 3]]) -> Table {
        let row = |[low, mean, high]: &[f64; 3]| {
            let ratio = Some(Estimate { mean: *mean, low: *low, high: *high });
            Row { ratio, ..Row::plain(false, Vec::new()) }
        };
        let rows = ratios.iter().map(row).collect();
        Table::plain(String::new(), Vec::new(), rows)
    }

    fn drawn(ratios: &[[f64; 3]], width: usize) -> Vec<String> {
        let table = table(ratios);
        let axis = Axis::of(&table, width).expect("an axis");
        [axis.heading()].into_iter().chain(table.rows.iter().map(|r| axis.bar(r.ratio))).collect()
    }

    #[test]
    fn bars_share_an_axis_on_which_equal_factors_are_equally_long() {
        let ratios = [[1.0, 1.0, 1.0], [0.5, 0.5, 0.5], [1.9, 2.0, 2.1]];
        let lines = drawn(&ratios, 41);
        let at = |line: &str, c| line.chars().position(|it| it == c);
        assert_eq!(at(&lines[1], '●'), at(&lines[2], '│'), "{lines:#?}");
        let (half, one, double) =
            (at(&lines[2], '●').unwrap(), at(&lines[1], '●').unwrap(), at(&lines[3], '●').unwrap());
        assert!((one - half).abs_diff(double - one) <= 1, "{lines:#?}");
        assert!(lines[3].contains('├') && lines[3].contains('┤'), "{lines:#?}");
        assert!(lines[0].starts_with("0.4") && lines[0].ends_with("2.2"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() == 41));
    }

    #[test]
    fn a_ratio_beyond_the_axis_is_marked_at_its_edge() {
        let table = table(&[[1.0, 1.0, 1.0], [1.9, 2.0, 2.1]]);
        let axis = Axis::of(&table, 20).unwrap();
        let beyond = axis.bar(Some(Estimate { mean: 0.1, low: 0.09, high: 0.2 }));
        assert!(beyond.starts_with('◂') && !beyond.contains(['●', '┤', '├']), "{beyond}");
    }

    #[test]
    fn one_ratio_has_no_axis() {
        assert!(Axis::of(&table(&[[1.0, 1.0, 1.0]]), 40).is_none());
    }
}
