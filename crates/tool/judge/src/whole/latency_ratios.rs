//! Latency ratios: percentiles of a cell over those of another cell.
//!
//! The method is the same as for costs ([`Comparison`]): in a duel with the baseline, percentiles of
//! slices are paired by block; otherwise those of rounds, by pass. A factor that applies to both
//! latencies, e.g. a slower machine, cancels in the pair.

use crate::{
    compared::{comparison::Comparison, field::Field, lives::Duel},
    statistics::{is_known, log},
};
use regatta_record::{Asked, Cell, Estimate, Figure, Kind, LatencyRatio, LoadShape, Slice};

/// A ratio, or why there is none.
type Tail = Result<Estimate, String>;

/// The cell to compare with.
#[derive(Clone, Copy)]
enum With {
    /// The baseline's under the same load.
    Baseline,
    /// The same contender's at the load that differs only in `stalled`, which is 0 there.
    AllReading,
}

/// Sets the ratios of each cell's percentiles to the baseline's, and at loads with connections that do
/// not read also to those at the load without. A ratio that cannot be trusted is absent, with the
/// reason.
pub(crate) fn compare(asked: &Asked, fields: &[Field], cells: &mut [Cell]) {
    let ratios = ratios(asked, fields, cells);
    for (cell, with, ratio) in ratios {
        match with {
            With::Baseline => cells[cell].latency_to_baseline = Some(ratio),
            With::AllReading => cells[cell].latency_to_all_reading = Some(ratio),
        }
    }
}

/// The reasons for missing ratios.
fn missing(tails: [(&str, &Tail); 2]) -> Option<String> {
    match tails {
        [(_, Ok(_)), (_, Ok(_))] => None,
        [(_, Err(a)), (_, Err(b))] if a == b => Some(a.clone()),
        [(one, Err(a)), (other, Err(b))] => Some(format!("{one}: {a}; {other}: {b}")),
        [(name, Err(why)), _] | [_, (name, Err(why))] => Some(format!("{name}: {why}")),
    }
}

fn ratios(asked: &Asked, fields: &[Field], cells: &[Cell]) -> Vec<(usize, With, LatencyRatio)> {
    let find = |name: &str, load: LoadShape| {
        cells.iter().find(|c| c.load == load && c.contender == name).filter(|c| c.rounds > 0)
    };
    let in_slices = |field: &Field| {
        [|s: &Slice| s.p50_ns, |s: &Slice| s.p99_ns]
            .map(|of| field.slices(asked, |slice: &Slice| Some(of(slice)? as f64)))
    };
    let duels: Vec<(LoadShape, [Option<Duel>; 2])> = fields
        .iter()
        .filter(|field| field.duel.is_some() && field.load.compares_latency())
        .map(|field| (field.load, in_slices(field)))
        .collect();
    let mut ratios = Vec::new();
    for (nth, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.rounds > 0) {
        let baseline = find(&asked.baseline, cell.load);
        let baseline = baseline.filter(|other| other.contender != cell.contender);
        let all_reading = LoadShape { stalled: 0, ..cell.load };
        let all_reading = (cell.load.stalled > 0).then(|| find(&cell.contender, all_reading));
        let others = [(With::Baseline, baseline), (With::AllReading, all_reading.flatten())];
        for (with, other) in others.into_iter().filter_map(|(with, other)| Some((with, other?))) {
            let duel = duels.iter().find(|(load, _)| *load == cell.load && other.load == *load);
            let field = fields.iter().find(|field| field.load == cell.load);
            let ratio = match (distrust(cell, other, with), duel.zip(field)) {
                (Some(missing), _) => LatencyRatio { missing: Some(missing), ..Default::default() },
                (None, Some(((_, duels), field))) => of_slices(duels, field, cell, other),
                (None, None) => of_rounds(fields, cell, other),
            };
            ratios.push((nth, with, ratio));
        }
    }
    ratios
}

