//! The CPU that a contender's whole machine used for its requests: also interrupts and other processes, which are not
//! in the cost of its own processes.

use super::observed::CellRounds;
use crate::statistics::{Series, geometric, is_known, log, present};
use regatta_record::{Life, MachineFigures, MachineUse};

/// Standard deviation of a stretch of time whose ends are each rounded down to a step, as a fraction of the step: each
/// error is uniform, whatever the length.
const ROUNDED: f64 = 0.408_248_290_463_863;
/// So many standard deviations are not exceeded by chance (6 in 100,000 cells).
const DEVIATIONS: f64 = 4.0;

/// What the machine did in the slices of one life.
#[derive(Clone, Copy, Debug)]
pub struct OfLife {
    used: MachineUse,
    alone: MachineUse,
    count: f64,
    cpu_ns: f64,
}

impl OfLife {
    /// `None`: it is not known for each of its slices, or it had none.
    fn of(life: &Life) -> Option<OfLife> {
        let sum = |of: fn(&regatta_record::Slice) -> u64| life.slices.iter().map(of).sum::<u64>();
        let used = life.machine.filter(|used| used.spans == life.slices.len() as u64)?;
        let alone = life.machine_alone.filter(|alone| alone.ns > 0)?;
        let (count, cpu_ns) = (sum(|slice| slice.count) as f64, sum(|slice| slice.cpu_ns) as f64);
        (count > 0.0).then_some(OfLife { used, alone, count, cpu_ns })
    }

    /// CPU beyond the contender's own processes and what the machine uses alone, nanoseconds.
    pub fn rest_ns(&self, alone: f64) -> f64 {
        self.used.busy_ns as f64 - alone * self.used.ns as f64 - self.cpu_ns
    }

    /// The part of that which is not in interrupts, nanoseconds: other processes.
    pub fn others_ns(&self, alone: f64) -> f64 {
        self.rest_ns(alone) - self.used.interrupts_ns as f64
    }

    /// Verified operations.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Time in slices, nanoseconds.
    pub fn ns(&self) -> f64 {
        self.used.ns as f64
    }
}

/// By pass: what the machine of a contender did; `None`: not known.
pub fn lives(observed: &CellRounds) -> Vec<Option<OfLife>> {
    observed.lives.iter().map(|life| life.as_ref().and_then(OfLife::of)).collect()
}

/// How many CPUs the machine uses while no contender runs, over these lives. Not below zero.
pub fn alone<'l>(lives: impl Iterator<Item = &'l OfLife>) -> f64 {
    let (busy, ns) = lives.fold((0.0, 0.0), |(busy, ns), life| {
        (busy + life.alone.busy_ns as f64, ns + life.alone.ns as f64)
    });
    if ns > 0.0 { (busy / ns).max(0.0) } else { 0.0 }
}

/// CPU of the machine per operation by pass, nanoseconds: what each life contributes to that of all together, which is
/// precise where a life alone is not (the jackknife's pseudo-values: Tukey 1958). `None`: the life has none.
pub fn costs(lives: &[Option<OfLife>]) -> Vec<Option<f64>> {
    let n = lives.iter().flatten().count();
    let cost = |without: Option<usize>| {
        let kept = || {
            let all = lives.iter().enumerate().filter(|(nth, _)| Some(*nth) != without);
            all.filter_map(|(_, life)| life.as_ref())
        };
        let alone = alone(kept());
        let ns: f64 =
            kept().map(|life| life.used.busy_ns as f64 - alone * life.used.ns as f64).sum();
        ns / kept().map(|life| life.count).sum::<f64>()
    };
    let all = cost(None);
    let of_life = |(nth, life): (usize, &Option<OfLife>)| {
        life.filter(|_| n > 1)?;
        Some(n as f64 * all - (n as f64 - 1.0) * cost(Some(nth)))
    };
    lives.iter().enumerate().map(of_life).collect()
}

/// Their logarithms. Empty, if one of them is not above zero: then the figure is not known.
pub fn log_costs(observed: &CellRounds) -> Series {
    let costs = costs(&lives(observed));
    let is_positive = costs.iter().flatten().all(|cost| *cost > 0.0);
    if is_positive {
        costs.into_iter().map(|cost| cost.and_then(log)).collect()
    } else {
        Vec::new()
    }
}

/// The figures of a cell; `None`: nothing is known of the machine.
pub fn figures(observed: &CellRounds, seed: u64) -> Option<MachineFigures> {
    let lives = lives(observed);
    let known = || lives.iter().flatten();
    let count: f64 = known().map(|life| life.count).sum();
    if count == 0.0 {
        return None;
    }
    let sum = |of: &dyn Fn(&OfLife) -> f64| known().map(of).sum::<f64>();
    let of_alone = sum(&|life| life.alone.interrupts_ns as f64) / sum(&|life| life.alone.ns as f64);
    let interrupts = sum(&|life| life.used.interrupts_ns as f64 - of_alone * life.used.ns as f64);
    // Those of the baseline count as often as it is subtracted.
    let parts = sum(&|life| life.used.ns as f64) / sum(&|life| life.alone.ns as f64);
    let spans = sum(&|life| life.used.spans as f64 + life.alone.spans as f64 * parts.powi(2));
    let cost = geometric(&present(&log_costs(observed)), seed);
    Some(MachineFigures {
        cost_ns_per_request: cost.filter(is_known),
        interrupts_ns_per_request: interrupts.max(0.0) / count,
        cpus_alone: alone(known()),
        steps_ns_per_request: DEVIATIONS * ROUNDED * MachineUse::STEP_NS * spans.sqrt() / count,
    })
}
