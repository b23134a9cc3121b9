//! Faults that are planted to see that they are found.

/// A fault of the server. It strikes once in a history, at a random one of its opportunities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A byte of output is lost.
    LostByte,
    /// A byte of output is sent twice.
    DoubledByte,
    /// Something is sent after the last reply.
    ReplyAfterTheEnd,
    /// A connection that is to be closed stays open.
    NeverCloses,
    /// A timer whose time has come is forgotten.
    MissedTimer,
    /// A letter to another core is lost.
    LostLetter,
    /// Two letters of one core change places.
    SwappedLetters,
    /// A connection that was written to is not looked at.
    LostChange,
    /// What has arrived is not read after a stop.
    LostInputAtStop,
}

/// Opportunities among which a fault strikes.
pub(super) const OPPORTUNITIES: usize = 8;
