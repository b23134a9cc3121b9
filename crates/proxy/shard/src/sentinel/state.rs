//! What a core does with Sentinels: its questions in flight, and its subscription.

use super::reported::Reported;
use regatta_engine::Conn;

/// What a core does with Sentinels.
#[derive(Debug, Default)]
pub(crate) struct SentinelState {
    /// The questions in flight of the rounds that this core has begun.
    pub(crate) asked: Vec<Asked>,
    /// The connection over which a Sentinel announces failovers, if this core has it.
    pub(crate) announcements: Option<Conn>,
}

/// The questions to one Sentinel that are in flight.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) conn: Conn,
    /// The number of the round, and of the Sentinel.
    pub(crate) round: u64,
    pub(crate) sentinel: usize,
    /// The number of masters that it was asked for, and its replies so far.
    pub(crate) masters: usize,
    pub(crate) replies: Vec<Reported>,
}
