//! The states of the machine, the state of each block, and the blocks that are left out.

use super::{
    busy::{LEAST_SHARE, beside_others},
    clusters::groups,
    field::Field,
    levels::levels,
};
use crate::statistics::{median, robust};
use regatta_record::ContendedBlocks;

/// Maximum number of states.
const MOST_STATES: usize = 3;
/// Least distance between the levels of two states: 5%.
pub(super) const LEAST_APART: f64 = 0.05;
/// Least distance between the levels of two states, in standard deviations within them. A split of
/// evenly spread levels, e.g. of a drift, reaches 3.5; that of normal ones 2.7.
const LEAST_DEVIATIONS: f64 = 5.0;

/// A state of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// How much more a request costs than in the least expensive state, as a logarithm: the median
    /// over the blocks of a middle value over contenders.
    pub level: f64,
    /// Number of blocks in it, without those left out.
    pub blocks: u32,
}

/// The blocks of a field by state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct States {
    /// The states, the least expensive first.
    pub states: Vec<State>,
    /// The state of each block, by life. `None` if it is left out or has no valid slice.
    pub of: Vec<Vec<Option<usize>>>,
    /// The same, before blocks were left out.
    pub all: Vec<Vec<Option<usize>>>,
    /// Number of blocks left out because the machine changed in them.
    pub straddled: u32,
    /// The blocks beside which other programs ran.
    pub busy: Option<ContendedBlocks>,
    /// Their index in `of` and `all`, if they are kept apart. It is none of `states`.
    pub beside: Option<usize>,
}

impl States {
    /// Assigns the blocks of a field to states.
    ///
    /// The number of states is the largest, up to three, at which all levels are far apart (5%, and
    /// 5 standard deviations within a state) and the machine stays in each state: at least half of
    /// its blocks have a neighbour in the same state. So blocks in which the machine changed, which
    /// have all levels between two states, are no state.
    ///
    /// The blocks beside which other programs ran are kept apart, if enough others remain: see
    /// [`beside_others`].
    ///
    /// Left out are both blocks around a change of state within a life. The machine changed in one of them
    /// or between them. Only levels decide, which no single contender can move, so this cannot favour any of
    /// them; and it costs little, because blocks are many and lives few.
    pub fn of(field: &Field) -> States {
        let mut levels = levels(field);
        let (mut marked, busy) = beside_others(field);
        let is_apart = busy.is_some_and(|busy| busy.apart);
        for (level, is_busy) in levels.iter_mut().flatten().zip(marked.iter_mut().flatten()) {
            *is_busy &= is_apart && level.is_some();
            *level = level.filter(|_| !*is_busy);
        }
        let mut ascending: Vec<f64> = levels.iter().flatten().flatten().copied().collect();
        ascending.sort_by(f64::total_cmp);
        let (centres, mut of) = (2..=MOST_STATES)
            .rev()
            .filter_map(|count| {
                let centres = separate(&ascending, count)?;
                let of = nearest(&levels, &centres);
                (0..count).all(|state| stays(&of, state)).then_some((centres, of))
            })
            .next()
            .unwrap_or_else(|| {
                let centre = median(ascending.clone()).unwrap_or(0.0);
                (vec![centre], nearest(&levels, &[centre]))
            });
        let changed = around_changes(&of);
        let mut all = of.clone();
        for (life, changed) in of.iter_mut().zip(&changed) {
            for (state, changed) in life.iter_mut().zip(changed) {
                *state = state.filter(|_| !changed);
            }
        }
        let blocks =
            |state: usize| of.iter().flatten().filter(|s| **s == Some(state)).count() as u32;
        let states = centres.iter().enumerate();
        let states =
            states.map(|(i, c)| State { level: c - centres[0], blocks: blocks(i) }).collect();
        let straddled = count(&all) - count(&of);
        let beside = is_apart.then_some(centres.len());
        for blocks in [&mut of, &mut all] {
            let blocks = blocks.iter_mut().flatten().zip(marked.iter().flatten());
            blocks.filter(|(_, is_busy)| **is_busy).for_each(|(state, _)| *state = beside);
        }
        States { states, straddled, of, all, busy, beside }
    }

