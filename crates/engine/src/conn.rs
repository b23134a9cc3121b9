//! The names of connections.

/// Names a connection of a core. A name is never used again, so one that is kept too long names
/// nothing, rather than another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conn {
    index: u32,
    generation: u32,
}

impl Conn {
    pub(crate) fn new(index: usize, generation: u32) -> Self {
        // Descriptors are fewer than 2^32.
        Conn { index: index as u32, generation }
    }

    /// Its place in a table: unique among the connections that are open, and used again later.
    #[inline]
    pub fn index(self) -> usize {
        self.index as usize
    }

    pub(crate) fn generation(self) -> u32 {
        self.generation
    }

    /// The name as a number, for a kernel interface that hands one back.
    #[inline]
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The name that [`Conn::to_bits`] made the number of.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Conn { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// Who opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A client: it was accepted. The server drains it before it stops.
    Client,
    /// The engine itself ([`crate::Effects::connect`]). It is closed when the last client has gone.
    Upstream,
}
