//! A histogram of latencies, drawn in characters.

use crate::numbers::grouped;
use hdrhistogram::Histogram;

/// Maximum number of rows with latencies.
const MOST_ROWS: usize = 12;
/// Width of the longest bar, in characters.
const BAR: f64 = 26.0;
/// The bounds of rows within a power of ten, from fine to coarse, in tenths.
const STEPS: [&[u64]; 5] = [
    &[
        10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 33, 36, 40, 45, 50, 55, 60,
        65, 70, 80, 90,
    ],
    &[10, 12, 15, 20, 25, 30, 40, 50, 60, 80],
    &[10, 15, 20, 30, 50, 70],
    &[10, 20, 50],
    &[10],
];

/// Rows of a chart of latencies in nanoseconds: the range, a bar, the number and the share of each.
/// `unanswered` further requests have no latency. Without latencies there are no rows.
pub fn rows(histogram: &Histogram<u64>, unanswered: u64) -> Vec<String> {
    let Some(first) = histogram.iter_recorded().next() else { return Vec::new() };
    let (least, most) = (first.value_iterated_to(), histogram.max());
    let bounds = STEPS
        .iter()
        .map(|steps| bounds(steps, least, most))
        .find(|bounds| bounds.len() <= MOST_ROWS + 1)
        .unwrap_or_else(|| bounds(&[10], least, most));
    let mut counts = vec![0_u64; bounds.len() - 1];
    for value in histogram.iter_recorded() {
        let row = bounds.partition_point(|bound| *bound <= value.value_iterated_to());
        let row = (row.max(1) - 1).min(bounds.len() - 2);
        counts[row] += value.count_since_last_iteration();
    }
    let all = histogram.len() + unanswered;
    let largest = counts.iter().copied().max().unwrap_or(1).max(unanswered);
    let row = |range: String, count: u64| {
        let share = format!("{:.1}%", count as f64 * 100.0 / all as f64);
        let (bar, count) = (bar(count as f64 / largest as f64), grouped(count));
        format!("{range:<17}  {bar:<26}  {share:>6}  {count:>11}").trim_end().to_owned()
    };
    let mut rows: Vec<String> = counts
        .iter()
        .zip(bounds.windows(2))
        .map(|(count, bound)| row(format!("{:>7} – {:>7}", time(bound[0]), time(bound[1])), *count))
        .collect();
    if unanswered > 0 {
        rows.push(row("         no reply".into(), unanswered));
    }
    rows
}

/// Bounds of rows that contain all values from `least` to `most`.
fn bounds(steps: &[u64], least: u64, most: u64) -> Vec<u64> {
    let mut bounds = Vec::new();
    let mut power = 1_u64;
    loop {
        for step in steps {
            let bound = step * power;
            // Tenths of a nanosecond.
            if bound <= least.saturating_mul(10) {
                bounds.clear();
            }
            bounds.push(bound / 10);
            if bound > most.saturating_mul(10) && bounds.len() > 1 {
                return bounds;
            }
        }
        power *= 10;
    }
}

/// A bar of eighths of characters, for a share of the largest one.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * BAR * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// A bound of a row, in nanoseconds, with its unit and without trailing zeros.
fn time(ns: u64) -> String {
    let (size, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", (ns as f64 / size * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 240_000_000_000, 3).unwrap();
        values.iter().for_each(|(value, count)| histogram.record_n(*value, *count).unwrap());
        histogram
    }

    /// The counts in the last column.
    fn counts(rows: &[String]) -> Vec<u64> {
        let last = |row: &String| row.split_whitespace().last().unwrap().replace(',', "");
        rows.iter().map(|row| last(row).parse().unwrap()).collect()
    }

    #[test]
    fn every_latency_is_in_exactly_one_row() {
        let histogram = histogram(&[(20_000, 5), (49_000, 100), (51_000, 40), (9_900_000, 3)]);
        let rows = rows(&histogram, 0);
        assert_eq!(counts(&rows).iter().sum::<u64>(), 148, "{rows:#?}");
        assert!(rows.len() <= MOST_ROWS, "{rows:#?}");
        assert!(rows[0].starts_with("  20 µs –   50 µs  █"), "{rows:#?}");
        assert!(rows[0].ends_with("70.9%          105"), "{rows:#?}");
        assert!(rows.last().unwrap().starts_with("   5 ms –   10 ms  ▊"), "{rows:#?}");
        assert!(rows.iter().all(|row| row.chars().count() <= 66), "{rows:#?}");
    }

    #[test]
    fn a_narrow_range_has_finer_rows_and_one_value_has_one() {
        let narrow = rows(&histogram(&[(100_000, 1), (140_000, 2), (199_000, 1)]), 0);
        assert_eq!(counts(&narrow), [1, 0, 0, 0, 2, 0, 0, 0, 0, 1]);
        let one = rows(&histogram(&[(1, 7)]), 0);
        assert_eq!(counts(&one), [7], "{one:#?}");
        let longest = rows(&histogram(&[(1, 1), (240_000_000_000, 1)]), 0);
        assert_eq!(counts(&longest).iter().sum::<u64>(), 2, "{longest:#?}");
        assert!(longest.len() <= MOST_ROWS);
    }

    #[test]
    fn requests_without_a_reply_have_their_own_row() {
        let rows = rows(&histogram(&[(1_000_000, 75)]), 25);
        let last = rows.last().unwrap();
        assert!(last.starts_with("         no reply  ████████▋   "), "{rows:#?}");
        assert!(last.ends_with("25.0%           25") && rows[0].contains("75.0%"), "{rows:#?}");
        assert!(super::rows(&histogram(&[]), 5).is_empty());
    }
}
