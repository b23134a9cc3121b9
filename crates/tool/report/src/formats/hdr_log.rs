//! Latencies as an HdrHistogram V2 interval log, which HdrHistogram's tools read (HistogramLogAnalyzer,
//! HistogramLogProcessor). Each round is an interval, with a tag that names load and contender.

use crate::table::visible;
use hdrhistogram::{
    Histogram,
    serialization::{
        V2DeflateSerializer,
        interval_log::{IntervalLogWriterBuilder, Tag},
    },
};
use regatta_record::{Figure, HistogramError, Outcome, Round, Summary, decode_histogram};
use std::time::{Duration, UNIX_EPOCH};

/// Writes the latencies of a race as an interval log, in nanoseconds. An interval starts when the contender
/// was started, and is as long as the window. Its latency is the one that reports show. Contenders whose
/// latency is void at a load are left out, and a comment says why; so are rounds that did not finish. Requests
/// without a reply are in no histogram.
///
/// # Errors
/// A histogram of `rounds` cannot be read.
pub fn hdr_log(summary: &Summary, rounds: &[Round]) -> Result<String, HistogramError> {
    let mut intervals = intervals(summary, rounds)?;
    // The format requires ascending times. Rounds are stored in that order, unless the clock was set.
    intervals.sort_by_key(|interval| interval.start);
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut head = IntervalLogWriterBuilder::new();
    head.add_comment("[Histogram log format version 1.3]");
    let latency_of = &summary.asked.latency_of.one;
    head.add_comment(&visible(&format!(
        "race {}: latency of a {latency_of}, nanoseconds; an interval is a round",
        summary.asked.name
    )));
    for cell in summary.cells.iter().filter(|cell| cell.verdict.voids(Figure::Latency)) {
        let (tag, verdict) = (tag(&cell.load.to_string(), &cell.contender), &cell.verdict);
        let because = visible(&verdict.because());
        head.add_comment(&format!("left out: {tag}: {}: {because}", verdict.kind().name()));
    }
    if let Some(first) = intervals.first() {
        head.with_start_time(UNIX_EPOCH + first.start);
    }
    let written = "a Vec takes all, and a stored histogram can be stored again";
    let mut writer = head.begin_log_with(&mut log, &mut serializer).expect(written);
    for Interval { start, length, tag, histogram } in &intervals {
        writer.write_histogram(histogram, *start, *length, Tag::new(tag)).expect(written);
    }
    Ok(String::from_utf8(log).expect("comments, tags and base64 are text"))
}

struct Interval {
    start: Duration,
    length: Duration,
    tag: String,
    histogram: Histogram<u64>,
}

fn intervals(summary: &Summary, rounds: &[Round]) -> Result<Vec<Interval>, HistogramError> {
    let mut intervals = Vec::new();
    for round in rounds.iter().filter(|round| round.outcome == Outcome::Finished) {
        let cell = summary.cells.iter().find(|cell| {
            (&cell.contender, &cell.workload, &cell.load)
                == (&round.contender, &round.workload, &round.load)
        });
        if cell.is_none_or(|cell| cell.verdict.voids(Figure::Latency)) {
            continue;
        }
        let Some(histogram) = round.histogram_of(&summary.asked.latency_of) else { continue };
        let histogram = decode_histogram(histogram)?;
        if histogram.is_empty() {
            continue;
        }
        intervals.push(Interval {
            start: Duration::from_secs(round.started_unix_s),
            length: Duration::from_nanos(round.window_ns),
            tag: tag(&round.load.to_string(), &round.contender),
            histogram,
        });
    }
    Ok(intervals)
}

/// A tag may contain neither spaces nor commas nor line breaks. It is kept in ASCII, because the format names
/// no encoding.
fn tag(load: &str, contender: &str) -> String {
    let tag = visible(&format!("{load}:{contender}"));
    tag.chars()
        .map(|c| match c {
            ' ' => '_',
            ',' => ';',
            '×' => 'x',
            c if c.is_ascii_graphic() => c,
            _ => '?',
        })
        .collect()
}
