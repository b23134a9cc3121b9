//! All contenders at one load, read from their rounds.

use crate::{
    observed::Observed,
    parallel::in_parallel,
    statistics::{Control, Series, mean, paired},
    took::below_floor,
    verdict::{self, Conditions},
};
use regatta_record::{Asked, CpuSets, Figure, LoadShape, NULL, Round, Verdict};
use std::collections::{BTreeSet, HashMap};

/// Minimum margin within which two costs are tied (method, rule 3), as a fraction.
pub const TIE_MARGIN: f64 = 0.02;

/// All contenders at one load.
pub(crate) struct Field {
    pub load: LoadShape,
    /// The CPUs that server and load had to share; empty if none.
    pub shared: Vec<u32>,
    /// The CPUs of the server and of the load.
    pub cpus: CpuSets,
    /// The adjustment for the machine probe, if the probe explained enough.
    pub control: Option<Control>,
    /// In the planned order.
    pub contenders: Vec<Observed>,
}

/// Assigns the rounds to their cells; all cells use the same list of passes.
pub(crate) fn observe(asked: &Asked, rounds: &[Round]) -> Vec<Field> {
    let by_cell: HashMap<(&str, LoadShape, u32), &Round> =
        rounds.iter().map(|r| ((r.contender.as_str(), r.load, r.round), r)).collect();
    let passes: BTreeSet<u32> = rounds.iter().map(|r| r.round).collect();
    let cell = |load: LoadShape, name: &String| {
        let rounds = passes.iter().map(|&p| by_cell.get(&(name.as_str(), load, p)).copied());
        let skipped =
            asked.entries.iter().find(|e| e.name == *name).and_then(|e| e.skipped.clone());
        Observed::of(name, skipped, &rounds.collect::<Vec<_>>(), asked)
    };
    asked
        .loads
        .iter()
        .map(|&load| {
            let mut contenders = in_parallel(&asked.contenders, |name| cell(load, name));
            let control = adjust_for_machine(&mut contenders);
            let shared = match asked.cpus.are_shared(&load) {
                true => asked.cpus.of_load(&load),
                false => Vec::new(),
            };
            Field { load, shared, cpus: asked.cpus.clone(), control, contenders }
        })
        .collect()
}

/// Adjusts costs for the state of the machine, where the probe explains it.
pub(crate) fn adjust_for_machine(contenders: &mut [Observed]) -> Option<Control> {
    let seen: Vec<_> = contenders.iter().map(|o| (&o.cost, &o.probe)).collect();
    let control = Control::of(&seen)?;
    for observed in contenders {
        observed.compared = control.adjusted(&observed.cost, &observed.probe);
    }
    Some(control)
}

impl Field {
    pub fn of(&self, contender: &str) -> Option<&Observed> {
        self.contenders.iter().find(|o| o.name == contender)
    }

    /// Logarithms of a contender's cost as compared, unless its verdict voids them.
    pub fn cost(&self, contender: &str) -> Option<Series> {
        let observed = self.of(contender)?;
        (!self.verdict(observed).voids(Figure::Cost)).then(|| observed.compared.clone())
    }

    /// `ln(a/b)` of the costs of two contenders by pass, adjusted for the machine probe.
    pub fn log_ratios(&self, a: &str, b: &str) -> Vec<f64> {
        match (self.of(a), self.of(b)) {
            (Some(a), Some(b)) => paired(&a.compared, &b.compared),
            _ => Vec::new(),
        }
    }

    pub fn verdict(&self, observed: &Observed) -> Verdict {
        let (load, shared, headroom) = (&self.load, &self.shared[..], self.headroom(observed));
        let null = self.of(NULL).map_or(&[][..], |null| &null.took);
        let below_floor = below_floor(&observed.took, null, load);
        let cpus = &self.cpus;
        verdict::verdict(observed, Conditions { load, shared, headroom, below_floor, cpus })
    }

    /// Rate of the null server over this one's in the same rounds; `None` for the null server
    /// itself, without common rounds, at a requested rate, and on shared CPUs.
    pub fn headroom(&self, observed: &Observed) -> Option<f64> {
        if self.load.drive.rate().is_some() || !self.shared.is_empty() {
            return None;
        }
        let null = self.of(NULL).filter(|_| observed.name != NULL)?;
        mean(&paired(&null.rate, &observed.rate)).map(f64::exp)
    }
}
