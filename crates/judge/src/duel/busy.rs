//! The blocks beside which other programs ran.
//!
//! At an equal rate, a server's CPU is idle at times. While another program runs there, the server must be
//! switched to instead of being woken, and the costs of two servers change by different factors: with a
//! program that kept one CPU busy, a Go server cost 1.30 times as much as `epoll`, and 1.51 times without it.
//! A mean over both would depend on how busy the machine happened to be. So blocks beside which other programs
//! ran are left out, unless too few others remain; then the ratios are those beside other programs.
//!
//! Only the CPU clock of the whole machine decides, and by the middle value over the contenders: one of them
//! that leaves work to a process outside its control group cannot be rid of its slices.

use super::{
    field::{Block, Field},
    levels::middle,
};
use regatta_record::Busy;

/// CPU time of other programs from which on a block counts as beside them, as a share of the length of a slice.
const BUSY: f64 = 0.1;
/// Least share of the blocks that must remain.
const LEAST_SHARE: f64 = 0.25;
/// Least number of lives in which blocks must remain, and of blocks in each of these on average.
const LEAST: usize = 3;

/// Marks the blocks beside which other programs ran, by life, and counts them. `None`: there are none.
pub(super) fn beside_others(field: &Field) -> (Vec<Vec<bool>>, Option<Busy>) {
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
    let left_out = quiet_lives >= LEAST
        && quiet_blocks >= LEAST * quiet_lives
        && quiet_blocks as f64 >= LEAST_SHARE * blocks as f64;
    let busy = Busy { blocks: (blocks - quiet_blocks) as u32, of: blocks as u32, left_out };
    (marked, Some(busy).filter(|busy| busy.blocks > 0))
}

#[cfg(test)]
mod tests {
    use super::super::field::{Life, Look};
    use super::*;

    /// What is found in lives of 4 blocks, of which this many are busy, with three contenders. In a quiet
    /// block, one of them has help from outside.
    fn found(busy: &[usize]) -> (Vec<Vec<bool>>, Option<Busy>) {
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
    fn busy_blocks_are_left_out_if_enough_others_remain() {
        let marks = |busy: usize| (0..4).map(|nth| nth < busy).collect::<Vec<_>>();
        let (marked, busy) = found(&[1, 0, 1, 4]);
        assert_eq!(marked, [marks(1), marks(0), marks(1), marks(4)]);
        assert_eq!(busy, Some(Busy { blocks: 6, of: 16, left_out: true }));
        assert_eq!(found(&[0, 0, 0, 0]).1, None);
        let is_left_out = |busy: &[usize]| found(busy).1.unwrap().left_out;
        assert!(!is_left_out(&[4, 4, 4, 4]), "nothing would remain");
        assert!(!is_left_out(&[0, 0, 4, 4]), "only two lives would remain");
        assert!(!is_left_out(&[2, 2, 1, 4]), "7 blocks of three lives");
        assert!(is_left_out(&[1, 1, 1, 4]), "9 blocks of three lives");
        assert!(!is_left_out(&[vec![1; 3], vec![4; 7]].concat()), "9 of 40 blocks");
        assert!(is_left_out(&[vec![1; 3], vec![4; 6]].concat()), "9 of 36 blocks");
    }

    #[test]
    fn without_the_clock_of_the_machine_none_is_busy() {
        let block = Block { logs: vec![Some(1.0)], ..Block::default() };
        let lives = vec![Life { blocks: vec![block; 4] }; 4];
        let field = Field { lives: &lives, baseline: 0, twin: None, look: Look::Last };
        assert_eq!(beside_others(&field).1, None);
    }
}
