//! A greeting: one harmless request that shows whether a server speaks a protocol.

/// A harmless request of a protocol, and the texts of messages about it.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    /// The protocol, for messages.
    pub named: &'static str,
    /// What the workload of this name sends, for messages: `lines of integers`.
    pub sends: fn(workload: &str) -> &'static str,
    /// How a server of this protocol can be raced, for messages, after `use`.
    pub remedy: &'static str,
    /// Returns the request, in bytes, for this path (if `None`: a usual one) of the server `host`.
    pub asks: fn(host: &str, path: Option<&str>) -> Vec<u8>,
    /// Whether the start of an answer, to whatever request, is of this protocol.
    pub is_spoken: fn(answer: &[u8]) -> bool,
}
