//! The blocks beside which other programs ran.
//!
//! At an equal rate, a server's CPU is idle at times. While another program runs there, the server must be
//! switched to instead of being woken, and the costs of two servers change by different factors: with a
//! program that kept one CPU busy, a Go server cost 1.30 times as much as `epoll`, and 1.51 times without it.
//! A mean over both would depend on how busy the machine happened to be. So a ratio that differs significantly
//! beside other programs is that of the other blocks, unless too few remain. A ratio that does not, e.g. of two
//! builds of a server, is that of all blocks: it would only lose precision.
//!
//! Only the CPU clock of the whole machine decides, and by the middle value over the contenders: one of them
//! that leaves work to a process outside its control group cannot be rid of its slices.

use super::{
    field::{Block, Field},
    levels::middle,
    mixed::Fit,
    ratio::differ,
};
use regatta_record::ContendedBlocks;
use std::collections::BTreeSet;

/// CPU time of other programs from which on a block counts as beside them, as a share of the length of a slice.
const BUSY: f64 = 0.1;
/// Least share of the blocks that must remain if others are kept apart.
pub(super) const LEAST_SHARE: f64 = 0.25;
/// Least number of lives in which blocks must remain.
const LEAST_LIVES: usize = 3;
/// Least number of blocks that must remain in each of these lives, on average.
const LEAST_BLOCKS: usize = 2;

/// Log-ratios by life, each with the index of its state.
type ByLife = Vec<Vec<(usize, f64)>>;

/// Decides whether a ratio differs beside other programs, i.e. in the state `beside`. Returns the blocks that
/// count for it, and in that case the fit of both: of the other blocks, and of those beside other programs.
pub(super) fn settled(lives: ByLife, beside: usize) -> (ByLife, Option<Fit>) {
    let mapped = |to: &dyn Fn(usize) -> usize| -> ByLife {
        lives.iter().map(|life| life.iter().map(|(s, d)| (to(*s), *d)).collect()).collect()
    };
    let both = Fit::of(&mapped(&|state| usize::from(state == beside)), 2).filter(differ);
    let others = lives.iter().flatten().map(|(state, _)| *state).filter(|state| *state != beside);
    let others: BTreeSet<usize> = others.collect();
    // With several states of the machine, it is not known which one these blocks belong to.
    if both.is_none() && others.len() <= 1 {
        let only = others.first().copied().unwrap_or(beside);
        return (mapped(&|_| only), None);
    }
    let without = |life: &Vec<(usize, f64)>| {
        life.iter().filter(|(state, _)| *state != beside).copied().collect()
    };
    (lives.iter().map(without).collect(), both)
}

/// Marks the blocks beside which other programs ran, by life, and counts them. `None`: there are none.
pub(super) fn beside_others(field: &Field) -> (Vec<Vec<bool>>, Option<ContendedBlocks>) {
    let contenders = field.contenders();
    let is_busy = |block: &Block| {
        let others = (0..contenders).filter_map(|contender| block.others(contender)).collect();
        middle(others).is_some_and(|others| others > BUSY)
    };
    let marked: Vec<Vec<bool>> =
        field.lives.iter().map(|life| life.blocks.iter().map(is_busy).collect()).collect();
    let quiet = |life: &Vec<bool>| life.iter().filter(|is_busy| !**is_busy).count();
    let blocks: usize = marked.iter().map(Vec::len).sum();
    let quiet_blocks: usize = marked.iter().map(quiet).sum();
    let quiet_lives = marked.iter().filter(|life| quiet(life) > 0).count();
    let apart = quiet_lives >= LEAST_LIVES
        && quiet_blocks >= LEAST_BLOCKS * quiet_lives
        && quiet_blocks as f64 >= LEAST_SHARE * blocks as f64;
    let busy = ContendedBlocks { blocks: (blocks - quiet_blocks) as u32, of: blocks as u32, apart };
    (marked, Some(busy).filter(|busy| busy.blocks > 0))
}

