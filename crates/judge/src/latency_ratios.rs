//! Latency ratios: percentiles of a cell over those of another cell, paired by pass.
//!
//! The method is the same as for costs: a log-ratio for each pass in which both were run, and the
//! interval of their mean ([`crate::statistics::geometric`]). A factor that applies to both
//! latencies, e.g. a slower machine, cancels in the pair. The machine probe is not used here: it
//! explains CPU time, and the tail of a latency has other causes.

use crate::{
    field::Field,
    statistics::{geometric_each, is_known, log},
};
use regatta_record::{Asked, Cell, Figure, Kind, LatencyRatio, LoadShape};

/// Indices of p95 and p99 among the percentiles of a round.
const TAILS: [usize; 2] = [2, 3];

/// Logarithms of the ratios by pass, or why there are none.
type LogRatios = Result<Vec<f64>, String>;

/// The cell to compare with.
#[derive(Clone, Copy)]
enum With {
    /// The baseline's under the same load.
    Baseline,
    /// The same contender's at the load that differs only in `stalled`, which is 0 there.
    AllReading,
}

/// A cell, the kind of cell it is compared with, and the log-ratios of p95 and p99.
struct Pair {
    cell: usize,
    with: With,
    tails: [LogRatios; 2],
}

/// Sets the ratios of each cell's p95 and p99 to the baseline's, and at loads with connections that
/// do not read also to those at the load without. A ratio that cannot be trusted is absent, with
/// the reason.
pub(super) fn compare(asked: &Asked, fields: &[Field], cells: &mut [Cell]) {
    let pairs = pairs(asked, fields, cells);
    let tails = pairs.iter().flat_map(|pair| &pair.tails);
    let figures: Vec<&[f64]> = tails.map(|logs| logs.as_deref().unwrap_or(&[])).collect();
    let mut estimates = geometric_each(&figures, asked.seed).into_iter();
    for Pair { cell, with, tails } in pairs {
        let [p95, p99] = tails.map(|logs| {
            let estimate = estimates.next().flatten();
            let estimate = logs.map(|_| estimate.filter(is_known))?;
            estimate.ok_or_else(|| {
                "the interval extends beyond a tenth or ten times the ratio; run more rounds \
                 (--rounds)"
                    .to_owned()
            })
        });
        let missing = missing(p95.as_ref().err(), p99.as_ref().err());
        let ratio = Some(LatencyRatio { p95: p95.ok(), p99: p99.ok(), missing });
        match with {
            With::Baseline => cells[cell].latency_to_baseline = ratio,
            With::AllReading => cells[cell].latency_to_all_reading = ratio,
        }
    }
}

/// The reasons for missing ratios of p95 and p99.
fn missing(p95: Option<&String>, p99: Option<&String>) -> Option<String> {
    match (p95, p99) {
        (None, None) => None,
        (Some(why), None) => Some(format!("p95: {why}")),
        (None, Some(why)) => Some(format!("p99: {why}")),
        (Some(a), Some(b)) if a == b => Some(a.clone()),
        (Some(a), Some(b)) => Some(format!("p95: {a}; p99: {b}")),
    }
}

fn pairs(asked: &Asked, fields: &[Field], cells: &[Cell]) -> Vec<Pair> {
    let find = |name: &str, load: LoadShape| {
        cells.iter().find(|c| c.load == load && c.contender == name).filter(|c| c.rounds > 0)
    };
    let mut pairs = Vec::new();
    for (nth, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.rounds > 0) {
        let baseline = find(&asked.baseline, cell.load);
        let baseline = baseline.filter(|other| other.contender != cell.contender);
        let all_reading = LoadShape { stalled: 0, ..cell.load };
        let all_reading = (cell.load.stalled > 0).then(|| find(&cell.contender, all_reading));
        let others = [(With::Baseline, baseline), (With::AllReading, all_reading.flatten())];
        for (with, other) in others.into_iter().filter_map(|(with, other)| Some((with, other?))) {
            let tails = match distrust(cell, other, with) {
                Some(why) => [Err(why.clone()), Err(why)],
                None => log_ratios(fields, cell, other),
            };
            pairs.push(Pair { cell: nth, with, tails });
        }
    }
    pairs
}

/// Why the latencies of two cells are not compared, if so.
fn distrust(cell: &Cell, other: &Cell, with: With) -> Option<String> {
    if cell.shared_cpus {
        return Some("server and load share CPUs, so latencies are not meaningful".to_owned());
    }
    if !cell.load.compares_latency() {
        return Some(
            "latencies are compared only at a `rate` or with a bound on `in_flight`: otherwise they \
             follow from the throughput"
                .to_owned(),
        );
    }
    let of_other = match with {
        With::Baseline => format!("the latency of {}", other.contender),
        With::AllReading => "the latency while all connections read".to_owned(),
    };
    [("its latency", cell), (&of_other, other)].into_iter().find_map(|(which, cell)| {
        if cell.verdict.voids(Figure::Latency) {
            return Some(format!("{which} is void; see the verdict"));
        }
        cell.verdict.is(Kind::Overloaded).then(|| {
            format!("{which} was measured under overload and grows as long as the load lasts")
        })
    })
}

/// Log-ratios of p95 and p99, paired by pass.
fn log_ratios(fields: &[Field], cell: &Cell, other: &Cell) -> [LogRatios; 2] {
    let by_pass = |cell: &Cell| {
        let field = fields.iter().find(|field| field.load == cell.load);
        let observed = field.and_then(|field| field.of(&cell.contender));
        observed.map_or_else(Vec::new, |observed| observed.latency_by_pass())
    };
    let (own, others) = (by_pass(cell), by_pass(other));
    let both = || own.iter().zip(&others).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    TAILS.map(|nth| {
        let ratio = |a: u64, b: u64| Some(log(a as f64)? - log(b as f64)?);
        let logs: Vec<Option<f64>> = both().map(|(a, b)| ratio(a[nth]?, b[nth]?)).collect();
        let (rounds, measured) = (logs.len(), logs.iter().flatten().count());
        if rounds < 2 {
            return Err("an interval needs 2 rounds in which both were measured".to_owned());
        }
        // A round is never left out because of its value: rounds without a percentile may be the
        // worst.
        if measured < rounds {
            return Err(format!(
                "{} of {rounds} rounds have fewer than ten latencies beyond it, or requests without \
                 a reply hide it; use longer windows (--window)",
                rounds - measured
            ));
        }
        Ok(logs.into_iter().flatten().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn a_reason_shared_by_both_percentiles_is_given_once() {
        let (few, void) = ("few".to_owned(), "void".to_owned());
        let reason = |p95, p99| missing(p95, p99).unwrap_or_default();
        assert_eq!(reason(Some(&few), Some(&few)), "few");
        assert_eq!(reason(Some(&few), Some(&void)), "p95: few; p99: void");
        assert_eq!(reason(Some(&few), None), "p95: few");
        assert_eq!(reason(None, Some(&void)), "p99: void");
        assert_eq!(missing(None, None), None);
    }
}
