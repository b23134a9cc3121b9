//! The lives of a duel at one load, read from its rounds.

use crate::{
    duel::{self, Analysis, Block, Estimates, Ratio},
    observed::Observed,
    statistics::log,
};
use regatta_record::Slice;
use std::collections::{BTreeMap, HashMap};

/// The slices of all contenders at one load, compared by one figure. Contenders are known by their
/// index.
pub(crate) struct Duel {
    /// The states of the machine, and the ratios to the baseline.
    pub estimates: Estimates,
    /// The ratio of the second over the first, for all pairs in ascending order.
    ratios: HashMap<(usize, usize), Ratio>,
}

impl Duel {
    /// Compares contenders by `figure` of their slices. `None` if there are no slices: the load is raced
    /// in rounds. The twin, if any, is that of the baseline.
    pub fn of(
        contenders: &[Observed],
        baseline: usize,
        twin: Option<usize>,
        figure: impl Fn(&Slice) -> Option<f64>,
    ) -> Option<Duel> {
        let lives = lives(contenders, figure);
        if lives.iter().all(|life| life.blocks.is_empty()) {
            return None;
        }
        let analysis = Analysis::of(&duel::Field { lives: &lives, baseline, twin });
        let k = contenders.len();
        let pairs = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b)));
        let ratios = pairs.filter_map(|(a, b)| Some(((a, b), analysis.compare(a, b)?))).collect();
        Some(Duel { estimates: analysis.estimates(), ratios })
    }

    /// The ratio of contender `b` over contender `a`. `None` with fewer than 3 lives in common.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Ratio> {
        match a < b {
            true => self.ratios.get(&(a, b)).cloned(),
            false => self.ratios.get(&(b, a)).cloned().map(Ratio::reciprocal),
        }
    }
}

/// The lives, in order. A contender that was not in the heat of a life has no slice in it.
fn lives(contenders: &[Observed], figure: impl Fn(&Slice) -> Option<f64>) -> Vec<duel::Life> {
    let k = contenders.len();
    let starts = contenders.iter().map(|o| o.lives.len()).max().unwrap_or(0);
    let of_start = |start: usize| {
        let mut blocks: BTreeMap<u32, Block> = BTreeMap::new();
        for (who, observed) in contenders.iter().enumerate() {
            let life = observed.lives.get(start).and_then(Option::as_ref);
            for slice in life.into_iter().flat_map(|life| &life.slices) {
                let stretch = f64::from(slice.stretch);
                let none = || Block { logs: vec![None; k], positions: vec![0; k], stretch };
                let block = blocks.entry(slice.block).or_insert_with(none);
                block.logs[who] = figure(slice).and_then(log);
                block.positions[who] = slice.position;
            }
        }
        duel::Life { blocks: blocks.into_values().collect() }
    };
    (0..starts).map(of_start).collect()
}
