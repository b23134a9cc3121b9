//! What the rounds of one cell showed of further kinds of operations: how many there were, how many per
//! second, and how long they took.

use crate::statistics::{self, Series, geometric, is_known, known, log, present};
use regatta_record::{
    CountsReader, CountsSum, Latency, Operation, OperationFigures, Percentiles, Round,
    RoundOperation, Unknown,
};

/// One kind in the rounds of a cell.
#[derive(Debug)]
pub struct Operations {
    kind: Operation,
    count: u64,
    /// Logarithm of those per second by pass.
    rate: Series,
    latency: Latency,
    /// 50, 90, 95, 99 and 99.9 of each round.
    by_round: Vec<[Option<u64>; 5]>,
}

impl Operations {
    /// All kinds, in the order of the first round. The error is a sentence that names the round.
    pub fn all(rounds: &[Option<&Round>]) -> Result<Vec<Operations>, String> {
        let Some(first) = rounds.iter().flatten().find(|round| !round.operations.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut reader = CountsReader::default();
        let kinds = first.operations.iter().map(|one| &one.operation);
        kinds.map(|kind| Operations::of(kind, rounds, &mut reader)).collect()
    }

    fn of(
        kind: &Operation,
        rounds: &[Option<&Round>],
        reader: &mut CountsReader,
    ) -> Result<Operations, String> {
        let (mut all, mut by_round) = (CountsSum::default(), Vec::new());
        for round in rounds.iter().flatten() {
            let Some(counted) = of_round(round, kind) else { continue };
            let counts = reader
                .read(&counted.histogram)
                .map_err(|why| format!("round {}, {}: {why}", round.round + 1, kind.several))?;
            by_round.push(counts.percentiles(0));
            all.add(&counts);
        }
        let rate =
            |round: &Round| log(round.count_of(kind) as f64 / (round.window_ns as f64 / 1e9));
        Ok(Operations {
            kind: kind.clone(),
            count: rounds.iter().flatten().map(|round| round.count_of(kind)).sum(),
            rate: rounds.iter().map(|round| round.and_then(rate)).collect(),
            latency: all.counts().latency(0),
            by_round,
        })
    }

    /// As a cell has it. Where server and load had to share CPUs, rates and latencies say nothing.
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
