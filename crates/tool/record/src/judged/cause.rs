//! Why a measurement is of its kind, as data with figures. [`crate::text::causes`] has the sentences.

use crate::Arrivals;
use serde::{Deserialize, Serialize};

/// Why a measurement is of its kind. Shares are fractions of 1. In files its name is `cause`, and its figures are
/// beside that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "cause")]
pub enum Cause {
    /// A message of the contender, of the machine or of an earlier version, as it is.
    Message {
        /// The message.
        text: String,
    },
    /// How busy both sides were.
    Used(BothUsed),
    /// A thread of the server was always busy.
    BusyThread(BothUsed),
    /// Both sides were busy, so the rate is a lower bound.
    BothBusy(BothUsed),
    /// Neither side was busy, because a burst waits for its connections.
    Waited(BothUsed),
    /// Neither side was busy, and the null server was no faster.
    NullNoFaster {
        /// Both sides.
        #[serde(flatten)]
        used: BothUsed,
        /// Rate of the null server over that of the contender.
        null_rate: f64,
    },
    /// Neither side was busy, and an interface between them was.
    Network {
        /// Both sides.
        #[serde(flatten)]
        used: BothUsed,
        /// What shows it.
        network: NetworkFull,
    },
    /// Others took the CPU of the load, which could do no more.
    Starved {
        /// Both sides.
        #[serde(flatten)]
        used: BothUsed,
        /// Whether the server may have taken it.
        by_other_side: bool,
    },
    /// No process of the server was observed.
    ServerNotSeen {
        /// The load.
        load: SideUsed,
        /// If others took its CPU so that it could do no more: whether the server may have been one of them.
        starved_by_other_side: Option<bool>,
    },
    /// It took less CPU than TCP itself takes.
    BelowNull {
        /// Its CPU time over that of the null server for the same requests.
        of_null: f64,
    },
    /// Deliveries were owed to nobody, because members were away.
    OwedToNobody {
        /// Their share of all deliveries; of several starts, the highest one.
        share: f64,
    },
    /// Server and load had to share CPUs.
    Shared {
        /// The CPUs.
        shared_cpus: Vec<u32>,
        /// The rate, if it was not held.
        missed: Option<Missed>,
    },
    /// The hypervisor gave CPU time to others.
    Stolen {
        /// Share of the CPUs' time.
        steal: f64,
    },
    /// Others took the CPU of a side.
    CpuTaken {
        /// The side.
        side: Side,
        /// Share of the window that it waited.
        waited: f64,
        /// Whether the other side may have been one of them.
        by_other_side: bool,
    },
    /// The rate changed within the window, as a factor from its first third to its last.
    Drift {
        /// The factor.
        drift: f64,
        /// The lower end of its interval.
        drift_low: f64,
        /// The upper end of its interval.
        drift_high: f64,
        /// The factor of the machine, if contenders took turns.
        usual: Option<f64>,
        /// Number of rounds.
        rounds: u32,
    },
    /// The requested rate was held.
    Held {
        /// Requests per second.
        asked_per_s: u32,
        /// How they arrive.
        arrivals: Arrivals,
        /// Correct replies per second.
        answered_per_s: f64,
        /// Within what time of their due time requests were sent.
        lag: Option<LagSeen>,
    },
    /// The requested rate was not held.
    NotHeld {
        /// Rates.
        #[serde(flatten)]
        missed: Missed,
        /// How requests arrive.
        arrivals: Arrivals,
        /// Within what time of their due time requests were sent.
        lag: Option<LagSeen>,
        /// What became of the requests that were due, if that was recorded.
        #[serde(flatten)]
        fates: Option<Fates>,
    },
    /// The load sent late, and the server was not busy.
    LateSends {
        /// Why.
        late: Late,
        /// The server, if both sides are known.
        server: Option<SideUsed>,
        /// The load, if both sides are known.
        load: Option<SideUsed>,
        /// Rates.
        #[serde(flatten)]
        missed: Missed,
        /// How requests arrive.
        arrivals: Arrivals,
        /// If others took the CPU of the load so that it could do no more: whether the server may have been one of
        /// them.
        starved_by_other_side: Option<bool>,
    },
    /// The load sent late, beside a busy server, so latencies are void.
    LateBesideBusy {
        /// Why.
        late: Late,
    },
    /// By Little's law, another number of requests was in flight than the load asks for, so latencies are void.
    InFlight {
        /// Rate × mean latency.
        requests: f64,
        /// The number that the load asks for.
        of: u64,
    },
    /// The server also answered the requests of another load, so its cost is void.
    AlsoAnswered {
        /// Large requests per second.
        beside_per_s: f64,
    },
}

/// One of the sides of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The server.
    Server,
    /// The load.
    Load,
}

/// How busy a side was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideUsed {
    /// CPU time over (window × CPUs).
    pub busy: f64,
    /// CPUs that it had.
    pub cpus: u32,
    /// Share of one CPU that its busiest thread used, if that thread was always busy and its CPUs together were
    /// not.
    pub busy_thread: Option<f64>,
    /// Share of its CPUs' time that it waited for another program, at least; `None` if not known.
    pub waited: Option<f64>,
}

/// How busy both sides were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BothUsed {
    /// The server.
    pub server: SideUsed,
    /// The load.
    pub load: SideUsed,
}

/// What shows that a network is full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkFull {
    /// An interface carried nearly as much as it can.
    Line {
        /// The side whose machine has it.
        of: Side,
        /// Its name.
        interface: String,
        /// What it carried in its busier direction, bits per second.
        bits_per_s: f64,
        /// Its speed, bits per second.
        line_bits_per_s: u64,
    },
}

/// A requested rate, and what was answered of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missed {
    /// Requests per second that were requested.
    pub asked_per_s: u32,
    /// Correct replies per second.
    pub answered_per_s: f64,
}

/// A percentile of the lag: how late requests were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagSeen {
    /// Percent, e.g. 99.
    pub percent: u32,
    /// Nanoseconds.
    pub ns: u64,
}

/// Why a load counts as late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// A percentile of its lag was long.
    Lag(LagSeen),
    /// In so many of all starts the sends did not have the requested arrival times.
    Misshapen {
        /// Starts.
        seen: u32,
        /// All starts.
        of: u32,
    },
    /// It had no CPU left.
    NoCpu,
}

/// What became of the requests that were due and not answered in time, as shares of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fates {
    /// Never sent, because no connection became free.
    pub unsent: f64,
    /// Sent late.
    pub late: f64,
    /// Without a reply in time.
    pub timed_out: f64,
    /// Lost to errors.
    pub lost: f64,
    /// Refused, as the load permits. Absent: none.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: f64,
    /// Half of the sent requests had waited this long or longer for a connection, nanoseconds.
    pub wait_p50_ns: Option<u64>,
}

impl<T: Into<String>> From<T> for Cause {
    fn from(text: T) -> Cause {
        Cause::Message { text: text.into() }
    }
}
