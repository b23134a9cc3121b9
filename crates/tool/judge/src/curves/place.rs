//! The points of a curve, and which loads belong to one.

use crate::{cell::observed::CellRounds, compared::field::Field};
use regatta_record::{Arrivals, Asked, Cell, Drive, LoadShape};
use std::num::NonZeroU32;

/// Minimum number of points for a line.
pub(super) const POINTS: usize = 3;

/// Minimum number of points for the scalability law, which has three coefficients.
pub(super) const POINTS_OF_LAW: usize = 4;

/// A point of a curve: a cell with figures.
pub(super) struct CurvePoint<'a> {
    /// Requested rate, connections, silent connections or cores.
    pub n: u32,
    pub cell: &'a Cell,
    pub observed: &'a CellRounds,
}

impl<'a> CurvePoint<'a> {
    pub fn of(n: u32, field: &'a Field, contender: &str, cells: &'a [Cell]) -> Option<Self> {
        let is_it = |c: &&Cell| c.load == field.load && c.contender == contender && c.rounds > 0;
        Some(CurvePoint { n, cell: cells.iter().find(is_it)?, observed: field.of(contender)? })
    }

    /// Whether the server received the rate and kept up with it.
    pub fn is_held(&self) -> bool {
        let arrivals = self.cell.load.drive.arrivals().unwrap_or_default();
        self.observed.at_rate(self.n, arrivals).is_held()
    }
}

/// The figures of each pass in which all of `places` have one.
pub(super) fn by_pass<T>(
    places: &[&CurvePoint],
    figure: impl Fn(&CurvePoint, usize) -> Option<T>,
) -> Vec<Vec<T>> {
    let passes = places.iter().map(|place| place.observed.rate.len()).min().unwrap_or(0);
    let of_pass = |pass| places.iter().map(|place| figure(place, pass)).collect();
    (0..passes).filter_map(of_pass).collect()
}

/// The number in which the loads of a curve differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Rate,
    Connections,
    Idle,
    Cores,
}

impl Axis {
    /// Minimum number of points.
    pub fn least(self) -> usize {
        match self {
            Axis::Rate | Axis::Idle => POINTS,
            Axis::Connections | Axis::Cores => POINTS_OF_LAW,
        }
    }

    /// The unit of the number.
    pub fn unit(self) -> &'static str {
        match self {
            Axis::Rate => "/s",
            Axis::Connections => "conn",
            Axis::Idle => "idle",
            Axis::Cores => "cores",
        }
    }

    /// The number of a load; `None` if the load belongs to no curve of this kind.
    fn number(self, asked: &Asked, load: &LoadShape) -> Option<u32> {
        let closed = match load.drive {
            Drive::Closed | Drive::Bounded { .. } | Drive::Churn => {
                load.requests.is_none() && !asked.cpus.are_shared(load)
            }
            Drive::Open { .. } | Drive::Burst(_) => false,
        };
        match self {
            Axis::Rate => load.drive.rate().map(NonZeroU32::get).filter(|_| load.beside.is_none()),
            Axis::Connections => closed.then_some(load.connections),
            Axis::Idle => closed.then_some(load.idle),
            Axis::Cores => closed.then(|| asked.cpus.of_server(load).len() as u32),
        }
    }

    /// The load without the number. At a rate, the remaining part of the drive is the arrivals.
    fn rest(self, load: &LoadShape) -> (LoadShape, Option<Arrivals>) {
        let rest = match self {
            Axis::Rate => LoadShape { drive: Drive::Closed, ..*load },
            Axis::Connections => LoadShape { connections: 0, ..*load },
            Axis::Idle => LoadShape { idle: 0, ..*load },
            Axis::Cores => LoadShape { cores: None, ..*load },
        };
        (rest, load.drive.arrivals())
    }

    /// The groups of loads that differ only in this number, in ascending order, if there are
    /// enough.
    pub fn sweeps<'a>(self, asked: &Asked, fields: &'a [Field]) -> Vec<Vec<(u32, &'a Field)>> {
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

/// Smallest reported departure from a fitted curve, as a fraction.
const BENT: f64 = 0.10;

/// Where the measured means depart farthest from a fitted curve, and by which fraction of it;
/// `None` if the departure is too small to report.
pub(super) fn farthest(
    points: impl Iterator<Item = (u32, f64)>,
    fitted: impl Fn(f64) -> f64,
) -> Option<(u32, String)> {
    let departures = points.map(|(n, measured)| (n, measured / fitted(n.into()) - 1.0));
    let (n, by) = departures.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
    let side = if by > 0.0 { "above" } else { "below" };
    (by.abs() > BENT).then(|| (n, format!("{:.0}% {side}", by.abs() * 100.0)))
}

/// `1, 4, 16`.
pub(super) fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
}
