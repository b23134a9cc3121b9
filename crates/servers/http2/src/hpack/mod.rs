//! Header compression (RFC 7541): [`Encoder`] and [`Decoder`].

mod decoder;
mod encoder;
mod fields;
mod huffman;
mod integer;
mod static_table;
mod table;

pub use decoder::Decoder;
pub use encoder::{Encoder, Indexing};
pub use fields::{Field, Fields};

/// The size of both dynamic tables at the start of a connection, in bytes (RFC 9113, 6.5.2).
pub const INITIAL_TABLE_SIZE: usize = 4096;
