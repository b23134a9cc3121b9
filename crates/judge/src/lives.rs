//! The lives of a duel at one load, read from its rounds.

use crate::{
    duel::{self, Analysis, Block, Estimates, Ratio},
    field::Field,
    observed::Observed,
    statistics::log,
};
use regatta_record::{DuelSeen, Slice, StateSeen};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The slices of all contenders at one load, compared by one figure. Contenders are known by their
/// index.
pub(crate) struct Duel {
    /// Index of the baseline.
    pub baseline: usize,
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
        let lives: Vec<duel::Life> = blocks(contenders)
            .into_iter()
            .map(|blocks| duel::Life {
                blocks: blocks.into_values().map(|block| compared(&block, &figure)).collect(),
            })
            .collect();
        if lives.iter().all(|life| life.blocks.is_empty()) {
            return None;
        }
        let analysis = Analysis::of(&duel::Field { lives: &lives, baseline, twin });
        let k = contenders.len();
        let pairs = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b)));
        let ratios = pairs.filter_map(|(a, b)| Some(((a, b), analysis.compare(a, b)?))).collect();
        Some(Duel { baseline, estimates: analysis.estimates(), ratios })
    }

    /// The ratio of contender `b` over contender `a`. `None` with fewer than 3 lives in common.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Ratio> {
        match a < b {
            true => self.ratios.get(&(a, b)).cloned(),
            false => self.ratios.get(&(b, a)).cloned().map(Ratio::reciprocal),
        }
    }
}

/// The slices of each life, by block and contender. A contender that was not in the heat of a life has
/// none in it.
pub(crate) fn blocks(contenders: &[Observed]) -> Vec<BTreeMap<u32, Vec<Option<Slice>>>> {
    let starts = contenders.iter().map(|o| o.lives.len()).max().unwrap_or(0);
    let mut lives = vec![BTreeMap::new(); starts];
    for (who, observed) in contenders.iter().enumerate() {
        for (blocks, life) in lives.iter_mut().zip(&observed.lives) {
            for slice in life.iter().flat_map(|life| &life.slices) {
                let block = blocks.entry(slice.block);
                block.or_insert_with(|| vec![None; contenders.len()])[who] = Some(*slice);
            }
        }
    }
    lives
}

fn compared(slices: &[Option<Slice>], figure: impl Fn(&Slice) -> Option<f64>) -> Block {
    let of = |slice: &Option<Slice>| figure(slice.as_ref()?).and_then(log);
    let position = |slice: &Option<Slice>| slice.map_or(0, |slice| slice.position);
    let stretch = slices.iter().flatten().map(|slice| slice.stretch).max();
    Block {
        logs: slices.iter().map(of).collect(),
        positions: slices.iter().map(position).collect(),
        stretch: f64::from(stretch.unwrap_or(1)),
    }
}

impl Field {
    /// What was seen of the machine at this load, and who was alive together; `None` if it was not raced
    /// in duels.
    pub fn duel_seen(&self) -> Option<DuelSeen> {
        let estimates = &self.duel.as_ref()?.estimates;
        let starts = self.contenders.iter().map(|o| o.lives.len()).max()?;
        let alive = |start: usize| -> BTreeSet<usize> {
            let lived = |o: &Observed| o.lives.get(start).is_some_and(Option::is_some);
            (0..self.contenders.len()).filter(|who| lived(&self.contenders[*who])).collect()
        };
        let lives: Vec<_> = (0..starts).map(alive).filter(|life| !life.is_empty()).collect();
        // A contender that failed is missing in later lives of its heat.
        let is_whole = |life: &&BTreeSet<usize>| {
            !lives.iter().any(|other| other.len() > life.len() && other.is_superset(life))
        };
        let heats: BTreeSet<&BTreeSet<usize>> = lives.iter().filter(is_whole).collect();
        let name = |who: &usize| self.contenders[*who].name.clone();
        let blocks: u32 = estimates.states.iter().map(|state| state.blocks).sum();
        let state = |state: &duel::State| StateSeen {
            factor: state.level.exp(),
            blocks: state.blocks,
            share: f64::from(state.blocks) / f64::from(blocks.max(1)),
        };
        Some(DuelSeen {
            load: self.load,
            heats: heats.into_iter().map(|heat| heat.iter().map(name).collect()).collect(),
            lives: lives.len() as u32,
            states: estimates.states.iter().map(state).collect(),
            left_out: estimates.straddled,
        })
    }
}
