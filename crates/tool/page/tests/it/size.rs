//! The size of the page: one file that can be attached to an issue.

use crate::common::race;
use hdrhistogram::Histogram;
use regatta_record::{
    Estimate, LoadShape, NULL, Outcome, Percentiles, Round, Server, Summary, encode_histogram,
};

const HISTOGRAMS: usize = 64;

/// Numbers that do not compress: a linear congruential generator.
struct Draw(u64);

impl Draw {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn estimate(&mut self, about: f64) -> Estimate {
        let mean = about * (0.5 + self.next());
        Estimate {
            mean,
            low: mean * (0.8 + self.next() / 6.0),
            high: mean * (1.01 + self.next() / 6.0),
        }
    }
}

/// A race of this size, with random figures in every field that the page shows.
#[expect(clippy::too_many_lines, reason = "it fills one record")]
fn race_of(contenders: usize, loads: u32, rounds: u32) -> (Summary, Vec<Round>) {
    let (mut summary, stored) = race();
    let model = summary.cells.iter().find(|cell| cell.rounds > 1 && cell.contender != NULL);
    let model = model.expect("a cell with figures").clone();
    let finished = |round: &&Round| round.outcome == Outcome::Finished && round.requests > 0;
    let round = stored.iter().find(finished).expect("a finished round").clone();
    let mut draw = Draw(7);
    let histograms: Vec<String> = (0..HISTOGRAMS)
        .map(|_| {
            let mut histogram = Histogram::new_with_bounds(1, 120_000_000_000, 3).unwrap();
            for _ in 0..3_000 {
                let value = 50_000.0 * (0.2 + draw.next()) / (1.001 - draw.next());
                histogram.record(value as u64).unwrap();
            }
            encode_histogram(&histogram)
        })
        .collect();
    let asked = &mut summary.asked;
    asked.loads = (0..loads).map(|nth| LoadShape::closed(64 << nth, 1)).collect();
    asked.contenders = (0..contenders).map(|nth| format!("contender-{nth}")).collect();
    (asked.baseline, asked.twin_of) = ("contender-0".into(), None);
    let entry = asked.entries[0].clone();
    let named = asked.contenders.iter();
    asked.entries =
        named.map(|name| regatta_record::Entry { name: name.clone(), ..entry.clone() }).collect();
    summary.cells.clear();
    for load in &asked.loads {
        for contender in &asked.contenders {
            let mut cell = model.clone();
            (cell.load, cell.contender) = (*load, contender.clone());
            cell.cost_ns_per_request = Some(draw.estimate(5e3));
            cell.rate_per_s = Some(draw.estimate(1e5));
            cell.load_cpu_ns_per_request = Some(draw.estimate(4e3));
            cell.ratio_to_baseline = Some(draw.estimate(1.5));
            let mut percentile = |about: f64| Some(draw.estimate(about));
            cell.latency_intervals = Percentiles {
                p50: percentile(1e5),
                p90: percentile(2e5),
                p95: percentile(3e5),
                p99: percentile(5e5),
                p99_9: percentile(1e6),
            };
            let latency = &mut cell.latency_ns;
            latency.mean = Some(1e5 * draw.next());
            latency.max = Some((1e9 * draw.next()) as u64);
            for busy in [&mut cell.server_busy, &mut cell.load_busy, &mut cell.busiest_thread] {
                *busy = Some(draw.next());
            }
            (cell.switches_per_request, cell.headroom) = (Some(draw.next()), Some(draw.next()));
            cell.memory_bytes = Some((1e8 * draw.next()) as u64);
            summary.cells.push(cell);
        }
    }
    let mut all = Vec::new();
    for pass in 0..rounds {
        for load in &asked.loads {
            for contender in &asked.contenders {
                let server = round
                    .server
                    .clone()
                    .map(|server| Server { cpu_ns: (1e9 * (0.5 + draw.next())) as u64, ..server });
                all.push(Round {
                    round: pass,
                    load: *load,
                    contender: contender.clone(),
                    server,
                    requests: (2e5 * (0.5 + draw.next())) as u64,
                    started_unix_s: round.started_unix_s + all.len() as u64 * 2 + pass as u64,
                    histogram: histograms[(draw.next() * HISTOGRAMS as f64) as usize].clone(),
                    ..round.clone()
                });
            }
        }
    }
    (summary, all)
}

#[test]
fn twenty_rounds_of_twelve_contenders_under_eight_loads_take_less_than_300_kb() {
    let (summary, rounds) = race_of(12, 8, 20);
    assert_eq!((summary.cells.len(), rounds.len()), (96, 1_920));
    let size = regatta_page::page(&summary, &rounds).len();
    println!("{size} bytes");
    assert!(size < 300_000, "{size} bytes");
}

#[test]
fn a_further_round_of_a_contender_takes_at_most_40_bytes() {
    let size = |rounds| {
        let (summary, rounds) = race_of(12, 2, rounds);
        regatta_page::page(&summary, &rounds).len()
    };
    let (few, many) = (size(20), size(120));
    let each = (many - few) as f64 / f64::from(100 * 12 * 2);
    println!("{each:.1} bytes");
    assert!(each <= 40.0, "{each:.1} bytes for each contender and round");
}
