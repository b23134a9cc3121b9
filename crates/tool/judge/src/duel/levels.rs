//! How expensive each block was, for all its contenders together.
//!
//! The level must not follow a single contender, because it decides about states, and a contender
//! must not be able to choose the state of a block. So it is a middle value over contenders, which
//! moves only if more than half of them move. With an even number, the one of the two middle values
//! nearer to zero counts: then a change of half of the contenders, e.g. of one of two, is none.

use super::field::Field;
use crate::statistics::{mean, median};

/// The level of each block, by life, relative to the most common level. `None` if the block has no
/// valid slice.
pub(super) fn levels(field: &Field) -> Vec<Vec<Option<f64>>> {
    let usual = usual_logs(field);
    let of_block = |block: &super::field::Block| {
        let relative =
            usual.iter().enumerate().filter_map(|(k, usual)| Some(block.log(k)? - (*usual)?));
        middle(relative.collect())
    };
    field.lives.iter().map(|life| life.blocks.iter().map(of_block).collect()).collect()
}

/// The median log-cost of each contender over the blocks of the most common level. All contenders
/// need the same blocks for this: with two states of equal length, medians over all blocks are in
/// one state for some contenders and in the other for the rest.
fn usual_logs(field: &Field) -> Vec<Option<f64>> {
    let blocks: Vec<_> = field.lives.iter().flat_map(|life| &life.blocks).collect();
    let logs_of = |k: usize| blocks.iter().filter_map(move |block| block.log(k));
    let contenders = 0..field.contenders();
    let means: Vec<_> = contenders.clone().map(|k| mean(&logs_of(k).collect::<Vec<_>>())).collect();
    let rough: Vec<Option<f64>> = blocks
        .iter()
        .map(|block| {
            let relative =
                means.iter().enumerate().filter_map(|(k, m)| Some(block.log(k)? - (*m)?));
            mean(&relative.collect::<Vec<_>>())
        })
        .collect();
    let (low, high) = densest_half(rough.iter().flatten().copied().collect());
    let common: Vec<_> = blocks
        .iter()
        .zip(&rough)
        .filter(|(_, rough)| rough.is_some_and(|rough| (low..=high).contains(&rough)))
        .map(|(block, _)| block)
        .collect();
    let usual = |k: usize| {
        let here: Vec<f64> = common.iter().filter_map(|block| block.log(k)).collect();
        median(here).or_else(|| median(logs_of(k).collect()))
    };
    contenders.map(usual).collect()
}

/// The shortest interval that contains half of the values (the shorth: Andrews et al., *Robust
/// Estimates of Location*, 1972).
fn densest_half(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let intervals = values.iter().zip(values.iter().skip(half)).map(|(low, high)| (*low, *high));
    let width = |(low, high): &(f64, f64)| high - low;
    intervals.min_by(|a, b| width(a).total_cmp(&width(b))).unwrap_or((0.0, 0.0))
}

/// The middle value; of two middle values the one nearer to zero, or zero if they have opposite
/// signs.
pub(super) fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let (low, high) = (*values.get(n.checked_sub(1)? / 2)?, *values.get(n / 2)?);
    Some(0.0_f64.clamp(low, high))
}

#[cfg(test)]
mod tests {
    use super::super::field::{Block, Life, Look};
    use super::*;

    /// Levels of one life, from the logarithms of its blocks.
    fn levels_of(blocks: &[&[f64]]) -> Vec<f64> {
        let block = |logs: &&[f64]| Block {
            logs: logs.iter().copied().map(Some).collect(),
            ..Block::default()
        };
        let lives = [Life { blocks: blocks.iter().map(block).collect() }];
        let levels = levels(&Field { lives: &lives, baseline: 0, twin: None, look: Look::Last });
        levels[0].iter().map(|level| level.unwrap()).collect()
    }

    fn is_near(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn the_middle_of_an_even_number_is_the_one_nearer_to_zero() {
        assert_eq!(middle(vec![0.3, 0.1, 0.2]), Some(0.2));
        assert_eq!(middle(vec![0.3, 0.1]), Some(0.1));
        assert_eq!(middle(vec![-0.3, -0.1, -0.2, 7.0]), Some(-0.1));
        assert_eq!(middle(vec![-0.3, 0.1]), Some(0.0));
        assert_eq!(middle(vec![]), None);
    }

    #[test]
    fn the_densest_half_of_a_worked_example() {
        assert_eq!(densest_half(vec![9.0, 1.0, 5.0, 1.2, 1.1, 8.0]), (1.0, 5.0));
        assert_eq!(densest_half(vec![9.0, 1.0, 1.3, 1.2, 1.1]), (1.0, 1.2));
        assert_eq!(densest_half(vec![2.0]), (2.0, 2.0));
        assert_eq!(densest_half(vec![]), (0.0, 0.0));
    }

    #[test]
    fn follows_a_change_of_everybody() {
        let (fast, slow): (&[f64], &[f64]) = (&[1.0, 5.0], &[1.3, 5.2]);
        assert!(is_near(&levels_of(&[fast, fast, fast, slow]), &[0.0, 0.0, 0.0, 0.2]));
        let fast: &[f64] = &[1.0, 5.0, 2.0];
        let slow: &[f64] = &[1.3, 5.2, 2.25];
        assert!(is_near(&levels_of(&[slow, slow, fast]), &[0.0, 0.0, -0.25]));
    }

    #[test]
    fn ignores_a_change_of_one_of_two_or_three() {
        let (usual, own): (&[f64], &[f64]) = (&[1.0, 5.0], &[1.3, 5.0]);
        assert!(is_near(&levels_of(&[usual, own, usual, own, usual]), &[0.0; 5]));
        let (usual, own): (&[f64], &[f64]) = (&[1.0, 5.0, 2.0], &[1.0, 5.0, 9.0]);
        assert!(is_near(&levels_of(&[own, usual, usual, own, own]), &[0.0; 5]));
    }
}
