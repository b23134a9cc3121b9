//! The seconds of a load: shown while it runs, and written to files afterwards.

mod whole;

pub use whole::Whole;

use crate::output;
use anyhow::{Context, bail};
use hdrhistogram::{
    Histogram,
    serialization::{
        Deserializer, Serializer, V2DeflateSerializer, V2Serializer,
        interval_log::{IntervalLogWriterBuilder, Tag},
    },
};
use indicatif::HumanCount;
use regatta_load::SecondCounted;
use regatta_record::{Latency, decode_histogram};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Nanoseconds in a millisecond: the HDR log has the maximum of each interval in milliseconds.
const MS: f64 = 1e6;

/// The format of a series, by the end of its file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    JsonLines,
}

/// A file for a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesFile {
    path: PathBuf,
    format: Format,
}

impl SeriesFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Parses the name of a file for a series.
pub fn series_file(text: &str) -> Result<SeriesFile, String> {
    let path = PathBuf::from(text);
    let format = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Format::Csv,
        Some("jsonl" | "ndjson") => Format::JsonLines,
        _ => {
            let expected = "expected a file name that ends in .csv, or in .jsonl for lines of JSON";
            return Err(expected.into());
        }
    };
    Ok(SeriesFile { path, format })
}

/// One second of a load, as written to a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    /// Start, in seconds since the window opened.
    second: u32,
    /// Length in seconds: 1, except for the last one.
    length_s: f64,
    requests: u64,
    rate_per_s: f64,
    errors: u64,
    mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p95_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    max_ns: Option<u64>,
    refused: u64,
}

/// The names of the columns of a series.
const COLUMNS: &str = "second,length_s,requests,rate_per_s,errors,mean_ns,p50_ns,p90_ns,p95_ns,\
                       p99_ns,p99_9_ns,max_ns,refused";

impl Row {
    fn csv(&self) -> String {
        let time = |ns: Option<u64>| ns.map_or(String::new(), |ns| ns.to_string());
        let mean = self.mean_ns.map_or(String::new(), |ns| format!("{ns:.0}"));
        let times =
            [self.p50_ns, self.p90_ns, self.p95_ns, self.p99_ns, self.p99_9_ns, self.max_ns];
        let Row { second, length_s, requests, rate_per_s, errors, refused, .. } = self;
        let times = times.map(time).join(",");
        format!("{second},{length_s},{requests},{rate_per_s:.1},{errors},{mean},{times},{refused}")
    }
}

/// A second, without the memory that an empty histogram takes.
struct Kept {
    number: u32,
    requests: u64,
    errors: u64,
    refused: u64,
    latency: Latency,
    /// The histogram in HDR's V2 format; empty if it is not needed.
    encoded: Vec<u8>,
}

/// The seconds of a load.
pub struct Seconds {
    /// When the window opened, by the clock of this machine.
    began: Option<SystemTime>,
    keeps_histograms: bool,
    kept: Vec<Kept>,
}

impl Seconds {
    /// No seconds yet. `keeps_histograms` permits [`Seconds::write_hdr_log`].
    pub fn new(keeps_histograms: bool) -> Self {
        Seconds { began: None, keeps_histograms, kept: Vec::new() }
    }

    /// Adds the next second, which ended a moment ago.
    pub fn add(&mut self, second: &SecondCounted) {
        let SecondCounted { number, requests, errors, refused, latency } = second;
        let since = Duration::from_secs(u64::from(*number) + 1);
        self.began.get_or_insert_with(|| SystemTime::now() - since);
        let mut encoded = Vec::new();
        if self.keeps_histograms {
            let written = V2Serializer::new().serialize(latency, &mut encoded);
            written.expect("a histogram with its bounds set serialises into memory");
        }
        let latency = Latency::of(latency);
        self.kept.push(Kept {
            number: *number,
            requests: *requests,
            errors: *errors,
            refused: *refused,
            latency,
            encoded,
        });
    }

    /// Number of seconds.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// A line about a second of a load whose window lasts, or will last, this long.
    pub fn line(&self, nth: usize, window_s: f64) -> String {
        let row = self.row(nth, window_s);
        let end = f64::from(row.second) + row.length_s;
        let end = (end * 10.0).round() / 10.0;
        format!("{end:>5} s  {}", figures(&row))
    }

