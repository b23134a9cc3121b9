//! Injected faults, which the simulation must detect.

/// A fault of the server. It occurs at most once per history, at a random one of its first
/// opportunities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A byte of output is lost.
    LostByte,
    /// A byte of output is sent twice.
    DoubledByte,
    /// Something is sent after the last reply.
    ReplyAfterTheEnd,
    /// A connection that should be closed stays open.
    NeverCloses,
    /// A timer that is due is dropped.
    MissedTimer,
    /// A letter to another core is lost.
    LostLetter,
    /// Two letters of one core are swapped.
    SwappedLetters,
    /// A connection that was written to by another one is not served.
    LostChange,
    /// Input that has arrived before a stop is not read.
    LostInputAtStop,
}

/// Number of first opportunities among which a fault occurs.
pub(super) const OPPORTUNITIES: usize = 8;
