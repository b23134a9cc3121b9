//! Results: serialisable, versioned types.
//!
//! `load`, `race` and `judge` create these values, `report` prints them. `report` depends on no other
//! crate of regatta, so every figure of a report can be recomputed from a result directory alone, and
//! all output of a race can be printed again. [`LeaderCommand`] and [`ProcessMessage`] are the messages between
//! load processes and the process that starts them.
//!
//! # Where things are
//!
//! - `asked`: a race as requested, and its machine.
//! - `loads`: loads: their shape, and the orders to load processes.
//! - `counting`: what is counted, and merges without loss.
//! - `rounds`: what a race stores of each start.
//! - `judged`: what is found out.
//! - `load_result`: the result of `regatta load`, and what a load process reports.
//! - `text`: the words that all reports share.
//! - `event`: a race as a stream of events.

mod asked;
mod counting;
mod event;
mod judged;
mod load_result;
mod loads;
mod rounds;
mod text;

pub use asked::{
    age::day_of,
    dry_run::RacePlan,
    fingerprint::Fingerprint,
    pilot::{Extreme, PilotRate, PilotShare},
    race::{Asked, EXHIBIT, Entry, HistoricResult, NULL, Schedule, twin_name},
    running::{RunningProcess, RunningServer},
    server_machine::ServerMachine,
    setup::Setup,
    topology::Core,
};
pub use counting::{
    across::{AcrossCounted, AcrossLatencies, AcrossSeen, FromSeen, Marks},
    arrivals::ArrivalsSeen,
    counted::{Counted, FailedShare, FirstWrong, OpenCounted, TlsSpoken},
    counts::{HistogramReader, HistogramSum, SparseHistogram},
    errors::{Errors, Exchange, Mismatch},
    latency::{HistogramError, Latency, decode_histogram, encode_histogram},
    losses::{AnnouncedLosses, BroadcastCounts, WrongDeliveries, are_many_lost},
    operation::{Operation, OperationCounted, RoundOperation},
    second::SecondCounted,
};
pub use event::{
    Event, Form, Happened, Judged, JudgedCell, NextStart, PassStart, Phase, RaceHeader, RoundEnd,
    RoundStart, Window,
};
pub use judged::{
    capacity::{Capacity, CapacityInterval, CapacityLoad, CapacityPhase, CapacityStep, Limit},
    cause::{BothUsed, Cause, Fates, LagSeen, Late, Missed, NetworkFull, Side, SideUsed},
    curve::{
        ConnectionsPoint, CoresPoint, Curve, IdleCost, IdlePoint, Knee, Over, RateCost, RatePoint,
        Usl,
    },
    estimate::Estimate,
    finding::{Doubt, Finding},
    gate::{Decision, Gate, GateLine, Judgement},
    regimes::Regimes,
    shown::ShownPercentile,
    summary::{
        Band, Cell, ContendedBlocks, DuelSeen, LatencyRatio, MachineFigures, OpenLoopFigures,
        OperationFigures, Percentiles, Precision, RatioInState, Relation, RoleCost, Scaling,
        StateSeen, Summary,
    },
    unknown::{Percentile, Unknown},
    verdict::{CellFinding, Figure, Kind, SomeStarts, Verdict},
};
pub use load_result::{
    across::{LoadAcross, LoadAcrossPair},
    agents::{LoadAgent, LoadAgents, VoidLoad, VoidLoadAgent},
    report::{AcrossProgress, Failure, LoadProgress, ProcessMessage},
    result::{LoadOperation, LoadResult, LoadThreshold, Verified},
    slow::{Ages, SlowClients},
    stage::LoadStage,
};
pub use loads::{
    ask::{LeaderCommand, Part},
    drive::{Arrivals, Burst, Drive, Stage},
    heads::Heads,
    machines::Machines,
    shape::{BackgroundLoad, CpuSets, LoadShape},
};
pub use rounds::{
    life::{IdleSlice, Life, Slice, WholeLife},
    machine_use::MachineUse,
    network_use::{Carried, NetworkUse},
    reply_seen::{ContentSeen, ReplySeen},
    round::{
        ArrivalCheck, Background, KernelGrowth, KernelMemorySource, Machine, OpenLoop, Outcome,
        RoleUsage, Round, Server, Unseen, UsageSource, WarmUpDone,
    },
    settling::{SOURCE_PAIRS, Settled, Settling, WarmUpClass, WarmUpSlice},
};
pub use text::{
    alike::{alike, are_similar},
    joined::joined,
    needed::more_in_words,
    visible::visible,
    words::sentences,
};

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
