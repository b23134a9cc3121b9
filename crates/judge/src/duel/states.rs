//! The states of the machine, the state of each block, and the blocks and slices that are left out.

use super::{
    clusters::groups,
    field::{Block, Field},
    levels::levels,
};
use crate::statistics::{alone, median};
use std::collections::BTreeSet;

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
    /// The contenders whose slices are left out, by life and block.
    pub beside: Vec<Vec<BTreeSet<usize>>>,
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
    /// - slices right before and right after a slice of another contender that was above or below what
    ///   is usual for it in this state, by the CPU of the server or by that of the load: the machine
    ///   was disturbed for a moment, or changed in the first or last block of a life. Whether a slice
    ///   is left out depends on the slices of others, which were frozen while it ran. So a contender
    ///   cannot be rid of a slice of its own, and what only one of them shows is never left out. A
    ///   contender whose unusual slices are followed by unusual ones of others more often than those of the
    ///   others, e.g. because it leaves work to somebody else, keeps all of its slices.
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
        let beside = beside_others(field, &of, centres.len());
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
        States { states, straddled: assigned - count(&of), of, beside }
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

/// A slice in the sequence of a life. They are ordered by their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ran {
    block: usize,
    position: u32,
    contender: usize,
    is_unusual: bool,
}

/// The contenders whose slices in each block ran right before or after an unusual slice of another, unless
/// they are [`suspects`].
fn beside_others(
    field: &Field,
    of: &[Vec<Option<usize>>],
    states: usize,
) -> Vec<Vec<BTreeSet<usize>>> {
    let usual = Usual::of(field, of, states);
    let contenders = field.contenders();
    let ran = |(life, of): (&super::field::Life, &Vec<Option<usize>>)| {
        let slice = |(nth, block, state, contender): (usize, &Block, Option<usize>, usize)| Ran {
            block: nth,
            position: block.position(contender),
            contender,
            is_unusual: state.is_some_and(|state| usual.is_unusual(block, state, contender)),
        };
        let blocks = life.blocks.iter().zip(of).enumerate();
        let mut slices: Vec<Ran> = blocks
            .flat_map(|(nth, (block, state))| {
                let ran = (0..contenders).filter(|k| block.log(*k).is_some());
                ran.map(move |k| (nth, block, *state, k))
            })
            .map(slice)
            .collect();
        slices.sort_unstable();
        slices
    };
    let lives: Vec<Vec<Ran>> = field.lives.iter().zip(of).map(ran).collect();
    let suspects = suspects(&lives, contenders);
    let of_life = |(life, slices): (&super::field::Life, &Vec<Ran>)| {
        let mut beside = vec![BTreeSet::new(); life.blocks.len()];
        for pair in slices.windows(2).filter(|pair| pair[0].contender != pair[1].contender) {
            for (one, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                if other.is_unusual && !suspects[one.contender] {
                    beside[one.block].insert(one.contender);
                }
            }
        }
        beside
    };
    field.lives.iter().zip(&lives).map(of_life).collect()
}

/// Significance at which a contender seems to disturb the one after it. It is lenient, because keeping the slices of
/// one that does not only widens its interval.
const SUSPECT: f64 = 0.15;

/// Marks contenders that had unusual slices before an unusual one of another more often than the others had,
/// by Fisher's exact test.
fn suspects(lives: &[Vec<Ran>], contenders: usize) -> Vec<bool> {
    let mut each = vec![(0, 0); contenders];
    for slices in lives {
        for (nth, slice) in slices.iter().enumerate() {
            let is_other = |next: &&Ran| next.is_unusual && next.contender != slice.contender;
            let drags = slice.is_unusual && slices.get(nth + 1).filter(is_other).is_some();
            each[slice.contender].0 += usize::from(drags);
            each[slice.contender].1 += 1;
        }
    }
    let (drags, slices) = each.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let others = |own: &(usize, usize)| (drags - own.0, slices - own.1);
    each.iter().map(|own| alone(*own, others(own)).is_some_and(|p| p < SUSPECT)).collect()
}

/// A median, and how far from it a slice is still usual: 5%, and 5 standard deviations from the median absolute
/// deviation.
type Around = Option<(f64, f64)>;

/// What is usual in each state for each contender: the logarithms of its cost, and of that of the load.
struct Usual(Vec<Vec<[Around; 2]>>);

impl Usual {
    fn of(field: &Field, of: &[Vec<Option<usize>>], states: usize) -> Usual {
        let in_state = |state: usize| -> Vec<&Block> {
            let blocks = field.lives.iter().zip(of);
            let blocks = blocks.flat_map(|(life, of)| life.blocks.iter().zip(of));
            blocks.filter(|(_, s)| **s == Some(state)).map(|(block, _)| block).collect()
        };
        let around = |logs: Vec<f64>| {
            let centre = median(logs.clone())?;
            let away = logs.iter().map(|log| (log - centre).abs()).collect();
            Some((centre, LEAST_APART.max(LEAST_DEVIATIONS * DEVIATION * median(away)?)))
        };
        let of_state = |state: usize| {
            let blocks = in_state(state);
            let of_contender = |k: usize| {
                let logs = |log: fn(&Block, usize) -> Option<f64>| {
                    around(blocks.iter().filter_map(|block| log(block, k)).collect())
                };
                [logs(Block::log), logs(Block::load)]
            };
            (0..field.contenders()).map(of_contender).collect()
        };
        Usual((0..states).map(of_state).collect())
    }

    /// Whether a slice of contender `k` is away from what is usual.
    fn is_unusual(&self, block: &Block, state: usize, k: usize) -> bool {
        let [cost, load] = self.0[state][k];
        let is_away = |log: Option<f64>, usual: Around| {
            log.zip(usual).is_some_and(|(log, (centre, limit))| (log - centre).abs() >= limit)
        };
        is_away(block.log(k), cost) || is_away(block.load(k), load)
    }
}