/// The estimate, if it is known.
fn known(ratio: Option<Comparison>, few: &str) -> Tail {
    let ratio = ratio.ok_or_else(|| few.to_owned())?.ratio();
    is_known(&ratio).then_some(ratio).ok_or_else(|| {
        "the interval extends beyond a tenth or ten times the ratio; race for longer".to_owned()
    })
}

/// Ratios of the percentiles of slices, paired by block.
fn of_slices(duels: &[Option<Duel>; 2], field: &Field, cell: &Cell, other: &Cell) -> LatencyRatio {
    let hidden = [cell, other].into_iter().find_map(|cell| {
        let open = cell.open_loop.as_ref()?;
        let hidden = open.unsent + open.timed_out + open.lost;
        (hidden > 0)
            .then(|| format!("{hidden} requests of {} without a reply hide it", cell.contender))
    });
    let pair = field.index(&other.contender).zip(field.index(&cell.contender));
    let [p50, p99] = duels.each_ref().map(|duel| {
        if let Some(hidden) = &hidden {
            return Err(hidden.clone());
        }
        let ratio = duel.as_ref().zip(pair).and_then(|(duel, (old, new))| duel.ratio(old, new));
        let ratio = ratio.map(|ratio| Comparison::Duel(Box::new(ratio)));
        known(ratio, "an interval needs 3 lives in which both were measured")
    });
    let missing = missing([("p50", &p50), ("p99", &p99)]);
    LatencyRatio { p50: p50.ok(), p95: None, p99: p99.ok(), missing }
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

/// Ratios of the percentiles of rounds, paired by pass.
fn of_rounds(fields: &[Field], cell: &Cell, other: &Cell) -> LatencyRatio {
    let by_pass = |cell: &Cell| {
        let field = fields.iter().find(|field| field.load == cell.load);
        let observed = field.and_then(|field| field.of(&cell.contender));
        observed.map_or_else(Vec::new, |observed| observed.latency_by_pass())
    };
    let (own, others) = (by_pass(cell), by_pass(other));
    let both = || own.iter().zip(&others).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    let tail = |nth: usize| {
        let ratio = |a: u64, b: u64| Some(log(a as f64)? - log(b as f64)?);
        let logs: Vec<Option<f64>> = both().map(|(a, b)| ratio(a[nth]?, b[nth]?)).collect();
        let (rounds, measured) = (logs.len(), logs.iter().flatten().count());
        // A round is never left out because of its value: rounds without a percentile may be the
        // worst.
        if measured < rounds && rounds >= 2 {
            return Err(format!(
                "{} of {rounds} starts have fewer than ten latencies beyond it, or requests without \
                 a reply hide it; use longer windows (--window)",
                rounds - measured
            ));
        }
        let logs: Vec<f64> = logs.into_iter().flatten().collect();
        known(Comparison::paired(&logs), "an interval needs 2 rounds in which both were measured")
    };
    // Indices among the percentiles of a round.
    let [p95, p99] = [2, 3].map(tail);
    let missing = missing([("p95", &p95), ("p99", &p99)]);
    LatencyRatio { p50: None, p95: p95.ok(), p99: p99.ok(), missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_shared_by_both_percentiles_is_given_once() {
        let there = || Ok(Estimate { mean: 1.0, low: 1.0, high: 1.0 });
        let no = |why: &str| Err(why.to_owned());
        let reason = |p95: Tail, p99: Tail| missing([("p95", &p95), ("p99", &p99)]);
        assert_eq!(reason(no("few"), no("few")).unwrap(), "few");
        assert_eq!(reason(no("few"), no("void")).unwrap(), "p95: few; p99: void");
        assert_eq!(reason(no("few"), there()).unwrap(), "p95: few");
        assert_eq!(reason(there(), no("void")).unwrap(), "p99: void");
        assert_eq!(reason(there(), there()), None);
    }
}
