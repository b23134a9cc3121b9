//! Fields → field blocks. For blocks that are compiled before a run: it searches its tables linearly.

use super::{INITIAL_TABLE_SIZE, huffman, integer, static_table::STATIC, table::Table};

/// How a field that is in no table is written (RFC 7541, 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Inserted into the peer's table: for fields that later blocks repeat.
    Incremental,
    /// Not inserted: for values that vary.
    Without,
    /// Not inserted, here and by any intermediary: for secrets. Written as a literal, even if a table has
    /// it.
    Never,
}

/// Encodes the field blocks of one connection, in their order.
///
/// A clone continues from the same table. A block without insertions leaves it unchanged, so that it can
/// be sent any number of times and in any order.
#[derive(Clone, Debug)]
pub struct Encoder {
    table: Table,
    /// The size updates that the next block must start with: the smallest size since the last block, and
    /// the last one (RFC 7541, 4.2).
    updates: Option<(usize, usize)>,
    /// Whether strings are Huffman-coded, unless that makes them longer.
    is_coding: bool,
}

impl Default for Encoder {
    /// An encoder with a table of 4,096 bytes that codes strings unless that makes them longer.
    fn default() -> Self {
        Encoder { table: Table::new(INITIAL_TABLE_SIZE), updates: None, is_coding: true }
    }
}

impl Encoder {
    /// Never uses the Huffman code.
    pub fn plain(self) -> Self {
        Encoder { is_coding: false, ..self }
    }

    /// Changes the size of the table, in bytes; at most the peer's SETTINGS_HEADER_TABLE_SIZE. The next
    /// block announces it.
    pub fn resize(&mut self, size: usize) {
        if size != self.table.max() {
            let smallest = self.updates.map_or(size, |(smallest, _)| smallest.min(size));
            self.updates = Some((smallest, size));
            self.table.resize(size);
        }
    }

    /// Appends a block with these fields: names, values, and how those are written that are in no table.
    pub fn encode<'f>(
        &mut self,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8], Indexing)>,
        out: &mut Vec<u8>,
    ) {
        if let Some((smallest, last)) = self.updates.take() {
            if smallest < last {
                integer::write(out, 0x20, 5, smallest);
            }
            integer::write(out, 0x20, 5, last);
        }
        for (name, value, indexing) in fields {
            self.field(name, value, indexing, out);
        }
    }

    fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let (whole, of_name) = self.find(name, value);
        if let Some(index) = whole.filter(|_| indexing != Indexing::Never) {
            return integer::write(out, 0x80, 7, index);
        }
        let (first, prefix) = match indexing {
            Indexing::Incremental => (0x40, 6),
            Indexing::Without => (0x00, 4),
            Indexing::Never => (0x10, 4),
        };
        integer::write(out, first, prefix, of_name.unwrap_or(0));
        if of_name.is_none() {
            self.string(name, out);
        }
        self.string(value, out);
        if indexing == Indexing::Incremental {
            self.table.insert(name, value);
        }
    }

    /// The first index with this name and value, and the first with this name.
    fn find(&self, name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
        let all = || STATIC.iter().copied().chain(self.table.iter()).zip(1..);
        let of_name = all().find(|((other, _), _)| *other == name);
        let whole = all().find(|(entry, _)| *entry == (name, value));
        (whole.map(|(_, index)| index), of_name.map(|(_, index)| index))
    }

    fn string(&self, text: &[u8], out: &mut Vec<u8>) {
        let coded = huffman::coded_length(text);
        if self.is_coding && coded <= text.len() {
            integer::write(out, 0x80, 7, coded);
            huffman::encode(text, out);
        } else {
            integer::write(out, 0, 7, text.len());
            out.extend_from_slice(text);
        }
    }
}
