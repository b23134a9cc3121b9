//! Merging of the replies of several nodes.

/// How the replies of several nodes are merged. If a reply is an error or does not fit the rule,
/// the merged reply is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Adds the numbers.
    Sum,
    /// Returns `OK` if every node replies `OK`.
    Ok,
    /// Returns the common reply of all nodes. If they differ, the merged reply is an error.
    Same,
    /// Returns the common configuration of all nodes: names and values, in any order. If the nodes
    /// differ, or if it contains a credential, the merged reply is an error.
    Configuration,
    /// Returns the elements of arrays in the order of the keys in the request: this many per key.
    InOrder(u8),
    /// Concatenates arrays.
    Concatenation,
    /// Concatenates arrays without repeating elements.
    Union,
    /// Returns the minimum at each position, for arrays of numbers with equal length.
    Least,
    /// Returns any reply that is not null; null if all are.
    AnyValue,
}
