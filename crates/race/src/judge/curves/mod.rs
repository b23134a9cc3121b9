//! What the cells say together, where loads differ in a single number: the rate (`rate`, `knee`),
//! the silent connections (`idle`), the connections or the cores (`scalability`). This file sorts the
//! cells to their curves.

mod idle;
mod knee;
mod rate;
mod scalability;
mod straight;

use super::{Field, observed::Observed};
use regatta_record::{Asked, Cell, Curve, LoadShape};

/// Fewest points of a curve that a line is laid through.
const POINTS: usize = 3;

/// All curves: by what they are over, then by load and contender in the order asked. The twin has
/// none: it is there for the noise.
pub(super) fn curves(asked: &Asked, fields: &[Field], cells: &[Cell]) -> Vec<Curve> {
    let twin = asked.twin();
    let mut curves = Vec::new();
    for axis in [Axis::Rate, Axis::Connections, Axis::Idle, Axis::Cores] {
        for fields in axis.sweeps(asked, fields) {
            for name in asked.contenders.iter().filter(|name| Some(*name) != twin.as_ref()) {
                let places: Vec<Place> =
                    fields.iter().filter_map(|(n, f)| Place::of(*n, f, name, cells)).collect();
                if places.len() < axis.least() {
                    continue;
                }
                let (over, doubts) = match axis {
                    Axis::Rate => rate::over(asked, &places),
                    Axis::Idle => idle::over(asked, &places),
                    _ => scalability::over(asked, &places, axis),
                };
                curves.push(Curve {
                    contender: name.clone(),
                    load: places[0].cell.load,
                    over,
                    doubt: (!doubts.is_empty()).then(|| doubts.join("; ")),
                });
            }
        }
    }
    curves
}

/// A point of a curve: a cell with figures.
struct Place<'a> {
    /// Rate asked for, connections or cores.
    n: u32,
    cell: &'a Cell,
    observed: &'a Observed,
}

impl<'a> Place<'a> {
    fn of(n: u32, field: &'a Field, contender: &str, cells: &'a [Cell]) -> Option<Self> {
        let is_it = |c: &&Cell| c.load == field.load && c.contender == contender && c.rounds > 0;
        Some(Place { n, cell: cells.iter().find(is_it)?, observed: field.of(contender)? })
    }
}

/// The figures of each pass in which all of `places` have one.
fn by_pass<T>(places: &[&Place], figure: impl Fn(&Place, usize) -> Option<T>) -> Vec<Vec<T>> {
    let passes = places.iter().map(|place| place.observed.rate.len()).min().unwrap_or(0);
    let of_pass = |pass| places.iter().map(|place| figure(place, pass)).collect();
    (0..passes).filter_map(of_pass).collect()
}

/// The number in which the loads of a curve differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Rate,
    Connections,
    Idle,
    Cores,
}

impl Axis {
    /// Fewest points.
    fn least(self) -> usize {
        match self {
            Axis::Rate | Axis::Idle => POINTS,
            Axis::Connections | Axis::Cores => scalability::POINTS,
        }
    }

    /// What stands for the number in words.
    fn unit(self) -> &'static str {
        match self {
            Axis::Rate => "/s",
            Axis::Connections => "conn",
            Axis::Idle => "idle",
            Axis::Cores => "cores",
        }
    }

    /// The number under a load; `None` where the load belongs to no curve of this kind.
    fn number(self, asked: &Asked, load: &LoadShape) -> Option<u32> {
        let closed = load.rate.is_none() && !load.is_counted() && !asked.cpus.are_shared(load);
        match self {
            Axis::Rate => load.rate.filter(|_| load.beside.is_none()),
            Axis::Connections => closed.then_some(load.connections),
            Axis::Idle => closed.then_some(load.idle),
            Axis::Cores => closed.then(|| asked.cpus.of_server(load).len() as u32),
        }
    }

    /// The load without the number.
    fn rest(self, load: &LoadShape) -> LoadShape {
        match self {
            Axis::Rate => LoadShape { rate: None, ..*load },
            Axis::Connections => LoadShape { connections: 0, ..*load },
            Axis::Idle => LoadShape { idle: 0, ..*load },
            Axis::Cores => LoadShape { cores: None, ..*load },
        }
    }

    /// The loads that differ in this number alone, in its rising order, where there are enough.
    fn sweeps<'a>(self, asked: &Asked, fields: &'a [Field]) -> Vec<Vec<(u32, &'a Field)>> {
        let mut sweeps: Vec<Vec<(u32, &Field)>> = Vec::new();
        for field in fields {
            let Some(n) = self.number(asked, &field.load) else { continue };
            let rest = self.rest(&field.load);
            match sweeps.iter_mut().find(|sweep| self.rest(&sweep[0].1.load) == rest) {
                Some(sweep) if sweep.iter().any(|(other, _)| *other == n) => {}
                Some(sweep) => sweep.push((n, field)),
                None => sweeps.push(vec![(n, field)]),
            }
        }
        sweeps.retain(|sweep| sweep.len() >= self.least());
        sweeps.iter_mut().for_each(|sweep| sweep.sort_by_key(|(n, _)| *n));
        sweeps
    }
}

/// Departure from a fitted curve, as a fraction, that is worth a word.
const BENT: f64 = 0.10;

/// Where a fitted curve is farthest from the means that were measured, and by which fraction of it;
/// `None` where that is not worth a word.
fn farthest(
    points: impl Iterator<Item = (u32, f64)>,
    fitted: impl Fn(f64) -> f64,
) -> Option<(u32, String)> {
    let departures = points.map(|(n, measured)| (n, measured / fitted(n.into()) - 1.0));
    let (n, by) = departures.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
    let side = if by > 0.0 { "above" } else { "below" };
    (by.abs() > BENT).then(|| (n, format!("{:.0}% {side}", by.abs() * 100.0)))
}

/// `1, 4, 16`.
fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
}
