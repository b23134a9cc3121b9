//! Tests of the formats that other programs read, each with a reader that shares no code with the writer:
//! strict types for the two JSON formats, a parser of the Prometheus format, and hdrhistogram's reader of
//! interval logs. The fixture has a hostile name, hostile error output, and voided figures.

use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use openmetrics_parser::prometheus::parse_prometheus;
use regatta_record::{
    Cell, Estimate, Figure, Kind, Operation, Outcome, Percentile, Relation, Round, RoundOperation,
    Summary, Unknown, decode_histogram, encode_histogram,
};
use regatta_report::{bencher, gha_benchmark, hdr_log, prometheus, table::visible};
use serde::Deserialize;
use std::collections::BTreeMap;

fn summary() -> Summary {
    serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary")
}

fn cell<'a>(summary: &'a mut Summary, contender: &str) -> &'a mut Cell {
    summary.cells.iter_mut().find(|cell| cell.contender == contender).expect("a contender")
}

fn bounds(estimate: Option<Estimate>) -> Option<(f64, Option<(f64, f64)>)> {
    estimate.map(|e| (e.mean, Some((e.low, e.high))))
}

/// Measure, value and interval.
type Expected = (String, f64, Option<(f64, f64)>);

/// What a cell may export: measure, value and interval. Written from the method, not from the code: no void
/// figure, none that is not known, no rate that is a lower bound, no ratio of the baseline to itself.
fn expected(cell: &Cell) -> Vec<Expected> {
    let void = |figure| cell.verdict.void.contains(&figure);
    let mut all = Vec::new();
    let mut add = |name: &str, figure, is_void: bool| {
        let figure: Option<(f64, Option<(f64, f64)>)> = figure;
        if let Some((value, interval)) = figure.filter(|_| !is_void) {
            all.push((name.to_owned(), value, interval));
        }
    };
    add("cpu-ns-per-request", bounds(cell.cost_ns_per_request), void(Figure::Cost));
    let own = cell.relation.is_none_or(|relation| relation == Relation::Baseline);
    add("cost-ratio", bounds(cell.ratio_to_baseline), void(Figure::Cost) || own);
    let at_least = cell.verdict.is(Kind::CoBound);
    add("throughput", bounds(cell.rate_per_s), void(Figure::Rate) || at_least);
    add("ms-per-request", bounds(cell.ms_per_request), void(Figure::Rate) || at_least);
    add("instance-s", bounds(cell.instance_s), void(Figure::Rate) || at_least);
    for (slug, percentile) in [
        ("latency-p50-ns", Percentile::P50),
        ("latency-p90-ns", Percentile::P90),
        ("latency-p95-ns", Percentile::P95),
        ("latency-p99-ns", Percentile::P99),
        ("latency-p99-9-ns", Percentile::P99_9),
    ] {
        let shown = cell.percentile(percentile);
        let shown = shown.map(|p| (p.ns, p.interval.map(|e| (e.low, e.high))));
        add(slug, shown, void(Figure::Latency));
    }
    let memory = cell.memory_bytes.map(|bytes| (bytes as f64, None));
    add("memory-bytes", memory, void(Figure::Memory));
    all
}

fn shown_name(cell: &Cell) -> String {
    visible(&format!("{} · {} · {}", cell.workload, cell.load, cell.contender))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    value: f64,
    lower_value: Option<f64>,
    upper_value: Option<f64>,
}

fn read_bencher(text: &str) -> BTreeMap<String, BTreeMap<String, Metric>> {
    serde_json::from_str(text).expect("Bencher Metric Format")
}

/// The fixture, with a figure that is not known, a void latency, and names that break other formats.
fn hostile() -> Summary {
    let mut summary = summary();
    let uring = cell(&mut summary, "uring");
    (uring.cost_ns_per_request, uring.ratio_to_baseline) = (None, None);
    uring.not_known = vec![Unknown::Cost, Unknown::Ratio];
    cell(&mut summary, "async").verdict.void = vec![Figure::Rate, Figure::Latency];
    cell(&mut summary, "async").verdict.first_mut().cause = "a\nb \u{1b}[31m".into();
    cell(&mut summary, "poll").contender = "a`|\"\\,} 1\nregatta_cost_seconds 5 \u{202e}".into();
    summary
}

