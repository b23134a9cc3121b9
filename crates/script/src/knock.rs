//! A question that shows whether a server is ready to serve, beyond accepting connections.

/// What to ask on a fresh connection, and what to make of the answer.
#[derive(Clone, Debug)]
pub struct Knock {
    /// The bytes that ask.
    pub asks: Vec<u8>,
    /// What is asked, in words: `GET /health`.
    pub what: String,
    /// What the answer's beginning, up to [`Knock::ANSWER`] bytes, says. Called again as more comes,
    /// and with `true` when no more will.
    pub answered: fn(&[u8], bool) -> Answer,
}

/// What the beginning of an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    Begun,
    /// The server is ready.
    Ready,
    /// It is not: what it said.
    NotReady(String),
}

impl Knock {
    /// As much of an answer as is looked at, in bytes.
    pub const ANSWER: usize = 256;
}
