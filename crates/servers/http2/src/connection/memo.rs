//! Field blocks that repeat the last one are not decoded again.

use crate::{
    hpack::{Decoder, Fields},
    rule::Rule,
};

/// Longest block that is remembered, in bytes.
const MAX_REMEMBERED: usize = 4096;

/// The last field section of a kind, and what was found out about it.
///
/// A block that does not depend on the dynamic table has the same fields whenever it is repeated, and inserts
/// the same ones: so do those of servers that insert fields and never refer to them. Any other has the same
/// fields while the table is the same.
#[derive(Debug)]
pub(crate) struct Memo<S> {
    pub fields: Fields,
    /// What the fields say, or which rule they violate.
    pub summary: Result<S, Rule>,
    block: Vec<u8>,
    /// When the block has these fields again.
    again: Again,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Never,
    Always,
    /// While the table has this generation.
    At(u64),
}

impl<S> Memo<S> {
    pub fn new(summary: S) -> Self {
        let (fields, block) = (Fields::default(), Vec::new());
        Memo { fields, summary: Ok(summary), block, again: Again::Never }
    }

    /// Reads a block; `check` summarizes its fields. Returns whether it is the last one again.
    ///
    /// # Errors
    /// The block cannot be decoded.
    #[inline]
    pub fn read(
        &mut self,
        block: &[u8],
        decoder: &mut Decoder,
        check: impl FnOnce(&Fields) -> Result<S, Rule>,
    ) -> Result<bool, Rule> {
        let generation = decoder.generation();
        let is_known = self.again == Again::Always || self.again == Again::At(generation);
        if is_known && self.block == block && !decoder.owes_update() {
            decoder.insert_again(&self.fields);
            return Ok(true);
        }
        self.again = Again::Never;
        decoder.decode(block, &mut self.fields)?;
        self.summary = match self.fields.is_cut() {
            true => Err(Rule::FieldsTooLarge),
            false => check(&self.fields),
        };
        // Fields that were left out may have been inserted.
        self.again = match block.len() <= MAX_REMEMBERED && !self.fields.is_cut() {
            true if !decoder.depends() => Again::Always,
            true if decoder.generation() == generation => Again::At(generation),
            _ => Again::Never,
        };
        if self.again != Again::Never {
            self.block.clear();
            self.block.extend_from_slice(block);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    /// Blocks of all kinds: with and without insertions, references to the table, and changes of its size.
    const BLOCKS: [&[u8]; 9] = [
        &[0x88],
        &[0x88, 0x40, 1, b'a', 1, b'1'],
        &[0x88, 0x40, 1, b'a', 1, b'2', 0x40, 1, b'b', 1, b'1'],
        &[0x88, 0x00, 1, b'a', 1, b'1', 0x10, 1, b'b', 1, b'2'],
        &[0x88, 0xbe],
        &[0x88, 0x7e, 1, b'9'],
        &[0x88, 0x0f, 47, 1, b'9'],
        &[0x20, 0x3f, 71, 0x88, 0x40, 1, b'c', 1, b'1'],
        &[0x88, 0x40, 60, b'l', b'o', b'n', b'g'],
    ];

    proptest! {
        /// A decoder without a memory says the same, and has the same table.
        #[test]
        fn a_repeated_block_has_the_same_effect_as_the_first(
            steps in vec((0..BLOCKS.len(), 1_usize..4), 1..40),
        ) {
            let (mut decoder, mut model) = (Decoder::new(150), Decoder::new(150));
            let (mut memo, mut expected) = (Memo::new(0), Fields::default());
            for (which, times) in steps {
                for _ in 0..times {
                    let mut block = BLOCKS[which].to_vec();
                    if which == 8 {
                        block.resize(4 + 60, b'x');
                        block.extend([1, b'1', 0x40, 1, b'd', 60]);
                        block.resize(block.len() + 60, b'y');
                    }
                    let read = memo.read(&block, &mut decoder, |fields| Ok(fields.iter().len()));
                    let decoded = model.decode(&block, &mut expected);
                    prop_assert_eq!(read.map(|_| ()), decoded);
                    if decoded.is_err() {
                        return Ok(());
                    }
                    let fields = || memo.fields.iter().eq(expected.iter());
                    prop_assert!(fields() && memo.fields.is_cut() == expected.is_cut());
                    prop_assert!(decoder.table().eq(model.table()));
                }
            }
        }
    }

    #[test]
    fn a_block_that_only_inserts_is_known_at_once_and_one_that_refers_is_not() {
        let (mut decoder, mut memo) = (Decoder::new(1_000), Memo::new(()));
        let mut read = |block: &[u8]| memo.read(block, &mut decoder, |_| Ok(())).unwrap();
        let known = [1, 1, 1, 5, 5, 5, 1, 1, 7, 7].map(|which: usize| read(BLOCKS[which]));
        let expected = [false, true, true, false, false, false, false, true, false, false];
        assert_eq!(known, expected);
    }
}