#[test]
fn bencher_gets_every_trusted_figure_with_its_bounds_and_no_other() {
    let summary = hostile();
    let read = read_bencher(&bencher(&summary));
    let mut figures = 0;
    for cell in &summary.cells {
        let expected = expected(cell);
        let empty = BTreeMap::new();
        let found = read.get(&shown_name(cell)).unwrap_or(&empty);
        assert_eq!(found.len(), expected.len(), "{}", cell.contender);
        for (slug, value, interval) in expected {
            let metric = &found[&slug];
            let both = metric.lower_value.zip(metric.upper_value);
            assert_eq!((metric.value, both), (value, interval), "{slug} of {}", cell.contender);
            assert_eq!(metric.lower_value.is_some(), metric.upper_value.is_some());
            figures += 1;
        }
    }
    assert!(figures > 100, "{figures} in the fixture");
    let uring = shown_name(cell(&mut hostile(), "uring"));
    assert!(
        !read[&uring].contains_key("cpu-ns-per-request"),
        "a figure that is not known is absent"
    );
    assert!(read[&uring].contains_key("memory-bytes"), "the others are there");
    assert!(!read.keys().any(|name| name.contains("erlang")), "a skipped contender has no figures");
}

#[test]
fn bencher_names_keep_to_its_limits() {
    let mut summary = hostile();
    cell(&mut summary, "node").contender = "x".repeat(5_000);
    summary.asked.cost_per.one = "Élan vital ".repeat(20).into();
    for (name, measures) in read_bencher(&bencher(&summary)) {
        assert!((1..=1024).contains(&name.chars().count()) && !name.contains('\n'), "{name:?}");
        for slug in measures.keys() {
            let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(slug.len() <= 64 && slug.chars().all(kebab), "{slug:?}");
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Benchmark {
    name: String,
    unit: String,
    value: f64,
    range: Option<String>,
    extra: String,
}

#[test]
fn the_benchmark_action_gets_what_is_better_when_smaller() {
    let summary = hostile();
    let read: Vec<Benchmark> = serde_json::from_str(&gha_benchmark(&summary)).expect("its format");
    let expected: Vec<_> =
        summary.cells.iter().flat_map(expected).filter(|(slug, ..)| slug != "throughput").collect();
    assert_eq!(read.len(), expected.len());
    for (benchmark, (slug, value, interval)) in read.iter().zip(&expected) {
        assert_eq!(benchmark.value, *value, "{slug}");
        assert!(!benchmark.unit.is_empty() && benchmark.unit != "requests/s", "{}", benchmark.unit);
        // It shows names between backticks in a table of Markdown.
        let bad = |c: char| c == '`' || c == '|' || c.is_control();
        assert!(!benchmark.name.contains(bad), "{:?}", benchmark.name);
        assert!(!benchmark.extra.contains('\u{1b}'), "{:?}", benchmark.extra);
        assert_eq!(benchmark.range.is_some(), interval.is_some(), "{slug}");
        let Some((low, high)) = interval else { continue };
        // It parses a range with /(?<prefix>(\+-|±)\s*)(?<value>\d.+)/ and Number().
        let range = benchmark.range.as_ref().unwrap().strip_prefix("± ").expect("its form");
        assert!(range.starts_with(|c: char| c.is_ascii_digit()) && range.len() > 1, "{range}");
        let half: f64 = range.parse().expect("a number");
        let widest = (high - value).max(value - low);
        assert!((half - widest).abs() <= widest * 1e-3, "{half} is not {widest}");
    }
    let mut names: Vec<_> = read.iter().map(|benchmark| &benchmark.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), read.len(), "the action identifies benchmarks by their names");
}

#[test]
fn prometheus_parses_every_sample_and_its_labels() {
    let summary = hostile();
    let text = prometheus(&summary);
    let parsed = parse_prometheus(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut samples: BTreeMap<(String, String, String), f64> = BTreeMap::new();
    for (family, content) in &parsed.families {
        for sample in content.iter_samples() {
            let labels = sample.get_labelset().expect("labels");
            let label = |name| labels.get_label_value(name).unwrap_or_default();
            let cell =
                format!("{} · {} · {}", label("workload"), label("load"), label("contender"));
            let value = match sample.value {
                openmetrics_parser::PrometheusValue::Gauge(value) => value.as_f64(),
                ref other => panic!("{family} is no gauge: {other:?}"),
            };
            let key = (family.clone(), unescaped(&cell), label("quantile").to_owned());
            assert!(samples.insert(key, value).is_none(), "{family}: {cell} twice");
        }
    }
    let mut figures = 0;
    for cell in &summary.cells {
        for (slug, value, interval) in expected(cell) {
            let (metric, unit, quantile, divisor) = match slug.as_str() {
                "cpu-ns-per-request" => ("cost", "_seconds", "", 1e9),
                "cost-ratio" => ("cost_ratio", "", "", 1.0),
                "throughput" => ("rate", "_per_second", "", 1.0),
                "ms-per-request" => ("request_time", "_seconds", "", 1e3),
                "instance-s" => ("instance_time", "_seconds", "", 1.0),
                "memory-bytes" => ("memory", "_bytes", "", 1.0),
                "latency-p50-ns" => ("latency", "_seconds", "0.5", 1e9),
                "latency-p90-ns" => ("latency", "_seconds", "0.9", 1e9),
                "latency-p95-ns" => ("latency", "_seconds", "0.95", 1e9),
                "latency-p99-ns" => ("latency", "_seconds", "0.99", 1e9),
                "latency-p99-9-ns" => ("latency", "_seconds", "0.999", 1e9),
                other => panic!("{other}"),
            };
            let mut take = |end: &str| {
                let name = format!("regatta_{metric}{end}{unit}");
                samples.remove(&(name, shown_name(cell), quantile.to_owned()))
            };
            let found = (take(""), take("_low").zip(take("_high")));
            let scaled = interval.map(|(low, high)| (low / divisor, high / divisor));
            assert_eq!(found, (Some(value / divisor), scaled), "{slug} of {}", cell.contender);
            figures += 1;
        }
        let rounds = ("regatta_rounds".to_owned(), shown_name(cell), String::new());
        assert_eq!(samples.remove(&rounds), Some(cell.rounds.into()));
    }
    assert!(figures > 100, "{figures}");
    let left: Vec<_> = samples.into_keys().map(|(family, ..)| family).collect();
    assert_eq!(left, ["regatta_noise_floor", "regatta_start_time_seconds"]);
    assert!(!text.contains("\nregatta_cost_seconds 5"), "a name cannot add a sample:\n{text}");
}

/// The parser keeps the escapes of labels.
fn unescaped(label: &str) -> String {
    label.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// A finished round of a cell, started at `at` seconds since 1970, whose latencies in ns are `latencies`.
fn round(cell: &Cell, number: u32, at: u64, latencies: &[u64]) -> Round {
    let mut histogram =
        hdrhistogram::Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
    latencies.iter().for_each(|ns| histogram.record(*ns).unwrap());
    let round = serde_json::json!({
        "format": 1, "round": number, "contender": cell.contender, "workload": cell.workload,
        "load": cell.load, "seed": 1, "started_unix_s": at, "outcome": { "kind": "finished" },
        "requests": latencies.len(), "window_ns": 500_000_000, "slices": [],
        "errors": regatta_record::Errors::default(), "load_cpu_ns": 0, "load_cpus": 1, "server": null,
        "histogram": encode_histogram(&histogram),
    });
    serde_json::from_value(round).expect("a round")
}

#[test]
fn an_interval_log_has_each_trusted_round_under_its_tag() {
    let mut summary = hostile();
    let (poll, void, epoll) = ("a`|", "async", "epoll");
    let find = |name: &str| {
        let found = summary.cells.iter().find(|cell| cell.contender.starts_with(name));
        found.expect("a contender").clone()
    };
    let (poll, void, epoll) = (find(poll), find(void), find(epoll));
    let mut failed = round(&epoll, 2, 1_700_000_030, &[1]);
    failed.outcome = Outcome::Failed { because: "it died".into() };
    let rounds = [
        round(&epoll, 0, 1_700_000_020, &[1_000, 2_000, 3_000]),
        round(&poll, 0, 1_700_000_000, &[70_000]),
        round(&void, 0, 1_700_000_010, &[5]),
        failed,
        round(&epoll, 1, 1_700_000_040, &[]),
    ];
    summary.asked.name = "test\n1.0,2.0,3.0,forged".into();
    let log = hdr_log(&summary, &rounds).unwrap();
    let mut intervals = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        match entry.unwrap_or_else(|error| panic!("{error:?}\n{log}")) {
            LogEntry::StartTime(start) => assert_eq!(start.as_secs(), 1_700_000_000),
            LogEntry::BaseTime(_) => panic!("times are absolute:\n{log}"),
            LogEntry::Interval(interval) => {
                assert_eq!(interval.duration().as_millis(), 500);
                // HdrHistogram in Java reads only the compressed form.
                assert!(interval.encoded_histogram().starts_with("HISTF"), "{log}");
                let histogram = decode_histogram(interval.encoded_histogram()).unwrap();
                let tag = interval.tag().expect("a tag").as_str().to_owned();
                intervals.push((interval.start_timestamp().as_secs(), tag, histogram.len()));
            }
        }
    }
    let load = epoll.load.to_string().replace(' ', "_");
    let hostile = r#"a`|"\;}_1\nregatta_cost_seconds_5_\u{202e}"#;
    let expected = [
        (1_700_000_000, format!("{load}:{hostile}"), 1),
        (1_700_000_020, format!("{load}:epoll"), 3),
    ];
    assert_eq!(intervals, expected, "{log}");
    let left_out = format!("#left out: {load}:async: {}: ", void.verdict.kind().name());
    assert!(log.contains(&left_out) && !log.contains('\u{1b}'), "{log}");
}

#[test]
fn an_interval_log_has_the_operation_whose_latency_is_shown() {
    let deliveries = Operation::new("deliveries", "delivery", "deliveries");
    let passes = Operation::new("passes", "pass", "passes");
    let cell = &summary().cells[0];
    let mut round_of_hub = round(cell, 0, 1, &[1_000]);
    let of = |operation: &Operation, ns: u64| RoundOperation {
        operation: operation.clone(),
        count: 1,
        whole_run: 1,
        histogram: round(cell, 0, 1, &[ns]).histogram,
    };
    round_of_hub.operations = vec![of(&passes, 2_000), of(&deliveries, 3_000)];
    for (shown, expected) in [
        (&Operation::REQUESTS, round_of_hub.histogram.as_str()),
        (&passes, round_of_hub.operations[0].histogram.as_str()),
        (&deliveries, round_of_hub.operations[1].histogram.as_str()),
    ] {
        assert_eq!(round_of_hub.histogram_of(shown), Some(expected), "{}", shown.name);
    }
    assert_eq!(round(cell, 0, 1, &[1]).histogram_of(&deliveries), None);
}

#[test]
fn a_histogram_that_cannot_be_read_is_an_error() {
    let summary = summary();
    let mut broken = round(&summary.cells[0], 0, 1, &[1]);
    broken.histogram = "AAAA".into();
    assert!(hdr_log(&summary, &[broken]).is_err());
}
