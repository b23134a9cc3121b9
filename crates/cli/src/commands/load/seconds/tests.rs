//! Tests of the series and the HDR log: they contain what was counted.

use super::*;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use regatta_record::encode_histogram;

/// Three seconds of a window of 2.5 s: a thousand replies after 1 ms, then twice as many after 2 ms, and
/// none.
fn seconds() -> Seconds {
    let mut seconds = Seconds::new(true);
    for (number, requests, errors) in [(0, 1_000, 0), (1, 2_000, 1), (2, 0, 7)] {
        let mut latency = Histogram::new_with_bounds(1, 240_000_000_000, 3).unwrap();
        latency.record_n(1_000_000 * u64::from(number + 1), requests).unwrap();
        let refused = if number == 2 { 14 } else { 0 };
        seconds.add(&SecondCounted { number, requests, errors, refused, latency });
    }
    seconds
}

#[test]
fn a_series_has_a_row_per_second_and_the_rate_of_the_last_counts_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let csv = series_file(folder.path().join("a.csv").to_str().unwrap()).unwrap();
    seconds().write_series(&csv, 2.5).unwrap();
    let text = std::fs::read_to_string(csv.path()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], COLUMNS);
    assert!(lines[1].starts_with("0,1,1000,1000.0,0,"), "{text}");
    assert!(lines[2].starts_with("1,1,2000,2000.0,1,"), "{text}");
    assert_eq!(lines[3], "2,0.5,0,0.0,7,,,,,,,,14");
    let columns = COLUMNS.split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");

    let json = series_file(folder.path().join("a.jsonl").to_str().unwrap()).unwrap();
    seconds().write_series(&json, 2.5).unwrap();
    let text = std::fs::read_to_string(json.path()).unwrap();
    let rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[1]["requests"], &rows[1]["errors"]), (&2_000.into(), &1.into()));
    assert!(rows[0]["p99_ns"].as_u64().unwrap().abs_diff(1_000_000) < 1_000);
    assert!(rows[0]["p99_9_ns"].is_null(), "too few samples");
    let names: Vec<_> = COLUMNS.split(',').collect();
    assert!(rows.iter().all(|row| names.iter().all(|name| row.get(name).is_some())), "{text}");
}

#[test]
fn an_hdr_log_has_the_histogram_of_each_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hlog");
    seconds().write_hdr_log(&path, 2.5, &[]).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let intervals: Vec<_> = IntervalLogIterator::new(&bytes)
        .filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        })
        .collect();
    let counts: Vec<_> = intervals
        .iter()
        .map(|one| decode_histogram(one.encoded_histogram()).unwrap().len())
        .collect();
    assert_eq!(counts, [1_000, 2_000, 0]);
    let starts: Vec<_> = intervals.iter().map(|one| one.start_timestamp().as_secs()).collect();
    assert_eq!(starts, [0, 1, 2]);
    assert_eq!(intervals[2].duration(), Duration::from_millis(500));
    assert!((intervals[1].max() - 2.0).abs() < 0.01, "in milliseconds: {}", intervals[1].max());
}

#[test]
fn latencies_of_the_whole_window_have_tags_and_void_ones_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hlog");
    let mut histogram = Histogram::new_with_bounds(1, 240_000_000_000, 3).unwrap();
    histogram.record_n(5_000_000, 7).unwrap();
    let histogram = &*encode_histogram(&histogram);
    let whole = |name, void: Option<&str>| Whole { name, histogram, void: void.map(str::to_owned) };
    let whole = [whole("last deliveries", None), whole("across", Some("a clock has failed"))];
    seconds().write_hdr_log(&path, 2.5, &whole).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("#left out: across: a clock has failed\n"), "{text}");
    let intervals = IntervalLogIterator::new(text.as_bytes()).filter_map(|entry| match entry {
        Ok(LogEntry::Interval(interval)) => Some(interval),
        _ => None,
    });
    let tags: Vec<_> = intervals
        .map(|one| {
            let count = decode_histogram(one.encoded_histogram()).unwrap().len();
            (one.tag().map(|tag| tag.as_str().to_owned()), one.duration(), count)
        })
        .collect();
    let second = |count, ms| (None, Duration::from_millis(ms), count);
    let whole = (Some("last-deliveries".to_owned()), Duration::from_millis(2_500), 7);
    assert_eq!(tags, [whole, second(1_000, 1_000), second(2_000, 1_000), second(0, 500)]);
}

#[test]
fn a_line_has_rate_latency_and_errors() {
    let seconds = seconds();
    assert_eq!(seconds.line(1, 2.5), "    2 s      2,000/s  p50 2.00 ms  p99 2.00 ms  1 error");
    let words = seconds.last_in_words().unwrap();
    assert_eq!(words, "0/s p50 – p99 – 7 errors 14 refused");
    let last = "  2.5 s          0/s  p50       –  p99       –  7 errors  14 refused";
    assert_eq!(seconds.line(2, 2.5), last);
}

#[test]
fn the_format_of_a_series_follows_from_its_name() {
    for (name, format) in [("a.csv", Format::Csv), ("b/c.jsonl", Format::JsonLines)] {
        assert_eq!(series_file(name).unwrap().format, format);
    }
    for name in ["a", "a.txt", ".csv"] {
        assert!(series_file(name).unwrap_err().contains(".csv, or in .jsonl"), "{name}");
    }
}
