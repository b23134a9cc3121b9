//! Where a key belongs.

/// Where a key belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The node.
    pub node: usize,
    /// A command may use keys of one group together: those of one node, in a cluster those of one slot.
    pub group: u16,
}
