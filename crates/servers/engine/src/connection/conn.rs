//! Connection identifiers.

/// Identifies a connection of a core. Identifiers are not reused: a stale one refers to no
/// connection, rather than to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn {
    index: u32,
    generation: u32,
}

impl Conn {
    pub(crate) fn new(index: usize, generation: u32) -> Self {
        // There are fewer than 2^32 descriptors.
        Conn { index: index as u32, generation }
    }

    /// Its index in a table: unique among open connections, and reused later.
    #[inline]
    pub fn index(self) -> usize {
        self.index as usize
    }

    pub(crate) fn generation(self) -> u32 {
        self.generation
    }

    /// The identifier as a number, for kernel interfaces that return one (e.g. `user_data`).
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The inverse of [`Conn::to_bits`].
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Conn { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Which side opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A client: the server accepted the connection. It is drained before the server stops.
    Client,
    /// The engine itself, with [`crate::Effects::connect`]. A stop leaves it open until the last
    /// client is closed.
    Upstream,
}
