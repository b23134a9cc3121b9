//! What a result is: serialisable, versioned types, and nothing that computes.
//!
//! `load` and `race` fill these in, `report` shows them. No other crate is a channel between
//! those three, so whatever a report says can be recomputed from a result directory alone.

mod latency;
mod load;
mod race;
mod round;
mod verdict;

pub use latency::{HistogramError, Latency, decode_histogram, encode_histogram};
pub use load::{Errors, Exchange, LoadResult};
pub use race::{
    Asked, Band, Burst, Cell, CpuSets, Entry, Estimate, LoadShape, NULL, Relation, Setup, Summary,
    twin_name,
};
pub use round::{Outcome, Round, Server, UsageSource};
pub use verdict::{Figure, Kind, Verdict};

/// Version of every file of a result directory; a reader refuses what it does not know.
pub const FORMAT: u32 = 1;
