//! What a result is: serialisable, versioned types, and nothing that computes.
//!
//! `load` and `race` fill these in, `report` shows them. No other crate is a channel between
//! those three, so whatever a report says can be recomputed from a result directory alone.

mod latency;
mod load;
mod race;
mod round;
mod shape;
mod summary;
mod verdict;

pub use latency::{HistogramError, Latency, decode_histogram, encode_histogram};
pub use load::{Errors, Exchange, LoadResult};
pub use race::{Asked, Entry, NULL, Setup, Then, twin_name};
pub use round::{KernelGrowth, KernelMemorySource, Outcome, Round, Server, UsageSource};
pub use shape::{Burst, CpuSets, LoadShape};
pub use summary::{Band, Cell, Estimate, Relation, Scaling, Summary};
pub use verdict::{Figure, Kind, Verdict};

/// Version of every file of a result directory; a reader refuses what it does not know.
pub const FORMAT: u32 = 1;
