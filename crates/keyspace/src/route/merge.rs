//! How the replies of several nodes become one.

/// How the replies of several nodes become one. If a node answers with an error, or with anything but
/// what the rule names, the merged reply is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Numbers are added.
    Sum,
    /// `OK` if every node answers `OK`.
    Ok,
    /// The reply that all nodes give. If they differ, the merged reply is an error.
    Same,
    /// Arrays, whose elements are put where the keys were in the request: so many for each key.
    InOrder(u8),
    /// Arrays, one behind the other.
    Concatenation,
    /// Arrays, one behind the other; an element that several nodes have appears once.
    Union,
    /// Arrays of equal length of numbers: the least at each position.
    Least,
    /// Any reply that is not null; null if all are.
    AnyValue,
}
