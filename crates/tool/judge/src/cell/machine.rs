//! The CPU that a contender's whole machine used for its requests: also interrupts and other processes, which are not
//! in the cost of its own processes.

#[cfg(test)]
mod tests;

use super::observed::CellRounds;
use crate::statistics::{is_known, pseudo_values, robust, student};
use regatta_record::{Estimate, Life, MachineFigures, MachineUse};

/// Standard deviation of a stretch of time whose ends are each rounded down to a step, as a fraction of the step: each
/// error is uniform, whatever the length.
const ROUNDED: f64 = 0.408_248_290_463_863;
/// So many standard deviations contain 95% of the errors of many stretches together, which are normal.
const WITHIN: f64 = 1.96;
/// A baseline that is so many standard deviations from the usual one was disturbed: by chance, 6 in 100,000 are.
const DISTURBED: f64 = 4.0;

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
    pub fn rest_ns(&self, alone: &Alone) -> f64 {
        self.used.busy_ns as f64 - alone.cpus * self.used.ns as f64 - self.cpu_ns
    }

    /// Interrupts beyond those of the machine alone, nanoseconds. An interrupt that hits a process is in that one's time,
    /// too, unless the kernel accounts for it.
    pub fn interrupts_ns(&self, alone: &Alone) -> f64 {
        self.used.interrupts_ns as f64 - alone.interrupts * self.used.ns as f64
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

/// What a machine does while no contender runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone {
    /// CPUs in use. By the steps, it may be below zero.
    pub cpus: f64,
    /// CPUs in interrupts.
    interrupts: f64,
    /// Errors of steps in all of the time that was measured, and that time in nanoseconds.
    spans: f64,
    ns: f64,
}

impl Alone {
    /// Over these lives, except those whose baseline was disturbed.
    pub fn of<'l>(lives: impl Iterator<Item = &'l OfLife>) -> Alone {
        let lives: Vec<OfLife> = lives.copied().collect();
        let undisturbed = undisturbed(&lives);
        let usual = lives.iter().zip(undisturbed).filter(|(_, is_usual)| *is_usual);
        Alone::sum(usual.map(|(life, _)| life))
    }

    fn sum<'l>(lives: impl Iterator<Item = &'l OfLife>) -> Alone {
        let mut all = MachineUse::default();
        lives.for_each(|life| all += life.alone);
        let ns = all.ns as f64;
        Alone {
            cpus: all.busy_ns as f64 / ns,
            interrupts: all.interrupts_ns as f64 / ns,
            spans: all.rounded(),
            ns,
        }
    }
}

/// Whether the baseline of each life is as that of most. A baseline is short, so another program that ran just then
/// would be subtracted from all lives.
fn undisturbed(lives: &[OfLife]) -> Vec<bool> {
    let cpus = |life: &OfLife| life.alone.busy_ns as f64 / life.alone.ns as f64;
    let Some((usual, deviation)) = robust(lives.iter().map(cpus).collect()) else {
        return Vec::new();
    };
    let is_usual = |life: &OfLife| {
        let steps = ROUNDED * MachineUse::STEP_NS * life.alone.rounded().sqrt();
        let deviation = deviation.max(steps / life.alone.ns as f64);
        (cpus(life) - usual).abs() <= DISTURBED * deviation
    };
    lives.iter().map(is_usual).collect()
}

/// What the machine of a contender did over some of its lives.
pub struct Machine {
    /// With whether the baseline of the life counts.
    lives: Vec<(OfLife, bool)>,
}

impl Machine {
    /// Over these lives.
    pub fn of(lives: Vec<OfLife>) -> Machine {
        let undisturbed = undisturbed(&lives);
        Machine { lives: lives.into_iter().zip(undisturbed).collect() }
    }

    fn alone(&self, without: Option<usize>) -> Alone {
        let usual = self.lives.iter().enumerate();
        let usual = usual.filter(|(nth, (_, is_usual))| *is_usual && Some(*nth) != without);
        Alone::sum(usual.map(|(_, (life, _))| life))
    }

