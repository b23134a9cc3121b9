//! The figures of a cell that other programs may store and compare: neither void nor unknown, and not
//! just a bound. A figure that is left out is never a zero.

use crate::table::visible;
use regatta_record::{Cell, Estimate, Figure, Kind, Percentile, Relation, Summary, Unknown};

/// A figure of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exported {
    /// The quantity.
    pub measure: Measure,
    /// The value, in the unit of [`Measure::unit`].
    pub value: f64,
    /// The ends of its 95% interval, if it has one.
    pub interval: Option<(f64, f64)>,
}

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Server CPU per operation, nanoseconds.
    Cost,
    /// Cost over the baseline's.
    Ratio,
    /// Requests per second.
    Rate,
    /// A percentile of the latency, nanoseconds.
    Latency(Percentile),
    /// Server memory with the connections open, bytes.
    Memory,
    /// Time per request of a counted load, milliseconds.
    MsPerRequest,
    /// Wall time of an instance of a burst, seconds.
    Instance,
}

impl Measure {
    /// The unit of the value; `per` is the operation that costs are per, e.g. `request`.
    pub fn unit(self, per: &str) -> String {
        match self {
            Measure::Cost => format!("ns/{per}"),
            Measure::Ratio => "ratio".to_owned(),
            Measure::Rate => "requests/s".to_owned(),
            Measure::Latency(_) => "ns".to_owned(),
            Measure::Memory => "bytes".to_owned(),
            Measure::MsPerRequest => "ms/request".to_owned(),
            Measure::Instance => "s".to_owned(),
        }
    }

    /// The name in words, without a unit.
    pub fn name(self) -> String {
        match self {
            Measure::Cost => "server CPU".to_owned(),
            Measure::Ratio => "cost over the baseline's".to_owned(),
            Measure::Rate => "rate".to_owned(),
            Measure::Latency(percentile) => format!("latency {}", percentile.name()),
            Measure::Memory => "memory".to_owned(),
            Measure::MsPerRequest => "time per request".to_owned(),
            Measure::Instance => "time of an instance".to_owned(),
        }
    }

    /// Whether a smaller value is better.
    pub fn smaller_is_better(self) -> bool {
        self != Measure::Rate
    }
}

/// The exported figures of a cell, in a fixed order.
pub fn exported(cell: &Cell) -> Vec<Exported> {
    let trusted = |figure| !cell.verdict.voids(figure);
    let cost = |unknown| trusted(Figure::Cost) && !cell.is_unknown(unknown);
    // A rate that the load limited is only a lower bound.
    let rate = |unknown| {
        trusted(Figure::Rate) && !cell.verdict.is(Kind::CoBound) && !cell.is_unknown(unknown)
    };
    let compared = cell.relation.is_some_and(|relation| relation != Relation::Baseline);
    let mut all = vec![
        of_estimate(Measure::Cost, cell.cost_ns_per_request, cost(Unknown::Cost)),
        of_estimate(Measure::Ratio, cell.ratio_to_baseline, compared && cost(Unknown::Ratio)),
        of_estimate(Measure::Rate, cell.rate_per_s, rate(Unknown::Rate)),
        of_estimate(Measure::MsPerRequest, cell.ms_per_request, rate(Unknown::MsPerRequest)),
        of_estimate(Measure::Instance, cell.instance_s, rate(Unknown::Instance)),
    ];
    all.extend(Percentile::ALL.map(|percentile| {
        let shown = cell.percentile(percentile).filter(|_| trusted(Figure::Latency))?;
        let interval = shown.interval.map(|e| (e.low, e.high));
        Some(Exported { measure: Measure::Latency(percentile), value: shown.ns, interval })
    }));
    let memory = cell.memory_bytes.filter(|_| trusted(Figure::Memory));
    all.push(memory.map(|bytes| Exported {
        measure: Measure::Memory,
        value: bytes as f64,
        interval: None,
    }));
    all.into_iter().flatten().filter(Exported::is_finite).collect()
}

fn of_estimate(measure: Measure, estimate: Option<Estimate>, known: bool) -> Option<Exported> {
    let Estimate { mean, low, high } = estimate.filter(|_| known)?;
    Some(Exported { measure, value: mean, interval: Some((low, high)) })
}

impl Exported {
    fn is_finite(&self) -> bool {
        let (low, high) = self.interval.unwrap_or((self.value, self.value));
        [self.value, low, high].iter().all(|figure| figure.is_finite())
    }
}

/// The name of a cell: workload, load and contender. It is the same in every race of the same load, and has
/// at most `longest` characters, none of which is a control character.
pub fn name(cell: &Cell, longest: usize) -> String {
    let name = format!("{} · {} · {}", cell.workload, cell.load, cell.contender);
    let name = visible(&name);
    if name.chars().count() <= longest {
        return name;
    }
    name.chars().take(longest - 1).chain(['…']).collect()
}

/// The operation that costs are per, in the singular.
pub fn per(summary: &Summary) -> String {
    visible(&summary.asked.cost_per.one)
}
