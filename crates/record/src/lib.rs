//! Results: serialisable, versioned types.
//!
//! `load`, `race` and `judge` create these values, `report` prints them. `report` depends on no other
//! crate of regatta, so every figure of a report can be recomputed from a result directory alone, and
//! all output of a race can be printed again. [`Ask`], [`Order`] and [`Report`] are the messages
//! between load processes and the process that starts them.

mod age;
mod alike;
mod arrivals;
mod ask;
mod beside;
mod capacity;
mod content_doubt;
mod counted;
mod counts;
mod curve;
mod drive;
mod errors;
mod estimate;
mod event;
mod finding;
mod fingerprint;
mod gate;
mod hdr;
mod heads;
mod latency;
mod life;
mod load;
mod needed;
mod operation;
mod plan;
mod race;
mod regimes;
mod reply_seen;
mod report;
mod round;
mod running;
mod running_doubts;
mod second;
mod settling;
mod setup;
mod shape;
mod shown;
mod skipped;
mod slow;
mod stage;
mod stored;
mod summary;
mod topology;
mod unknown;
mod unlike;
mod verdict;
mod words;

pub use age::day_of;
pub use alike::{alike, are_similar};
pub use arrivals::ArrivalsSeen;
pub use ask::{Ask, AskedRoots, AskedTls, AskedWindow, AskedWorkload, Order, Part};
pub use beside::Beside;
pub use capacity::{Capacity, CapacityInterval, CapacityLoad, CapacityPhase, CapacityStep, Limit};
pub use counted::{Counted, FirstWrong, OpenCounted};
pub use counts::{Counts, CountsReader, CountsSum};
pub use curve::{
    ConnectionsPoint, CoresPoint, Curve, IdleCost, IdlePoint, Knee, Over, RateCost, RatePoint, Usl,
};
pub use drive::{Arrivals, Burst, Drive};
pub use errors::{Errors, Exchange};
pub use estimate::Estimate;
pub use event::{
    CapacityHeader, Event, Form, Happened, Judged, JudgedCell, LoadSample, NextStart, PassStart,
    Phase, RaceHeader, RoundEnd, RoundStart, Window,
};
pub use finding::{Doubt, Finding};
pub use fingerprint::Fingerprint;
pub use gate::{Decision, Gate, GateLine, Judgement};
pub use heads::Heads;
pub use latency::{HistogramError, Latency, decode_histogram, encode_histogram};
pub use life::{IdleSlice, Life, Slice, WholeLife};
pub use load::{LoadOperation, LoadResult, LoadThreshold, TlsSpoken, Verified};
pub use needed::more_in_words;
pub use operation::{Operation, OperationCounted, RoundOperation};
pub use plan::RacePlan;
pub use race::{Asked, EXHIBIT, Entry, NULL, PilotRate, Schedule, Then, twin_name};
pub use regimes::Regimes;
pub use reply_seen::{ContentSeen, ReplySeen};
pub use report::{Failure, LoadProgress, Report};
pub use round::{
    ArrivalCheck, Background, KernelGrowth, KernelMemorySource, Machine, OpenLoop, Outcome,
    RoleUsage, Round, Server, Unseen, UsageSource, WarmUpDone,
};
pub use running::{RunningProcess, RunningServer};
pub use second::SecondCounted;
pub use settling::{SOURCE_PAIRS, Settled, Settling, WarmUpClass, WarmUpSlice};
pub use setup::Setup;
pub use shape::{CpuSets, LoadShape};
pub use shown::ShownPercentile;
pub use slow::{Ages, SlowClients};
pub use stage::{LoadStage, Stage};
pub use summary::{
    Band, Cell, DuelSeen, LatencyRatio, OpenLoopFigures, OperationFigures, Percentiles, Precision,
    RatioInState, Relation, RoleCost, Scaling, StateSeen, Summary,
};
pub use topology::Core;
pub use unknown::{Percentile, Unknown};
pub use unlike::Mismatch;
pub use verdict::{CellFinding, Figure, Kind, SomeStarts, Verdict};
pub use words::sentences;

/// Version of every file of a result directory. 1: races in rounds. 2: races in duels, too, so a program that
/// knows only rounds does not read their slices as rounds.
pub const FORMAT: u32 = 2;

/// Checks that this program reads files of version `format`: its own, and all earlier ones.
///
/// # Errors
///
/// What was expected and what was found.
pub fn check_format(format: u32) -> Result<(), String> {
    match (1..=FORMAT).contains(&format) {
        true => Ok(()),
        false => Err(format!("expected format 1 to {FORMAT}, found {format}")),
    }
}

/// Whether a field is omitted from a file because it is 0.
fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