#[cfg(test)]
mod tests {
    use super::super::field::{Life, Look};
    use super::*;

    /// What is found in lives of 4 blocks, of which this many are busy, with three contenders. In a quiet
    /// block, one of them has help from outside.
    fn found(busy: &[usize]) -> (Vec<Vec<bool>>, Option<ContendedBlocks>) {
        let block = |nth: usize, busy: usize| Block {
            logs: vec![Some(1.0); 3],
            others: if nth < busy {
                vec![Some(0.11), Some(0.6), None]
            } else {
                vec![Some(0.02), Some(0.9), Some(0.1)]
            },
            ..Block::default()
        };
        let life = |busy: &usize| Life { blocks: (0..4).map(|nth| block(nth, *busy)).collect() };
        let lives: Vec<Life> = busy.iter().map(life).collect();
        beside_others(&Field { lives: &lives, baseline: 0, twin: None, look: Look::Last })
    }

    #[test]
    fn busy_blocks_are_kept_apart_if_enough_others_remain() {
        let marks = |busy: usize| (0..4).map(|nth| nth < busy).collect::<Vec<_>>();
        let (marked, busy) = found(&[1, 0, 1, 4]);
        assert_eq!(marked, [marks(1), marks(0), marks(1), marks(4)]);
        assert_eq!(busy, Some(ContendedBlocks { blocks: 6, of: 16, apart: true }));
        assert_eq!(found(&[0, 0, 0, 0]).1, None);
        let is_apart = |busy: &[usize]| found(busy).1.unwrap().apart;
        assert!(!is_apart(&[4, 4, 4, 4]), "nothing would remain");
        assert!(!is_apart(&[0, 0, 4, 4]), "only two lives would remain");
        assert!(!is_apart(&[2, 2, 3]), "5 blocks of three lives");
        assert!(is_apart(&[2, 2, 2]), "6 blocks of three lives");
        assert!(!is_apart(&[vec![1; 3], vec![4; 7]].concat()), "9 of 40 blocks");
        assert!(is_apart(&[vec![1; 3], vec![4; 6]].concat()), "9 of 36 blocks");
    }

    /// Six lives with 4 blocks of each state, and what they are settled to, with the mean of what counts.
    fn counts(states: &[(usize, f64)]) -> (usize, f64, bool) {
        let noise = [-0.01, 0.012, 0.004, -0.006];
        let life = |nth: usize| {
            let blocks = |(state, log): &(usize, f64)| {
                noise.map(|noise| (*state, log + noise + [0.003, -0.003][nth % 2]))
            };
            states.iter().flat_map(blocks).collect()
        };
        let (lives, both) = settled((0..6).map(life).collect(), 9);
        let blocks: Vec<f64> = lives.iter().flatten().map(|(_, d)| *d).collect();
        assert!(lives.iter().flatten().all(|(state, _)| *state != 9));
        let mean = crate::statistics::mean(&blocks).unwrap();
        (blocks.len(), (1e6 * mean).round() / 1e6, both.is_some())
    }

    #[test]
    fn busy_blocks_count_for_a_ratio_that_is_the_same_there() {
        assert_eq!(counts(&[(0, 0.5), (9, 0.5)]), (48, 0.5, false));
        assert_eq!(counts(&[(0, 0.5), (9, 0.4)]), (24, 0.5, true));
        let between = counts(&[(0, 0.5), (1, 0.6), (9, 0.55)]);
        assert_eq!(between, (48, 0.55, false), "not known which state they belong to");
        assert_eq!(counts(&[(0, 0.5), (1, 0.5), (9, 0.4)]), (48, 0.5, true));
    }

    #[test]
    fn without_the_clock_of_the_machine_none_is_busy() {
        let block = Block { logs: vec![Some(1.0)], ..Block::default() };
        let lives = vec![Life { blocks: vec![block; 4] }; 4];
        let field = Field { lives: &lives, baseline: 0, twin: None, look: Look::Last };
        assert_eq!(beside_others(&field).1, None);
    }
}