    fn sum(&self, without: Option<usize>, of: impl Fn(&OfLife) -> f64) -> f64 {
        let kept = self.lives.iter().enumerate().filter(|(nth, _)| Some(*nth) != without);
        kept.map(|(_, (life, _))| of(life)).sum()
    }

    /// CPU per operation of all lives together, but one, nanoseconds.
    fn cost_ns(&self, without: Option<usize>) -> f64 {
        let alone = self.alone(without).cpus;
        let beyond = |life: &OfLife| life.used.busy_ns as f64 - alone * life.used.ns as f64;
        self.sum(without, beyond) / self.sum(without, OfLife::count)
    }

    /// CPU in interrupts per operation, nanoseconds.
    pub fn interrupts_ns(&self) -> f64 {
        let alone = self.alone(None);
        self.sum(None, |life| life.interrupts_ns(&alone)) / self.sum(None, OfLife::count)
    }

    /// Half-width of the 95% interval that the steps alone cause, nanoseconds per operation.
    pub fn steps_ns(&self) -> f64 {
        let alone = self.alone(None);
        // Those of the baseline count as often as it is subtracted.
        let times = self.sum(None, OfLife::ns) / alone.ns;
        let spans = self.sum(None, |life| life.used.rounded()) + alone.spans * times.powi(2);
        WITHIN * ROUNDED * MachineUse::STEP_NS * spans.sqrt() / self.sum(None, OfLife::count)
    }

    /// The jackknife's estimate over lives: the steps make a life alone too imprecise.
    fn cost(&self) -> Option<Estimate> {
        student(&pseudo_values(self.lives.len(), |without| self.cost_ns(without))?)
    }
}

/// The figure without the digits that an error of this size leaves no meaning to.
pub fn rounded(figure: f64, error: f64) -> f64 {
    let digit = error.log10().floor();
    // A whole power of ten, so that a decimal fraction stays one.
    let factor = 10_f64.powf(digit.abs());
    match digit {
        _ if !factor.is_finite() => figure,
        ..0.0 => (figure * factor).round() / factor,
        _ => (figure / factor).round() * factor,
    }
}

/// The same with an interval that is at least as wide as `half` on both sides.
fn widened(estimate: Estimate, half: f64) -> Estimate {
    let Estimate { mean, low, high } = estimate;
    Estimate { mean, low: low.min(mean - half), high: high.max(mean + half) }
}

/// The cost of the machine of `a` over that of `b`, in the lives that have both. `None`: not known.
pub fn ratio(a: &[Option<OfLife>], b: &[Option<OfLife>]) -> Option<Estimate> {
    let both = a.iter().zip(b).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    let (a, b): (Vec<OfLife>, Vec<OfLife>) = both.unzip();
    let (a, b) = (Machine::of(a), Machine::of(b));
    // A total below zero has no logarithm, and then no ratio is known.
    let log = |without| a.cost_ns(without).ln() - b.cost_ns(without).ln();
    let logs = student(&pseudo_values(a.lives.len(), log)?)?;
    let steps = |of: &Machine| of.steps_ns() / of.cost_ns(None);
    let Estimate { mean, low, high } = widened(logs, steps(&a).hypot(steps(&b)));
    let [mean, low, high] = [mean, low, high].map(f64::exp);
    Some(Estimate { mean, low, high })
}

/// The figures of a cell; `None`: nothing is known of the machine.
pub fn figures(observed: &CellRounds) -> Option<MachineFigures> {
    let lives: Vec<OfLife> = lives(observed).into_iter().flatten().collect();
    if lives.is_empty() {
        return None;
    }
    let machine = Machine::of(lives);
    let steps_ns = machine.steps_ns();
    let cost = machine.cost().map(|cost| widened(cost, steps_ns));
    Some(MachineFigures {
        cost_ns_per_request: cost.filter(is_known),
        interrupts_ns_per_request: rounded(machine.interrupts_ns().max(0.0), steps_ns),
        cpus_alone: rounded(machine.alone(None).cpus.max(0.0), 0.001),
        steps_ns_per_request: rounded(steps_ns, steps_ns / 10.0),
    })
}