    /// The figures of the last second, if there is one.
    pub fn last_in_words(&self) -> Option<String> {
        let last = self.kept.len().checked_sub(1)?;
        let figures = figures(&self.row(last, f64::INFINITY));
        Some(figures.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Writes a row for each second. `window_s` is the length of the window.
    pub fn write_series(&self, file: &SeriesFile, window_s: f64) -> anyhow::Result<()> {
        let rows = (0..self.kept.len()).map(|nth| self.row(nth, window_s));
        let text: String = match file.format {
            Format::Csv => std::iter::once(COLUMNS.to_owned())
                .chain(rows.map(|row| row.csv()))
                .map(|line| line + "\n")
                .collect(),
            Format::JsonLines => {
                let lines: Result<Vec<_>, _> =
                    rows.map(|row| serde_json::to_string(&row).map(|line| line + "\n")).collect();
                lines.context("cannot encode the series")?.concat()
            }
        };
        output::write(&file.path, &text)
    }

    /// Writes the histogram of each second to a log that the tools of HdrHistogram read. Before them come those
    /// of the `whole` window, with tags. A comment says why one of these is void.
    pub fn write_hdr_log(
        &self,
        path: &Path,
        window_s: f64,
        whole: &[Whole<'_>],
    ) -> anyhow::Result<()> {
        let began = self.began.unwrap_or_else(SystemTime::now);
        let mut bytes = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment("latencies of regatta load, in nanoseconds; Interval_Max in milliseconds")
            .with_start_time(began)
            .with_base_time(began)
            .with_max_value_divisor(MS)
            .begin_log_with(&mut bytes, &mut serializer)?;
        for one in whole {
            let tag = one.tag();
            if let Some(because) = &one.void {
                log.write_comment(&format!("left out: {tag}: {because}"))?;
                continue;
            }
            let histogram = decode_histogram(one.histogram)?;
            let (start, length) = (Duration::ZERO, Duration::from_secs_f64(window_s));
            if let Err(error) = log.write_histogram(&histogram, start, length, Tag::new(&tag)) {
                bail!("cannot encode a histogram: {error:?}");
            }
        }
        for (nth, kept) in self.kept.iter().enumerate() {
            let histogram: Histogram<u64> =
                match Deserializer::new().deserialize(&mut &*kept.encoded) {
                    Ok(histogram) => histogram,
                    Err(error) => bail!("cannot read a histogram back: {error:?}"),
                };
            let start = Duration::from_secs(kept.number.into());
            let length = Duration::from_secs_f64(self.row(nth, window_s).length_s);
            if let Err(error) = log.write_histogram(&histogram, start, length, None) {
                bail!("cannot encode a histogram: {error:?}");
            }
        }
        let text = String::from_utf8(bytes).context("the log is not text")?;
        output::write(path, &text)
    }

    fn row(&self, nth: usize, window_s: f64) -> Row {
        let Kept { number, requests, errors, refused, latency, .. } = &self.kept[nth];
        let is_last = nth + 1 == self.kept.len();
        let rest = window_s - f64::from(*number);
        let length_s = if is_last && rest.is_finite() && rest > 0.0 { rest } else { 1.0 };
        Row {
            second: *number,
            length_s: (length_s * 1e3).round() / 1e3,
            requests: *requests,
            rate_per_s: *requests as f64 / length_s,
            errors: *errors,
            mean_ns: latency.mean,
            p50_ns: latency.p50,
            p90_ns: latency.p90,
            p95_ns: latency.p95,
            p99_ns: latency.p99,
            p99_9_ns: latency.p99_9,
            max_ns: latency.max,
            refused: *refused,
        }
    }
}

/// Rate, latency and errors of a second.
fn figures(row: &Row) -> String {
    let time = |ns: Option<u64>| ns.map_or("–".into(), |ns| regatta_report::time(ns as f64));
    let rate = format!("{}/s", HumanCount(row.rate_per_s.round() as u64));
    let (p50, p99, errors) = (time(row.p50_ns), time(row.p99_ns), HumanCount(row.errors));
    let noun = if row.errors == 1 { "error" } else { "errors" };
    let refused = match row.refused {
        0 => String::new(),
        n => format!("  {} refused", HumanCount(n)),
    };
    format!("{rate:>11}  p50 {p50:>7}  p99 {p99:>7}  {errors} {noun}{refused}")
}

#[cfg(test)]
mod tests;
