//! The verdict on a cell (method, rule 7): kind, cause with figures, remedy.
//!
//! `own_work` checks that the figures are the contender's own, `used` says how busy the CPUs
//! were, `bottleneck` which side was the limit; `open` judges an open loop, `noise` the machine; `remedy` spells out
//! what to type. This
//! file combines their findings.

mod bottleneck;
mod noise;
mod open;
mod own_work;
mod remedy;
mod used;

pub use bottleneck::bottleneck;
pub use noise::{STEAL, disturbed};
pub use open::AtRate;
pub use remedy::Remedy;
pub use used::{BUSY, Used, WAITED};

use crate::cell::little;
use crate::cell::network;
use crate::cell::observed::CellRounds;
use crate::cell::signals::Signals;
use crate::statistics::{mean, present};
use bottleneck::{by_network, of_burst};
use noise::drifting;
pub use open::HELD;
use regatta_record::{
    Arrivals, Cause, CellFinding, CpuSets, Drive, Figure, Kind, LoadShape, Verdict,
};
use std::num::NonZeroU32;

/// The conditions under which a cell was measured.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The load.
    pub load: &'a LoadShape,
    /// The CPUs that server and load had to share; empty if none.
    pub shared: &'a [u32],
    /// The null server's rate over this one's, if it is known and meaningful
    /// ([`crate::compared::field::Field::headroom`]).
    pub headroom: Option<f64>,
    /// Its cost as a fraction of the null server's, where that is impossibly low.
    pub below_floor: Option<f64>,
    /// The CPUs of the server and of the load.
    pub cpus: &'a CpuSets,
    /// The usual signals of the machine, if contenders took turns.
    pub usual: Signals,
}

/// Judges a cell.
///
/// The first finding names the verdict; the others add their voids.
pub fn verdict(observed: &CellRounds, conditions: Conditions<'_>) -> Verdict {
    if let Some(settled) = &observed.settled {
        return settled.clone();
    }
    if observed.finished == 0 {
        return Verdict::new(Kind::Skipped, "no round was run yet")
            .with_remedy("`regatta race --resume` continues an interrupted race");
    }
    let own_work = own_work::findings(observed, conditions.below_floor);
    let measured = as_measured(observed, conditions);
    // On shared CPUs each side waits for the other.
    let in_flight = little::in_flight(conditions.load, observed);
    let in_flight = in_flight.filter(|_| conditions.shared.is_empty());
    together(own_work.chain([measured]).chain(in_flight))
}

/// Judges the measurement, assuming that it is the contender's own work.
fn as_measured(observed: &CellRounds, conditions: Conditions<'_>) -> Verdict {
    let Conditions { load: shape, shared, headroom, cpus, usual, .. } = conditions;
    let remedy = Remedy::Race { cpus, load: shape };
    let (server, load) = (observed.server(), observed.load());
    if !shared.is_empty() && server.is_some() {
        return of_shared(observed, conditions);
    }
    let steal = observed.signals.steal;
    match shape.drive {
        Drive::Burst(_) => return of_burst(server, load, remedy),
        Drive::Open { rate, arrivals } if server.is_some() => {
            // The lag shows how long the load waited, and voids only what it spoiled.
            let noise = disturbed(steal, server, None, usual, remedy);
            let at_rate = observed.at_rate(rate.get(), arrivals).verdict(load, remedy);
            let verdict = together(noise.chain([at_rate]));
            return match shape.beside {
                Some(_) => with_beside(verdict, observed),
                None => verdict,
            };
        }
        Drive::Open { .. } | Drive::Closed | Drive::Bounded { .. } | Drive::Churn => {}
    }
    let limit = bottleneck(server, load, headroom, remedy);
    let limit = by_network(limit, server, load, network::full(observed));
    if shape.requests.is_some() {
        // It connects first, and its connections finish one by one: there is no steady rate that
        // could drift.
        let noise = disturbed(steal, server, load, usual, remedy);
        return together(noise.chain([limit]));
    }
    // On shared CPUs, each side waits for the other.
    let noise = disturbed(steal, server, load.filter(|_| shared.is_empty()), usual, remedy);
    together(drifting(observed, usual).into_iter().chain(noise).chain([limit]))
}

/// Voids the cost: the server's CPU was also spent on the load beside, so the cost of one request
/// is not known.
fn with_beside(mut verdict: Verdict, observed: &CellRounds) -> Verdict {
    let large = mean(&present(&observed.beside)).map_or(0.0, f64::exp);
    if !verdict.void.contains(&Figure::Cost) {
        verdict.void.push(Figure::Cost);
    }
    let cause = Cause::AlsoAnswered { beside_per_s: large };
    verdict.findings.push(CellFinding::new(verdict.kind(), cause));
    verdict
}

/// Combines several verdicts into one: the first names it, the others add their findings and voids.
///
/// # Panics
/// If there are no findings.
pub fn together(mut findings: impl Iterator<Item = Verdict>) -> Verdict {
    let first = findings.next().expect("the limit is always found");
    findings.fold(first, |mut verdict, next| {
        let new: Vec<Figure> =
            next.void.iter().filter(|f| !verdict.void.contains(f)).copied().collect();
        verdict.void.extend(new);
        verdict.findings.extend(next.findings);
        verdict
    })
}

/// The verdict where server and load shared CPUs: then neither side can be found to be the limit.
fn of_shared(observed: &CellRounds, conditions: Conditions<'_>) -> Verdict {
    let Conditions { load, shared, cpus, .. } = conditions;
    let at_rate =
        |rate: NonZeroU32| observed.at_rate(rate.get(), load.drive.arrivals().unwrap_or_default());
    let at_rate = load.drive.rate().map(at_rate).filter(|at_rate| !at_rate.is_held());
    let missed = at_rate.map(|at_rate| at_rate.missed());
    let cause = Cause::Shared { shared_cpus: shared.to_vec(), missed };
    if missed.is_none() {
        return Verdict::new(Kind::CostOnly, cause);
    }
    let remedy = Remedy::Race { cpus, load };
    // Costs at unequal rates cannot be compared.
    let void = vec![Figure::Cost, Figure::Rate, Figure::Latency];
    let verdict = Verdict::new(Kind::Overloaded, cause).with_remedy(remedy.more_for_server());
    Verdict { void, ..verdict }
}

impl CellRounds {
    fn server(&self) -> Option<Used> {
        let (fraction, cpus) = (self.server_busy?, self.cpus.0);
        let waited = self.signals.server_waited;
        Some(Used { fraction, cpus, busiest_thread: self.busiest_thread, spun: 0.0, waited })
    }

    fn load(&self) -> Option<Used> {
        let (fraction, cpus) = (self.load_busy?, self.cpus.1);
        let spun = self.load_spun.unwrap_or(0.0);
        let waited = self.signals.load_waited;
        Some(Used { fraction, cpus, busiest_thread: None, spun, waited })
    }

    /// Mean over rounds.
    fn answered_per_s(&self) -> Option<f64> {
        mean(&present(&self.rate)).map(f64::exp)
    }

    /// The figures of an open loop at the rate `asked`.
    pub fn at_rate(&self, asked: u32, arrivals: Arrivals) -> AtRate<'_> {
        AtRate {
            asked,
            arrivals,
            answered: self.answered_per_s().unwrap_or(0.0),
            open_loop: self.latencies.open_loop.as_ref(),
            latency: &self.latencies.all,
            rounds: self.finished,
            server: self.server(),
        }
    }
}
