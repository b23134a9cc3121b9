//! Further kinds of operations in the rounds of one cell: their number, rate and latency.

use crate::statistics::{self, Series, geometric, is_known, known, log, present};
use regatta_record::{
    HistogramReader, HistogramSum, Latency, Operation, OperationFigures, Percentiles, Round,
    RoundOperation, Unknown,
};

/// One kind of operation in the rounds of a cell.
#[derive(Debug)]
pub struct Operations {
    kind: Operation,
    count: u64,
    /// Logarithm of operations per second, by pass.
    rate: Series,
    latency: Latency,
    /// 50, 90, 95, 99 and 99.9 of each round that was run.
    by_round: Vec<[Option<u64>; 5]>,
}

impl Operations {
    /// All kinds, in the order of the first round. Each request causes one operation of the kind
    /// `latency_of`, and one first message, so an unanswered request counts as longer than every such
    /// operation. The error
    /// is a sentence that names the round.
    pub fn all(
        rounds: &[Option<&Round>],
        latency_of: &Operation,
    ) -> Result<Vec<Operations>, String> {
        let Some(first) = rounds.iter().flatten().find(|round| !round.operations.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut reader = HistogramReader::default();
        let kinds = first.operations.iter().map(|one| &one.operation);
        let of = |kind: &Operation| {
            let one_for_each = kind.name == latency_of.name || kind.fails_with_request();
            Operations::of(kind, rounds, one_for_each, &mut reader)
        };
        kinds.map(of).collect()
    }

    fn of(
        kind: &Operation,
        rounds: &[Option<&Round>],
        one_for_each: bool,
        reader: &mut HistogramReader,
    ) -> Result<Operations, String> {
        let (mut all, mut by_round, mut beyond_all) = (HistogramSum::default(), Vec::new(), 0);
        for round in rounds.iter().flatten() {
            let Some(counted) = of_round(round, kind) else {
                by_round.push([None; 5]);
                continue;
            };
            let counts = reader
                .read(&counted.histogram)
                .map_err(|why| format!("round {}, {}: {why}", round.round + 1, kind.several))?;
            let beyond = if one_for_each { round.unanswered() } else { 0 };
            by_round.push(counts.percentiles(beyond));
            all.add(&counts);
            beyond_all += beyond;
        }
        let rate =
            |round: &Round| log(round.count_of(kind) as f64 / (round.window_ns as f64 / 1e9));
        Ok(Operations {
            kind: kind.clone(),
            count: rounds.iter().flatten().map(|round| round.count_of(kind)).sum(),
            rate: rounds.iter().map(|round| round.and_then(rate)).collect(),
            latency: all.counts().latency(beyond_all),
            by_round,
        })
    }

    /// Percentiles of all rounds, and 50, 90, 95, 99 and 99.9 of each; `None` if this is another
    /// kind.
    pub fn latency(&self, kind: &Operation) -> Option<(&Latency, &[[Option<u64>; 5]])> {
        (self.kind.name == kind.name).then_some((&self.latency, &self.by_round))
    }

    /// The figures for the cell. On shared CPUs, rates and latencies are not meaningful.
    pub fn figures(&self, seed: u64, cost_only: bool) -> OperationFigures {
        let (operation, count) = (self.kind.clone(), self.count);
        if cost_only {
            return OperationFigures {
                operation,
                count,
                rate_per_s: None,
                latency_ns: Latency::default(),
                latency_intervals: Percentiles::default(),
                not_known: Vec::new(),
            };
        }
        let rate = geometric(&present(&self.rate), seed);
        let rate_unknown = rate.is_some_and(|rate| !is_known(&rate)).then_some(Unknown::Rate);
        OperationFigures {
            operation,
            count,
            rate_per_s: known(rate),
            latency_ns: self.latency.clone(),
            latency_intervals: statistics::percentiles(&self.by_round, seed),
            not_known: rate_unknown
                .into_iter()
                .chain(statistics::unknown_percentiles(&self.by_round, seed))
                .collect(),
        }
    }
}

fn of_round<'r>(round: &'r Round, kind: &Operation) -> Option<&'r RoundOperation> {
    round.operations.iter().find(|one| one.operation.name == kind.name)
}
