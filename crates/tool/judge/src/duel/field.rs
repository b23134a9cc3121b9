//! What was measured: the lives of a heat, their blocks, and who is compared with whom.

/// Magnitude beyond which a number is not the logarithm of a cost: `ln(f64::MAX)` is 709.8.
const LARGEST_LOG: f64 = 750.0;

/// One start of all contenders of a heat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Life {
    /// Its counted blocks, in the order in which they ran.
    pub blocks: Vec<Block>,
}

/// One slice of each contender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// `ln(CPU per request)` of each contender, by its index. `None` if it has no valid slice.
    pub logs: Vec<Option<f64>>,
    /// `ln(CPU per request)` of the load in each slice. It does not count; it shows when the machine was
    /// disturbed. May be empty.
    pub load: Vec<Option<f64>>,
    /// CPU time that programs which are neither the contender nor the load used in each slice, as a share of
    /// its length: 1 is one CPU. May be empty.
    pub others: Vec<Option<f64>>,
    /// Place of each contender's slice in the block, from 0, by its index. If it is empty, the
    /// slices ran in the order of the indices.
    pub positions: Vec<u32>,
    /// Length of the slices relative to the usual one: 1, or 4 in a block of long slices; 0 if it is not known.
    pub stretch: f64,
}

impl Block {
    /// The logarithm of a contender's cost, if it is a number that can be one.
    pub(super) fn log(&self, contender: usize) -> Option<f64> {
        valid(&self.logs, contender)
    }

    /// That of the load on it.
    pub(super) fn load(&self, contender: usize) -> Option<f64> {
        valid(&self.load, contender)
    }

    /// CPU time of other programs beside a contender's slice.
    pub(super) fn others(&self, contender: usize) -> Option<f64> {
        self.others.get(contender).copied().flatten()
    }

    /// Place of a contender's slice.
    pub(super) fn position(&self, contender: usize) -> u32 {
        self.positions.get(contender).copied().unwrap_or(contender as u32)
    }

    /// Whether its slices are longer than usual.
    pub(super) fn is_long(&self) -> bool {
        self.stretch > 1.5
    }
}

fn valid(logs: &[Option<f64>], contender: usize) -> Option<f64> {
    logs.get(contender).copied().flatten().filter(|log| log.abs() <= LARGEST_LOG)
}

/// When the lives of a race are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Before the race is over, or after it was interrupted. There may be any number of such looks.
    Before,
    /// At its end, which did not depend on the ratios: see [`interval`](super::interval).
    Last,
}

/// The lives of a heat at one load.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The lives, in the order in which they ran.
    pub lives: &'a [Life],
    /// Index of the contender that ratios refer to.
    pub baseline: usize,
    /// Index of the second copy of the baseline.
    pub twin: Option<usize>,
    /// When they are looked at.
    pub look: Look,
}

impl Field<'_> {
    /// The number of contenders.
    pub(crate) fn contenders(&self) -> usize {
        let blocks = self.lives.iter().flat_map(|life| &life.blocks);
        blocks.map(|block| block.logs.len()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_can_be_logarithms_of_costs_count() {
        let values = [None, Some(f64::NAN), Some(f64::INFINITY), Some(1e300), Some(8.3)];
        let block = Block { logs: values.to_vec(), positions: vec![4, 3], ..Block::default() };
        let logs: Vec<_> = (0..6).map(|contender| block.log(contender)).collect();
        assert_eq!(logs, [None, None, None, None, Some(8.3), None]);
        assert_eq!([0, 1, 2].map(|contender| block.position(contender)), [4, 3, 2]);
        assert!(!block.is_long());
        assert!(Block { stretch: 4.0, ..block }.is_long());
    }

    #[test]
    fn counts_the_contenders_of_all_blocks() {
        let block = |n| Block { logs: vec![None; n], ..Block::default() };
        let lives = [Life::default(), Life { blocks: vec![block(2), block(3)] }];
        assert_eq!(
            Field { lives: &lives, baseline: 0, twin: None, look: Look::Last }.contenders(),
            3
        );
        assert_eq!(Field { lives: &[], baseline: 0, twin: None, look: Look::Last }.contenders(), 0);
    }
}
