//! Field blocks that repeat the last one are not decoded again.

use crate::{
    hpack::{Decoder, Fields},
    rule::Rule,
};

/// Longest block that is remembered, in bytes.
const MAX_REMEMBERED: usize = 4096;

/// The last field section of a kind, and what was found out about it.
///
/// A block that neither changes the dynamic table nor precedes a change has the same fields whenever it
/// is repeated.
#[derive(Debug)]
pub(crate) struct Memo<S> {
    pub fields: Fields,
    /// What the fields say, or which rule they violate.
    pub summary: Result<S, Rule>,
    block: Vec<u8>,
    /// The generation of the table that the block refers to; `None` if the block is not remembered.
    generation: Option<u64>,
}

impl<S> Memo<S> {
    pub fn new(summary: S) -> Self {
        let (fields, block) = (Fields::default(), Vec::new());
        Memo { fields, summary: Ok(summary), block, generation: None }
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
        if self.generation == Some(generation) && self.block == block && !decoder.owes_update() {
            return Ok(true);
        }
        self.generation = None;
        decoder.decode(block, &mut self.fields)?;
        self.summary = match self.fields.is_cut() {
            true => Err(Rule::FieldsTooLarge),
            false => check(&self.fields),
        };
        if decoder.generation() == generation && block.len() <= MAX_REMEMBERED {
            self.block.clear();
            self.block.extend_from_slice(block);
            self.generation = Some(generation);
        }
        Ok(false)
    }
}
