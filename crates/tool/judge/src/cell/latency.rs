//! Latency of the rounds of one cell: histograms added up, percentiles by round, and in open loop
//! the fates of the requests that were due.

use regatta_record::{
    HistogramError, HistogramReader, HistogramSum, Latency, OpenLoop, OpenLoopFigures, Round,
};

/// Latency of one cell.
#[derive(Debug, Default)]
pub struct Latencies {
    /// Percentiles of all rounds' histograms added up.
    pub all: Latency,
    /// 50, 90, 95, 99 and 99.9 of each round.
    pub by_round: Vec<[Option<u64>; 5]>,
    /// Number of latencies far beyond the 99th percentile, and of all, of each round that has one.
    pub far: Vec<(u64, u64)>,
    /// In open loop.
    pub open_loop: Option<OpenLoopFigures>,
}

/// A latency is far beyond the others from this many times the 99th percentile, and from this length in
/// nanoseconds.
const FAR: u64 = 10;
const FAR_NS: u64 = 1_000_000;

/// Reads the histograms of a cell. The error is a sentence that names the round.
///
/// A request that was never sent or never answered is in no histogram, but took longer than any
/// request that is (method, rules 1 and 5). Percentiles count it as such; a percentile that falls
/// among such requests is absent.
pub fn read(rounds: &[&Round]) -> Result<Latencies, String> {
    let mut reader = HistogramReader::default();
    let mut latencies = Latencies::default();
    let (mut all, mut beyond_all) = (HistogramSum::default(), 0);
    let mut parts = [const { None::<HistogramSum> }; 3];
    for round in rounds {
        let unreadable = |why: HistogramError| format!("round {}: {why}", round.round + 1);
        let counts = reader.read(&round.histogram).map_err(unreadable)?;
        let beyond = round.unanswered();
        let percentiles = counts.percentiles(beyond);
        let far = |p99: u64| (counts.beyond((FAR * p99).max(FAR_NS)), counts.total());
        latencies.far.extend(percentiles[3].map(far));
        latencies.by_round.push(percentiles);
        all.add(&counts);
        beyond_all += beyond;
        if let Some(open) = &round.open_loop {
            for (sum, text) in parts.iter_mut().zip([&open.wait, &open.lag, &open.service]) {
                let counts = reader.read(text).map_err(unreadable)?;
                sum.get_or_insert_default().add(&counts);
            }
        }
    }
    latencies.all = all.counts().latency(beyond_all);
    let [wait, lag, service] =
        parts.map(|sum| sum.map(|sum| sum.counts().latency(0)).unwrap_or_default());
    latencies.open_loop = totals(rounds).map(|totals| OpenLoopFigures {
        wait_ns: wait,
        send_lag_ns: lag,
        service_ns: service,
        ..totals
    });
    Ok(latencies)
}

fn totals(rounds: &[&Round]) -> Option<OpenLoopFigures> {
    let open: Vec<&OpenLoop> = rounds.iter().filter_map(|r| r.open_loop.as_ref()).collect();
    let sum = |of: fn(&OpenLoop) -> u64| open.iter().map(|open| of(open)).sum();
    (!open.is_empty()).then(|| OpenLoopFigures {
        due: sum(|open| open.due),
        unsent: sum(|open| open.unsent),
        late: sum(|open| open.late),
        timed_out: sum(|open| open.timed_out),
        lost: sum(|open| open.lost),
        refused: sum(|open| open.refused),
        wait_ns: Latency::default(),
        send_lag_ns: Latency::default(),
        service_ns: Latency::default(),
        misshapen: open.iter().filter(|open| !open.arrivals.kept).count() as u32,
    })
}