    /// The states, in the order in which ratios should be of them: the least expensive first, in which the machine
    /// is least disturbed, but those with less than a quarter of the blocks last. A ratio of few blocks, e.g. 18 of
    /// 222, gets hardly narrower while the race goes on.
    pub fn preferred(&self) -> Vec<usize> {
        let all: u32 = self.states.iter().map(|state| state.blocks).sum();
        let is_rare =
            |state: &usize| f64::from(self.states[*state].blocks) < LEAST_SHARE * f64::from(all);
        let (rare, common): (Vec<_>, Vec<_>) = (0..self.states.len()).partition(is_rare);
        [common, rare].concat()
    }
}

/// Number of blocks with a state.
fn count(of: &[Vec<Option<usize>>]) -> u32 {
    of.iter().flatten().flatten().count() as u32
}

/// The median levels of `count` groups, if they are far enough apart.
fn separate(ascending: &[f64], count: usize) -> Option<Vec<f64>> {
    let groups = groups(ascending, count)?;
    let described: Vec<(f64, f64)> = groups
        .iter()
        .map(|range| robust(ascending[range.clone()].to_vec()))
        .collect::<Option<_>>()?;
    let apart = described.windows(2).all(|pair| {
        let [(low, within_low), (high, within_high)] = [pair[0], pair[1]];
        high - low >= LEAST_APART.max(LEAST_DEVIATIONS * within_low.max(within_high))
    });
    apart.then(|| described.into_iter().map(|(centre, _)| centre).collect())
}

/// The state of each block: the one with the nearest level.
fn nearest(levels: &[Vec<Option<f64>>], centres: &[f64]) -> Vec<Vec<Option<usize>>> {
    let state = |level: f64| {
        let away = |i: &usize| (centres[*i] - level).abs();
        (0..centres.len()).min_by(|a, b| away(a).total_cmp(&away(b)))
    };
    levels.iter().map(|life| life.iter().map(|level| level.and_then(state)).collect()).collect()
}

/// Whether at least half of the blocks of a state have a neighbour in it.
fn stays(of: &[Vec<Option<usize>>], state: usize) -> bool {
    let (mut all, mut beside) = (0, 0);
    for life in of {
        for (i, _) in life.iter().enumerate().filter(|(_, s)| **s == Some(state)) {
            all += 1;
            let is_here =
                |i: Option<usize>| i.and_then(|i| life.get(i)).is_some_and(|s| *s == Some(state));
            beside += usize::from(is_here(i.checked_sub(1)) || is_here(Some(i + 1)));
        }
    }
    beside > 0 && beside * 2 >= all
}

/// Marks the blocks before and after each change of state.
fn around_changes(of: &[Vec<Option<usize>>]) -> Vec<Vec<bool>> {
    let of_life = |life: &Vec<Option<usize>>| {
        let mut marked = vec![false; life.len()];
        let known: Vec<(usize, usize)> =
            life.iter().enumerate().filter_map(|(i, state)| Some((i, (*state)?))).collect();
        for pair in known.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
            (marked[pair[0].0], marked[pair[1].0]) = (true, true);
        }
        marked
    };
    of.iter().map(of_life).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_expensive_state_that_is_not_rare_is_preferred() {
        let preferred = |blocks: &[u32]| {
            let states =
                blocks.iter().map(|blocks| State { level: 0.0, blocks: *blocks }).collect();
            let (of, all) = (Vec::new(), Vec::new());
            States { states, of, all, straddled: 0, busy: None, beside: None }.preferred()
        };
        assert_eq!(preferred(&[25, 75]), [0, 1]);
        assert_eq!(preferred(&[24, 76]), [1, 0]);
        assert_eq!(preferred(&[20, 20, 60]), [2, 0, 1]);
        assert_eq!(preferred(&[40, 20, 40]), [0, 2, 1]);
        assert_eq!(preferred(&[0]), [0]);
    }
}
