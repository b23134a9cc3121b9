//! A readiness probe: a request that shows whether a server that accepts connections also serves.

/// A request for a new connection, and how to interpret the answer.
#[derive(Clone, Debug)]
pub struct ReadinessProbe {
    /// The request, in bytes.
    pub asks: Vec<u8>,
    /// The request, in words: `GET /health`.
    pub what: String,
    /// Interprets the start of the answer, up to [`ReadinessProbe::ANSWER`] bytes. Called again as more
    /// bytes arrive, and with `true` when no more are read.
    pub answered: fn(&[u8], bool) -> Answer,
}

/// Meaning of the start of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Not known yet.
    Begun,
    /// The server is ready.
    Ready,
    /// The server is not ready; holds its answer.
    NotReady(String),
}

impl ReadinessProbe {
    /// Maximum number of bytes of an answer that are read.
    pub const ANSWER: usize = 256;
}
