//! The slices that are left out because the machine was disturbed beside them.
//!
//! Left out are slices right before and right after a slice of another contender that was above or below
//! what is usual for it in this state, by the CPU of the server or by that of the load: the machine was
//! disturbed for a moment, or changed in the first or last block of a life. Whether a slice is left out
//! depends on the slices of others, which were frozen while it ran. So a contender cannot be rid of a slice
//! of its own, and what only one of them shows is never left out.
//!
//! A contender is a *suspect* if the slices of several others are unusual more often right after it than elsewhere,
//! e.g. because another process works for it then. If one of a pair is a suspect, two kinds of slices are left out:
//! all that ran right after the suspect, and those of the suspect that ran right after an unusual one of the other. So
//! a suspect cannot be rid of slices, what it does to the other counts on neither side, and what the machine does
//! counts on both.

use super::{
    field::{Block, Field, Life},
    states::LEAST_APART,
};
use crate::statistics::{fisher_exact, median, robust};
use std::collections::BTreeMap;

/// Significance at which a contender seems to disturb the one after it. It is lenient, because keeping the
/// slices of one that does not only widens its interval.
const SUSPECT: f64 = 0.15;

/// A slice is unusual from this many standard deviations on.
const UNUSUAL: f64 = 3.0;

/// With fewer lives there is no interval.
const FEW_LIVES: usize = 3;

/// The state of each block, by life.
type BlockStates = [Vec<Option<usize>>];

/// A slice in the sequence of a life. They are ordered by their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ran {
    block: usize,
    position: u32,
    contender: usize,
    is_unusual: bool,
}

/// What ran right before and right after a slice.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    /// The contender right before it, if it was another one.
    before: Option<usize>,
    /// Whether that slice was unusual.
    after_unusual: bool,
    /// Whether the slice right after it was an unusual one of another contender.
    before_unusual: bool,
}

impl Neighbours {
    fn is_beside_unusual(self) -> bool {
        self.after_unusual || self.before_unusual
    }
}

/// The slices, and what ran beside them.
#[derive(Clone, Debug)]
pub(super) struct Disturbed {
    /// By life, block and contender.
    slices: Vec<Vec<BTreeMap<usize, Neighbours>>>,
    /// Whether each contender is a suspect.
    pub suspects: Vec<bool>,
}

impl Disturbed {
    /// Whether the slice of contender `k` is left out where these two are compared.
    pub fn is_out(&self, (life, block): (usize, usize), k: usize, pair: [usize; 2]) -> bool {
        self.slices[life][block].get(&k).is_some_and(|beside| {
            if !pair.iter().any(|of| self.suspects[*of]) {
                return beside.is_beside_unusual();
            }
            let before = beside.before.filter(|before| pair.contains(before));
            before.is_some_and(|before| self.suspects[before] || beside.after_unusual)
        })
    }

    /// Number of slices with unusual neighbours in blocks that count.
    pub fn count(&self, counts: impl Fn(usize, usize) -> bool) -> u32 {
        let blocks = |(life, blocks): (usize, &Vec<BTreeMap<usize, Neighbours>>)| {
            let counted = blocks.iter().enumerate().filter(|(block, _)| counts(life, *block));
            counted.map(|(_, slices)| beside_unusual(slices) as u32).sum::<u32>()
        };
        self.slices.iter().enumerate().map(blocks).sum()
    }
}

/// Finds the slices beside unusual ones of others. If few lives keep most of their slices then, it is lives that
/// differ, not moments: what is usual in a life of which half is unusual is then its own median.
pub(super) fn disturbed(field: &Field, of: &BlockStates) -> Disturbed {
    let found = find(field, of, &Usual::of(field, of, false));
    let keeps_most = |(life, out): (&Life, &Vec<BTreeMap<usize, Neighbours>>)| {
        let ran =
            |block: &Block| (0..field.contenders()).filter(|k| block.log(*k).is_some()).count();
        2 * out.iter().map(beside_unusual).sum::<usize>() <= life.blocks.iter().map(ran).sum()
    };
    let kept = field.lives.iter().zip(&found.slices).filter(|life| keeps_most(*life)).count();
    match kept < FEW_LIVES.min(field.lives.len()) {
        true => find(field, of, &Usual::of(field, of, true)),
        false => found,
    }
}

