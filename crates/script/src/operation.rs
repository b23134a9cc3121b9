//! What is counted in a load: kinds of operations, by their names.

/// A kind of operation. What one costs is told per operation of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// One of them: `request`.
    pub one: &'static str,
    /// Several: `requests`.
    pub several: &'static str,
}

impl Operation {
    /// A request of the script and its reply.
    pub const REQUESTS: Operation = Operation { one: "request", several: "requests" };
}
