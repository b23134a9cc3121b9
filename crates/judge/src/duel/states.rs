//! The states of the machine, the state of each block, and the blocks that are left out.

use super::{clusters::groups, field::Field, levels::levels};
use crate::statistics::median;

/// Maximum number of states.
const MOST_STATES: usize = 3;
/// Least distance between the levels of two states: 5%.
const LEAST_APART: f64 = 0.05;
/// Least distance between the levels of two states, in standard deviations within them. A split of
/// evenly spread levels, e.g. of a drift, reaches 3.5; that of normal ones 2.7.
const LEAST_DEVIATIONS: f64 = 5.0;
/// The factor from the median absolute deviation to the standard deviation of a normal distribution.
const DEVIATION: f64 = 1.4826;

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
    /// Number of blocks left out because the machine changed in them.
    pub straddled: u32,
}

impl States {
    /// Assigns the blocks of a field to states.
    ///
    /// The number of states is the largest, up to three, at which all levels are far apart (5%, and
    /// 5 standard deviations within a state) and the machine stays in each state: at least half of
    /// its blocks have a neighbour in the same state. So blocks in which the machine changed, which
    /// have all levels between two states, are no state.
    ///
    /// Left out are:
    /// - both blocks around a change of state within a life. The machine changed in one of them or
    ///   between them. Only levels decide, which no single contender can move, so this cannot favour
    ///   any of them; and it costs little, because blocks are many and lives few.
    /// - blocks in which several contenders, in neighbouring slices, were all above or all below
    ///   their usual cost in this state: the machine changed and changed back, or changed in the
    ///   first or last block of a life.
    pub fn of(field: &Field) -> States {
        let levels = levels(field);
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
        let assigned = count(&of);
        let changed = around_changes(&of);
        let disturbed = disturbed(field, &of, centres.len());
        for (life, (changed, disturbed)) in of.iter_mut().zip(changed.iter().zip(&disturbed)) {
            for (state, out) in life.iter_mut().zip(changed.iter().zip(disturbed)) {
                *state = state.filter(|_| !out.0 && !out.1);
            }
        }
        let blocks =
            |state: usize| of.iter().flatten().filter(|s| **s == Some(state)).count() as u32;
        let states = centres.iter().enumerate();
        let states =
            states.map(|(i, c)| State { level: c - centres[0], blocks: blocks(i) }).collect();
        States { states, straddled: assigned - count(&of), of }
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
        .map(|range| {
            let centre = median(ascending[range.clone()].to_vec())?;
            let away = ascending[range.clone()].iter().map(|level| (level - centre).abs());
            Some((centre, DEVIATION * median(away.collect())?))
        })
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

/// Marks the blocks with a run of neighbouring slices, at least two and at least a third of all,
/// that all deviate upwards or all downwards: by at least 5% and 5 standard deviations (from the
/// median absolute deviation) of the contender in the block's state.
fn disturbed(field: &Field, of: &[Vec<Option<usize>>], states: usize) -> Vec<Vec<bool>> {
    let contenders = field.contenders();
    let usual: Vec<Vec<Option<(f64, f64)>>> = (0..states)
        .map(|state| {
            let logs = |k: usize| -> Vec<f64> {
                let blocks =
                    field.lives.iter().zip(of).flat_map(|(life, of)| life.blocks.iter().zip(of));
                blocks.filter(|(_, s)| **s == Some(state)).filter_map(|(b, _)| b.log(k)).collect()
            };
            let of_contender = |k: usize| {
                let logs = logs(k);
                let centre = median(logs.clone())?;
                let away = logs.iter().map(|log| (log - centre).abs()).collect();
                Some((centre, LEAST_APART.max(LEAST_DEVIATIONS * DEVIATION * median(away)?)))
            };
            (0..contenders).map(of_contender).collect()
        })
        .collect();
    let is_disturbed = |block: &super::field::Block, state: usize| {
        let mut slices: Vec<(u32, i8)> = (0..contenders)
            .filter_map(|k| {
                let (centre, limit) = usual[state][k]?;
                let away = block.log(k)? - centre;
                let side = if away >= limit {
                    1
                } else if away <= -limit {
                    -1
                } else {
                    0
                };
                Some((block.position(k), side))
            })
            .collect();
        slices.sort_unstable();
        let least = (slices.len().div_ceil(3)).max(2);
        slices.chunk_by(|a, b| a.1 == b.1).any(|run| run[0].1 != 0 && run.len() >= least)
    };
    let of_life = |(life, of): (&super::field::Life, &Vec<Option<usize>>)| {
        let blocks = life.blocks.iter().zip(of);
        blocks.map(|(block, state)| state.is_some_and(|state| is_disturbed(block, state))).collect()
    };
    field.lives.iter().zip(of).map(of_life).collect()
}