fn find(field: &Field, of: &BlockStates, usual: &Usual) -> Disturbed {
    let contenders = field.contenders();
    let ran = |(of_life, (life, states)): (usize, (&Life, &Vec<Option<usize>>))| {
        let mut slices = Vec::new();
        for (nth, (block, state)) in life.blocks.iter().zip(states).enumerate() {
            for contender in (0..contenders).filter(|k| block.log(*k).is_some()) {
                let is_unusual =
                    state.is_some_and(|s| usual.is_unusual(block, (s, of_life), contender));
                let position = block.position(contender);
                slices.push(Ran { block: nth, position, contender, is_unusual });
            }
        }
        slices.sort_unstable();
        slices
    };
    let lives: Vec<Vec<Ran>> = field.lives.iter().zip(of).enumerate().map(ran).collect();
    let suspects = suspects(&lives, contenders);
    let of_life = |(life, slices): (&Life, &Vec<Ran>)| {
        let mut beside = vec![BTreeMap::<usize, Neighbours>::new(); life.blocks.len()];
        for pair in slices.windows(2).filter(|pair| pair[0].contender != pair[1].contender) {
            let [one, other] = [pair[0], pair[1]];
            let after = beside[other.block].entry(other.contender).or_default();
            (after.before, after.after_unusual) = (Some(one.contender), one.is_unusual);
            beside[one.block].entry(one.contender).or_default().before_unusual = other.is_unusual;
        }
        beside
    };
    Disturbed { slices: field.lives.iter().zip(&lives).map(of_life).collect(), suspects }
}

/// Number of slices with unusual neighbours.
fn beside_unusual(slices: &BTreeMap<usize, Neighbours>) -> usize {
    slices.values().filter(|beside| beside.is_beside_unusual()).count()
}

/// Marks contenders after which slices of others were unusual more often than after others, by Fisher's exact test.
/// Their orders are balanced, so a contender that is unusual by itself is so after each of them. It must be so without
/// each single one of the others, too: one that is expensive only right after this contender would be rid of its
/// expensive slices. So there are no suspects among two.
fn suspects(lives: &[Vec<Ran>], contenders: usize) -> Vec<bool> {
    let mut followed = vec![vec![(0, 0); contenders]; contenders];
    for pair in lives.iter().flat_map(|slices| slices.windows(2)) {
        let (unusual, all) = &mut followed[pair[0].contender][pair[1].contender];
        *unusual += usize::from(pair[1].is_unusual);
        *all += 1;
    }
    // Of the slices of others than `who`, but one.
    let seen = |(who, without): (usize, usize), is_after: bool| {
        let rows = followed.iter().enumerate().filter(|(before, _)| (*before == who) == is_after);
        let cells = rows.flat_map(|(_, row)| row.iter().enumerate());
        let others = cells.filter(|(of, _)| ![who, without].contains(of));
        others.fold((0, 0), |sum, (_, one)| (sum.0 + one.0, sum.1 + one.1))
    };
    let is_suspect = |who: usize| {
        let seems = |but: usize| {
            fisher_exact(seen((who, but), true), seen((who, but), false))
                .is_some_and(|p| p < SUSPECT)
        };
        (0..contenders).filter(|other| *other != who).all(seems)
    };
    (0..contenders).map(is_suspect).collect()
}

/// Medians by life, and how far from them a slice is still usual: 5%, and [`UNUSUAL`] standard deviations.
struct Around {
    centres: Vec<f64>,
    limit: f64,
}

impl Around {
    /// Of these values, by life; `None` without any.
    fn of(values: Vec<Vec<f64>>, by_life: bool) -> Option<Around> {
        let (centre, deviation) = robust(values.concat())?;
        let limit = LEAST_APART.max(UNUSUAL * deviation);
        let is_apart = |own: &f64| by_life && (own - centre).abs() >= limit;
        let of_life = |values| median(values).filter(is_apart);
        let centres = values.into_iter().map(|values| of_life(values).unwrap_or(centre)).collect();
        Some(Around { centres, limit })
    }
}

/// What is usual in each state for each contender: the logarithms of its cost, and of that of the load.
struct Usual(Vec<Vec<[Option<Around>; 2]>>);

impl Usual {
    fn of(field: &Field, of: &BlockStates, by_life: bool) -> Usual {
        let around = |state: usize, log: &dyn Fn(&Block) -> Option<f64>| {
            let of_life = |(life, states): (&Life, &Vec<Option<usize>>)| {
                let here = life.blocks.iter().zip(states).filter(|(_, s)| **s == Some(state));
                here.filter_map(|(block, _)| log(block)).collect()
            };
            Around::of(field.lives.iter().zip(of).map(of_life).collect(), by_life)
        };
        let states = of.iter().flatten().flatten().max().map_or(0, |last| last + 1);
        let of_state = |state: usize| {
            let of_contender = |k| [around(state, &|b| b.log(k)), around(state, &|b| b.load(k))];
            (0..field.contenders()).map(of_contender).collect()
        };
        Usual((0..states).map(of_state).collect())
    }

    /// Whether a slice of contender `k` is away from what is usual in this state and life.
    fn is_unusual(&self, block: &Block, (state, life): (usize, usize), k: usize) -> bool {
        let [cost, load] = &self.0[state][k];
        let is_away = |log: Option<f64>, usual: &Option<Around>| {
            let of = log.zip(usual.as_ref());
            of.is_some_and(|(log, usual)| (log - usual.centres[life]).abs() >= usual.limit)
        };
        is_away(block.log(k), cost) || is_away(block.load(k), load)
    }
}
