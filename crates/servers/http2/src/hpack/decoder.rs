//! Field blocks → fields.

use super::{
    INITIAL_TABLE_SIZE, encoder::Indexing, fields::Fields, huffman, integer, static_table::STATIC,
    table::Table,
};
use crate::rule::Rule;

/// Decodes the field blocks of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// Maximum size of the table, in bytes: SETTINGS_HEADER_TABLE_SIZE, once it is acknowledged.
    limit: usize,
    /// Whether the next block must start with a size update.
    owes_update: bool,
    /// Whether the last block used the table or changed its size, other than by insertions.
    depends: bool,
    /// Maximum size of a section.
    max_list: usize,
}

impl Decoder {
    /// Creates a decoder with a table of 4,096 bytes. `max_list`: maximum size of a section, in bytes,
    /// as [`Fields::size`] counts it.
    pub fn new(max_list: usize) -> Self {
        let table = Table::new(INITIAL_TABLE_SIZE);
        Decoder { table, limit: INITIAL_TABLE_SIZE, owes_update: false, depends: false, max_list }
    }

    /// Sets the maximum size of the table, in bytes, when the peer has acknowledged it. If the table is
    /// larger, the next block must start by reducing it (RFC 9113, 4.3.1).
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.owes_update = limit < self.table.max();
    }

    /// A number that changes with the table. While it is the same, equal blocks have equal fields, unless
    /// [`Decoder::owes_update`].
    #[inline]
    pub fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// Whether the next block must start with a size update.
    #[inline]
    pub fn owes_update(&self) -> bool {
        self.owes_update
    }

    /// Whether the fields of the last block depend on the table, or it changed the table's size. If not, an equal
    /// block has equal fields, unless [`Decoder::owes_update`], and does to the table what
    /// [`Decoder::insert_again`] does.
    #[inline]
    pub fn depends(&self) -> bool {
        self.depends
    }

    /// Inserts the fields into the table that the block inserted from which they were decoded.
    #[inline]
    pub fn insert_again(&mut self, fields: &Fields) {
        for field in fields.inserted() {
            self.table.insert(field.name, field.value);
        }
    }

    /// The fields of the dynamic table, newest first.
    pub fn table(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.table.iter()
    }

    /// Decodes a complete block into `fields`, whose former content is removed. Fields beyond the
    /// maximum size of a section are left out, but take part in the table.
    ///
    /// # Errors
    /// The block is invalid. Then the table is, too: the connection must close (RFC 9113, 4.3).
    pub fn decode(&mut self, block: &[u8], fields: &mut Fields) -> Result<(), Rule> {
        fields.clear();
        self.depends = false;
        let mut rest = block;
        while let Some(0x20..0x40) = rest.first() {
            let size = integer::read(&mut rest, 5)?;
            if size > self.limit {
                return Err(Rule::TableSizeTooLarge);
            }
            self.table.resize(size);
            self.depends = true;
            self.owes_update = false;
        }
        if self.owes_update {
            return Err(Rule::TableSizeMissing);
        }
        while let Some(&first) = rest.first() {
            match first {
                0x80.. => self.indexed(&mut rest, fields)?,
                0x40.. => self.literal(&mut rest, 6, fields)?,
                0x20.. => return Err(Rule::TableSizeLate),
                _ => self.literal(&mut rest, 4, fields)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn indexed(&mut self, rest: &mut &[u8], fields: &mut Fields) -> Result<(), Rule> {
        let index = integer::read(rest, 7)?;
        self.depends |= index > STATIC.len();
        let (name, value) = self.entry(index)?;
        fields.push(name, value, self.max_list);
        Ok(())
    }

    /// A literal with a prefix of 6 bits is inserted into the table; others have a prefix of 4 bits.
    fn literal(&mut self, rest: &mut &[u8], prefix: u32, fields: &mut Fields) -> Result<(), Rule> {
        let indexing = match rest.first() {
            _ if prefix == 6 => Indexing::Incremental,
            Some(first) if first & 0x10 != 0 => Indexing::Never,
            _ => Indexing::Without,
        };
        let index = integer::read(rest, prefix)?;
        let at = fields.buffer().len();
        if index == 0 {
            string(rest, fields.buffer())?;
        } else {
            self.depends |= index > STATIC.len();
            let (name, _) = self.entry(index)?;
            fields.buffer().extend_from_slice(name);
        }
        let middle = fields.buffer().len();
        string(rest, fields.buffer())?;
        let table = &mut self.table;
        fields.close((at, middle), indexing, self.max_list, |name, value| {
            if indexing == Indexing::Incremental {
                table.insert(name, value);
            }
        });
        Ok(())
    }

    /// The field at an index of both tables (RFC 7541, 2.3.3).
    #[inline]
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Rule> {
        let index = index.checked_sub(1).ok_or(Rule::IndexZero)?;
        match STATIC.get(index) {
            Some(entry) => Ok(*entry),
            None => self.table.get(index - STATIC.len()).ok_or(Rule::IndexTooLarge),
        }
    }
}

/// Takes a string (RFC 7541, 5.2), and appends it to `out`.
fn string(input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Rule> {
    let is_coded = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::read(input, 7)?;
    let (text, rest) = input.split_at_checked(length).ok_or(Rule::BlockTruncated)?;
    *input = rest;
    if is_coded {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}
