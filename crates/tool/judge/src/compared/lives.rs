//! The lives of a duel at one load, read from its rounds.

use crate::{
    cell::observed::CellRounds,
    duel::{self, Analysis, Block, Estimates, Ratio},
    statistics::log,
};
use regatta_record::Slice;
use std::collections::{BTreeMap, HashMap};

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
    /// Compares contenders by their lives. `None` if there are no slices: the load is raced in rounds.
    pub fn of(field: &duel::Field) -> Option<Duel> {
        if field.lives.iter().all(|life| life.blocks.is_empty()) {
            return None;
        }
        let analysis = Analysis::of(field);
        let k = field.contenders();
        let pairs = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b)));
        let ratios = pairs.filter_map(|(a, b)| Some(((a, b), analysis.compare(a, b)?))).collect();
        Some(Duel { baseline: field.baseline, estimates: analysis.estimates(), ratios })
    }

    /// The ratio of contender `b` over contender `a`. `None` with fewer than 3 lives in common.
    pub fn ratio(&self, a: usize, b: usize) -> Option<Ratio> {
        match a < b {
            true => self.ratios.get(&(a, b)).cloned(),
            false => self.ratios.get(&(b, a)).cloned().map(Ratio::reciprocal),
        }
    }
}

/// The lives of all contenders, with the logarithm of `figure` of each slice.
pub(crate) fn lives(
    contenders: &[CellRounds],
    figure: impl Fn(&Slice) -> Option<f64>,
) -> Vec<duel::Life> {
    let life = |blocks: BTreeMap<u32, Vec<Option<Slice>>>| duel::Life {
        blocks: blocks.into_values().map(|block| compared(&block, &figure)).collect(),
    };
    blocks(contenders).into_iter().map(life).collect()
}

/// The slices of each life, by block and contender. A contender that was not in the heat of a life has
/// none in it.
pub(crate) fn blocks(contenders: &[CellRounds]) -> Vec<BTreeMap<u32, Vec<Option<Slice>>>> {
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
    let load = |slice: &Option<Slice>| {
        let slice = slice.as_ref().filter(|slice| slice.count > 0)?;
        log(slice.load_cpu_ns as f64 / slice.count as f64)
    };
    let others = |slice: &Option<Slice>| {
        let slice = slice.as_ref().filter(|slice| slice.ns > 0)?;
        Some(slice.rest_ns? as f64 / slice.ns as f64)
    };
    let position = |slice: &Option<Slice>| slice.map_or(0, |slice| slice.position);
    let stretch = slices.iter().flatten().map(|slice| slice.stretch).max();
    Block {
        logs: slices.iter().map(of).collect(),
        load: slices.iter().map(load).collect(),
        others: slices.iter().map(others).collect(),
        positions: slices.iter().map(position).collect(),
        stretch: f64::from(stretch.unwrap_or(1)),
    }
}
